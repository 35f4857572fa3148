# Convolutions as products of matrices whose rows overlap: x is copied once, with its padding, so
# that what a row of places meets lies one constant step after the other, and no element is laid out
# twice (Zhang, Franchetti, Low 2018, High performance zero-memory overhead direct convolutions;
# Georganas et al. 2018, Anatomy of high-performance deep learning convolutions on SIMD
# architectures).

"What lies innermost in the copy of x."
abstract type Inner end
"""
The features, of one item of the batch at a time: rows of the product are places along the last
axis. `W` lanes in a register, here and below."""
struct FeaturesInner{W} <: Inner end
"""
The batch, of one feature at a time: rows of the product are items of it. So it is best for the
derivative by w."""
struct BatchInner{W} <: Inner end

# (count, step in x) of what is inner; (count, steps in x, w and y) of the items that
# are copied one by one.
@inline inner(::FeaturesInner, l::Layout) = (l.features[1], l.features[2])
@inline inner(::BatchInner, l::Layout) = (l.batch[1], l.batch[2])
@inline items(::FeaturesInner, l::Layout) = (l.batch[1], l.batch[2], 0, l.batch[3])
@inline items(::BatchInner, l::Layout) = (l.features[1], l.features[2], l.features[3], 0)

"""
A part of the convolution: some items of the batch (`FeaturesInner`), or some output features
(`BatchInner`), with `block` places along the first axis at a time. `copy` has room for what they
meet. The output features' neighbours lie together in w and y."""
@noinline function convolve_by_tiles!(kind::Inner, y::Ptr{T}, copy::Ptr{T}, x::Ptr{T}, w::Ptr{T},
    l::Layout, block::Int, from::Int, to::Int) where {T}
    count, x_step, w_step, y_step = items(kind, l)
    a, rest = l.space[1], Base.tail(l.space)
    by_items = kind isa FeaturesInner
    first_item, last_item, first_column, columns =
        by_items ? (from, to - 1, 0, l.made[1]) :
        (0, count - 1, from, to - from)
    for g in 0:l.groups[1]-1, item in first_item:last_item
        y_item = y + (g * l.groups[4] + item * y_step + first_column) * sizeof(T)
        w_item = w + (g * l.groups[3] + item * w_step + first_column) * sizeof(T)
        first_ = 0
        while first_ < a.places
            n = min(block, a.places - first_)
            space = (part_of(a, first_, n), rest...)
            copy_padded!(copy, x + (g * l.groups[2] + item * x_step) * sizeof(T), space,
                inner(kind, l))
            multiply_places!(y_item + first_ * a.y_step * sizeof(T), copy, w_item,
                tiled_product(kind, l, space, columns)..., !by_items & (item > 0))
            first_ += n
        end
    end
end

"How far along the padded axis the windows reach."
@inline reach(a::Axis) = (a.places - 1) * a.stride + (a.window - 1) * a.dilation + 1
"The distances of neighbours in the copy."
@inline copy_steps(space::Tuple{Axis}, inner) = (inner,)
@inline copy_steps(space::Tuple, inner) =
    (steps = copy_steps(Base.tail(space), inner); (steps[1] * reach(space[2]), steps...))

function copy_padded!(copy::Ptr{T}, x::Ptr{T}, space, (count, step)) where {T}
    steps = copy_steps(space, count)
    @vector for i in 0:steps[1]*reach(space[1])-1
        put!(copy, zero(T), i)
    end
    # Each element of the copy is a place whose window is one element.
    elements = map(a -> Axis(reach(a), 1, a.elements, 1, 1, a.base, a.low, 0, a.x_step), space)
    lay_out_axes!(copy, x, elements, map(_ -> 0, steps), count, 1, (count, step, 1))
end

const Turns = NTuple{3,Int}       # how many, and the steps in the copy, and in y or w
const ONCE = (1, 0, 0)
@inline but_last(turns::NTuple{N,Turns}) where {N} = (Base.front(turns)..., ONCE)
@inline but_two(turns::NTuple{1,Turns}) = (ONCE,)
@inline but_two(turns::NTuple{N,Turns}) where {N} = (Base.front(Base.front(turns))..., ONCE, ONCE)
@inline before_last(turns::NTuple{1,Turns}) = ONCE
@inline before_last(turns::NTuple{N,Turns}) where {N} = turns[N-1]

"""
The product along the last axes, and the turns, over places and over positions in the window, in
which it is made."""
@inline function tiled_product(kind::FeaturesInner{W}, l::Layout, space,
    columns) where {W}
    a, steps, features, w_features = (last(space), copy_steps(space, l.features[1]), l.features[1],
        l.features[3])
    places, windows = turns(space, steps, l)
    # Features of neighbouring positions follow each other: they count as one axis.
    joined = a.dilation == 1 && last(l.w_space) == features * w_features
    run, (segments, a_segment, b_segment), others =
        joined ?
        (a.window * features, before_last(windows),
            but_two(windows)) : (features, last(windows), but_last(windows))
    product = TiledProduct{W}(a.places, columns, segments, run, a.stride * last(steps), a_segment,
        1, b_segment, w_features, a.y_step)
    product, but_last(places), others
end
@inline function tiled_product(kind::BatchInner{W}, l::Layout, space,
    columns) where {W}
    a, steps, (batch, _, y_batch) = last(space), copy_steps(space, l.batch[1]), l.batch
    places, windows = turns(space, steps, l)
    # Batches of neighbouring places follow each other.
    joined = a.stride == 1 && a.y_step == batch * y_batch
    rows, others = joined ? (a.places * batch, but_last(places)) : (batch, places)
    segments, a_segment, b_segment = before_last(windows)
    product = TiledProduct{W}(rows, columns, segments, a.window, 1, a_segment,
        a.dilation * last(steps), b_segment, last(l.w_space), y_batch)
    product, others, but_two(windows)
end
@inline function turns(space, steps, l)
    places = map((a, n) -> (a.places, a.stride * n, a.y_step), space, steps)
    windows = map((a, n, w_step) -> (a.window, a.dilation * n, w_step), space, steps, l.w_space)
    places, windows
end

@noinline function multiply_places!(y::Ptr{T}, x::Ptr{T}, w::Ptr{T}, p::TiledProduct,
    places::NTuple{N,Turns}, windows::NTuple{N,Turns}, add::Bool) where {T,N}
    for i in 0:turn_count(places)-1
        x_place, y_place = turn(places, i)
        for k in 0:turn_count(windows)-1
            x_window, w_window = turn(windows, k)
            multiply_tiles!(y + y_place * sizeof(T), x + (x_place + x_window) * sizeof(T),
                w + w_window * sizeof(T), p, add | (k > 0))
        end
    end
end
@inline turn_count(turns) = prod(map(first, turns))
@inline function turn(turns::NTuple{N,Turns}, i) where {N}
    a, b = 0, 0
    for k in N:-1:1
        count, a_step, b_step = @inbounds turns[k]
        n = remainder(i, count)
        i, a, b = quotient(i, count), a + n * a_step, b + n * b_step
    end
    a, b
end
