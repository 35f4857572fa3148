# Windows that slide over arrays.

"""
One axis: place p of `places` and position k of `window` meet element (p · stride + k · dilation - low) / base of `elements`, if there is one.
Neighbours are `y_step` apart among the places and `x_step` among the elements."""
struct Axis
    places::Int
    window::Int
    elements::Int
    stride::Int
    dilation::Int
    base::Int
    low::Int
    y_step::Int
    x_step::Int
end

"Whether each place meets the element of its own number, and no other."
isplain(a::Axis) = a.window == 1 && a.stride == 1 && a.base == 1 && a.low == 0 && a.places == a.elements

"""
    meetings(axis, k) -> (first, count, step, x, x_step)

The places that meet an element at window position k: from `first` on, `step` apart; the element of the first, and how far on the next is.
A base dilation leaves every step-th place, where step · stride is a multiple of it."""
@inline function meetings(a::Axis, k::Int)
    shift = k * a.dilation - a.low
    step = quotient(a.base, common_divisor(a.stride, a.base))
    p, tries = shift < 0 ? -floor_quotient(shift, a.stride) : 0, 0
    while tries < step && remainder(p * a.stride + shift, a.base) != 0
        p, tries = p + 1, tries + 1
    end
    reach = (a.elements - 1) * a.base - shift          # p · stride may go so far
    last_ = tries == step ? -1 : min(a.places - 1, floor_quotient(reach, a.stride))
    n = p > last_ ? 0 : quotient(last_ - p, step) + 1
    p, n, step, quotient(p * a.stride + shift, a.base), quotient(step * a.stride, a.base)
end
@inline function common_divisor(a::Int, b::Int)
    while b != 0
        a, b = b, remainder(a, b)
    end
    a
end

# Every place is combined with every element it meets: the window positions of each axis outside, its places inside, so that the innermost
# loop runs along places, or along the `inner` elements that lie together.
@noinline function reduce_windows!(f::F, y::Ptr{A}, x::Ptr{T}, axes::Axes, inner::Int) where {F,A,T,Axes<:Tuple}
    slide!(f, y, x, axes, inner)
    nothing
end

@inline slide!(f, y::Ptr{A}, x, ::Tuple{}, inner) where {A} = combine_row!(f, y, x, inner, 1, 1)
@inline function slide!(f, y::Ptr{A}, x::Ptr{T}, axes::Tuple{Axis}, inner) where {A,T}
    a = axes[1]
    for k in 0:a.window-1
        p, n, step, i, i_step = meetings(a, k)
        y1, x1 = y + p * a.y_step * sizeof(A), x + i * a.x_step * sizeof(T)
        if inner == 1
            combine_row!(f, y1, x1, n, step * a.y_step, i_step * a.x_step)
        else
            for j in 0:n-1
                combine_row!(f, y1 + j * step * a.y_step * sizeof(A), x1 + j * i_step * a.x_step * sizeof(T), inner, 1, 1)
            end
        end
    end
end
@inline function slide!(f, y::Ptr{A}, x::Ptr{T}, axes::Tuple{Axis,Axis,Vararg{Axis}}, inner) where {A,T}
    a = axes[1]
    for k in 0:a.window-1
        p, n, step, i, i_step = meetings(a, k)
        for j in 0:n-1
            slide_rest!(f, y + (p + j * step) * a.y_step * sizeof(A), x + (i + j * i_step) * a.x_step * sizeof(T), Base.tail(axes), inner)
        end
    end
end
@noinline slide_rest!(f::F, y, x, axes, inner) where {F} = slide!(f, y, x, axes, inner)

@inline function combine_row!(f, y::Ptr{A}, x, n, y_step, x_step) where {A}
    if y_step == 1 && x_step == 1
        @vector for i in 0:n-1
            put!(y, f(at(y, i), stored(A, at(x, i))), i)
        end
    else
        @vector for i in 0:n-1
            put!(y, f(at(y, i * y_step), stored(A, at(x, i * x_step))), i * y_step)
        end
    end
end

# ---- selections: the element of each window that is preferred to the others, the first of those that are preferred to it

"A window's choice so far: a key and its offset, -1 in the padding. `some`: whether a key has been chosen that the next must beat."
struct Choice{T}
    key::T
    index::Int
    some::Bool
end

"Where place number p, in row-major order, is along each axis."
@inline coordinates(axes::Tuple, p) = map(a -> remainder(quotient(p, a.y_step), a.places), axes)
@inline count_places(::Tuple{}) = 1
@inline count_places(axes::Tuple) = axes[1].places * count_places(Base.tail(axes))

@inline chosen(prefers, keys, ::Tuple{}, ::Tuple{}, c::Choice{T}, offset, here, padding) where {T} = begin
    key = here ? at(keys, offset) : padding
    c.some && prefers(c.key, key) ? c : Choice{T}(key, here ? offset : -1, true)
end
@inline function chosen(prefers, keys, axes::Tuple, place::Tuple, c::Choice, offset, here, padding)
    a = axes[1]
    for k in 0:a.window-1
        position = place[1] * a.stride + k * a.dilation - a.low
        i = floor_quotient(position, a.base)
        c = chosen(prefers, keys, Base.tail(axes), Base.tail(place), c, offset + i * a.x_step,
                   here & (0 <= i < a.elements) & (i * a.base == position), padding)
    end
    c
end

# As in XLA, gathering begins with the padding and scattering with the window's first element.
@noinline function select_and_gather!(prefers::P, y::Ptr{T}, values::Ptr{T}, keys::Ptr{T}, axes::Axes, padding::T) where {P,T,Axes<:Tuple}
    for p in 0:count_places(axes)-1
        index = chosen(prefers, keys, axes, coordinates(axes, p), Choice{T}(padding, -1, true), 0, true, padding).index
        put!(y, index < 0 ? zero(T) : at(values, index), p)
    end
end

@noinline function select_and_scatter!(prefers::P, total::Ptr{A}, updates::Ptr{T}, keys::Ptr{T}, axes::Axes, padding::T) where {P,A,T,Axes<:Tuple}
    for p in 0:count_places(axes)-1
        index = chosen(prefers, keys, axes, coordinates(axes, p), Choice{T}(padding, -1, false), 0, true, padding).index
        index < 0 || put!(total, at(total, index) + stored(A, at(updates, p)), index)
    end
end
