# Broadcasts: the function is called once, with numbers that stand for all elements.

# No AbstractArrayStyle: Julia 1.12 fails to infer unions of styles with one of no dimension.
struct TracedStyle <: Broadcast.BroadcastStyle end
Broadcast.BroadcastStyle(::Type{<:ArrayOfTraced}) = TracedStyle()
Broadcast.BroadcastStyle(::Type{<:TracedNumber}) = TracedStyle()
Broadcast.BroadcastStyle(::TracedStyle, ::Broadcast.AbstractArrayStyle) = TracedStyle()
Broadcast.BroadcastStyle(::TracedStyle, ::Broadcast.DefaultArrayStyle) = TracedStyle()
Broadcast.BroadcastStyle(::TracedStyle, ::TracedStyle) = TracedStyle()
Broadcast.BroadcastStyle(::TracedStyle, ::Broadcast.Style{Tuple}) = TracedStyle()
for W in WRAPPED
    @eval Broadcast.BroadcastStyle(::Type{<:$W{<:TracedNumber}}) = TracedStyle()
end

function Base.copy(bc::Broadcast.Broadcasted{TracedStyle})
    y = broadcast_traced(bc, map(length, axes(bc)))
    y isa AbstractArray ? with_axes(y, axes(bc)) : y
end
Broadcast.materialize!(::TracedStyle, x, bc::Broadcast.Broadcasted) = copyto!(x,
    Broadcast.instantiate(Broadcast.Broadcasted{TracedStyle}(bc.f, bc.args, axes(x))))
Base.copyto!(x::AbstractArray, bc::Broadcast.Broadcasted{TracedStyle}) =
    assign!(x, broadcast_traced(bc, map(length, axes(x))))

function broadcast_traced(bc, n::Dims)
    before = watch_random()
    y = lanes(bc, n)
    end_watch(before)
    array_of_lanes(y, n)
end

"What an argument of a broadcast over arrays of size `n` is in each of its elements."
lanes(bc::Broadcast.Broadcasted, n) = call_lanes(bc.f, map(a -> lanes(a, n), bc.args))
lanes(x::AbstractArray, n) =
    x isa AbstractArray{<:Number} ? lanes_of(x, n) :
    untraceable("a broadcast over an array of $(eltype(x)), next to traced values")
lanes(x::AbstractArray{<:Any,0}, n) = x[]
lanes(x::NTuple{<:Any,Number}, n) = lanes(traced(collect(x)), n)
lanes(x::Tuple{Any}, n) = only(x)
lanes(x::Tuple{Number}, n) = only(x)
lanes(x::Tuple, n) = untraceable(
    "a broadcast over a tuple of $(unique(map(typeof, x))), next to traced values: one value for " *
    "all elements is `Ref(value)`")
lanes(x::Ref, n) = x[]
lanes(x, n) = x
call_lanes(f, x) = f === ifelse ? select(x...) : f(x...)

function lanes_of(x::AbstractArray, n::Dims)
    x isa TracedArray && is_filled(x) && return traced_number(x.memory.value)
    a, full = atom_here(x), program_shape(n)
    shape(a) == full && return traced_number(a)
    # dimensions of size 1 go; the others keep their place from the right
    kept = findall(d -> size(x, d) == n[d], 1:ndims(x))
    b = emit_here(:reshape, a; shape = Dim[size(x, d) for d in reverse(kept)])
    traced_number(emit_here(:broadcast_in_dim, b; shape = full,
        dims = Int[length(n) - d for d in reverse(kept)]))
end

"The array whose elements are the lanes of a number; itself where there is one element."
function array_of_lanes(y::Number, n::Dims)
    isempty(n) && return y
    a = atom_here(y)
    a isa Literal && return TracedArray(a, n, open_recording())
    shape(a) == program_shape(n) ? traced_array(a) :
    traced_array(spread_lanes(a, program_shape(n)))
end
array_of_lanes(y, n::Dims) = isempty(n) ? y : untraceable(
    "a broadcast over traced arrays gives a $(typeof(y)) an element: it can give numbers only")

"Whether all elements are one number that is known."
is_filled(x::TracedArray) = (m = memory(x); m.value isa Literal && isempty(m.pieces))

# map is a broadcast of arrays with the same axes.
function Base.map(f, x::ArrayOfTraced, rest::AbstractArray...)
    all(y -> axes(y) == axes(x), rest) ||
        throw(DimensionMismatch("map over arrays with the axes $(map(axes, (x, rest...)))"))
    broadcast(f, x, rest...)
end
Base.map!(f, y::ArrayOfTraced, x::AbstractArray...) = assign!(y, broadcast(f, x...))
Base.conj(x::TracedArray) = eltype(x) <: TracedReal ? x : broadcast(conj, x)
Base.real(x::TracedArray) = eltype(x) <: TracedReal ? x : broadcast(real, x)
Base.:-(x::TracedArray) = broadcast(-, x)
for f in (:+, :-)
    @eval begin
        Base.$f(x::TracedArray, y::TracedArray) = same_size($f, x, y)
        Base.$f(x::TracedArray, y::AbstractArray) = same_size($f, x, y)
        Base.$f(x::AbstractArray, y::TracedArray) = same_size($f, x, y)
    end
end
same_size(f, x, y) =
    axes(x) == axes(y) ? broadcast(f, x, y) :
    throw(DimensionMismatch("$f of arrays with the axes $(axes(x)) and $(axes(y))"))
for f in (:*, :/)
    @eval Base.$f(x::TracedArray, y::Number) = broadcast($f, x, y)
end
Base.:*(x::Number, y::TracedArray) = broadcast(*, x, y)
Base.:*(x::TracedNumber, y::AbstractArray{<:Number}) = broadcast(*, x, y)
Base.:*(x::AbstractArray{<:Number}, y::TracedNumber) = broadcast(*, x, y)
Base.:/(x::AbstractArray{<:Number}, y::TracedNumber) = broadcast(/, x, y)
Base.:*(x::TracedNumber, y::TracedArray) = broadcast(*, x, y)
Base.:*(x::TracedArray, y::TracedNumber) = broadcast(*, x, y)
Base.:/(x::TracedArray, y::TracedNumber) = broadcast(/, x, y)
select(condition::ArrayOfTraced, a, b) = broadcast(select, condition, a, b)
select(condition::TracedBool, a::AbstractArray, b::AbstractArray) =
    axes(a) == axes(b) ? broadcast(select, condition, a, b) :
    throw(DimensionMismatch("select between arrays with the axes $(axes(a)) and $(axes(b))"))
