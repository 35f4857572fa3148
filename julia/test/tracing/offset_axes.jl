# Arrays whose indices do not count from 1, as OffsetArrays has them. The type here has the methods
# that Julia's manual asks of such packages.

include("../support/tracing.jl")

"The indices of one dimension: a range that is indexed by itself."
struct Axis <: AbstractUnitRange{Int}
    first::Int
    last::Int
end
Base.first(r::Axis) = r.first
Base.last(r::Axis) = r.last
Base.axes(r::Axis) = (r,)
Base.axes1(r::Axis) = r
Base.reduced_index(r::Axis) = Axis(first(r), first(r))
Base.getindex(r::Axis, k::Int) = (checkbounds(r, k); k)
const Axes = Union{Tuple{Axis},Tuple{Axis,Axis},Tuple{Base.OneTo{Int},Axis}}

struct Shifted{T,N,A<:AbstractArray{T,N}} <: AbstractArray{T,N}
    parent::A
    by::NTuple{N,Int}
end
shifted(x, first_indices...) = Shifted(x, first_indices .- 1)

Base.size(x::Shifted) = size(x.parent)
Base.axes(x::Shifted) = map((n, d) -> Axis(1 + d, n + d), size(x), x.by)
Base.parent(x::Shifted) = x.parent
Base.getindex(x::Shifted{T,N}, k::Vararg{Int,N}) where {T,N} =
    (checkbounds(x, k...); x.parent[(k .- x.by)...])
Base.setindex!(x::Shifted{T,N}, v, k::Vararg{Int,N}) where {T,N} =
    (checkbounds(x, k...); x.parent[(k .- x.by)...] = v; x)
with_first(x, ax) = shifted(x, map(first, ax)...)
Base.similar(x::AbstractArray, ::Type{T}, ax::Axes) where {T} =
    with_first(similar(x, T, map(length, ax)), ax)
Base.similar(x::Shifted, ::Type{T}, n::Dims) where {T} = similar(x.parent, T, n)
Base.similar(::Type{A}, ax::Axes) where {A<:AbstractArray} =
    with_first(similar(A, map(length, ax)), ax)
Base.reshape(x::AbstractArray, ax::Axes) = with_first(reshape(x, map(length, ax)), ax)
Base.fill!(x::Shifted, v) = (fill!(x.parent, v); x)

const x = [0.3, -0.7, 1.2, 0.5, 2.0]
from_zero(x) = shifted(x, 0)
table(x) = shifted(x[1:3] * x[1:4]', -1, 3)

"Whether traced code agrees with Julia, in the axes of the result too."
same_axes(f, x) = agrees(f, x) && axes(trace(f, x)(x)) == axes(f(x))

@testset "results have the axes: $k" for (k, f) in enumerate([
    x -> from_zero(x) .^ 2, x -> from_zero(x) .+ 1, x -> map(sin, from_zero(x)),
    x -> map(*, from_zero(x), from_zero(2x)), x -> cumsum(from_zero(x)),
    x -> cumprod(from_zero(x)), x -> cumsum(table(x); dims = 2), x -> 2from_zero(x),
    x -> -from_zero(x), x -> from_zero(x) + from_zero(x), x -> from_zero(x) / x[1],
    x -> from_zero(x) .* shifted([1.0, 2.0, 3.0, 4.0, 5.0], 0), x -> from_zero(x)' .* x,
    x -> sum(table(x); dims = 1), x -> sum(table(x); dims = (1, 2)), x -> copy(from_zero(x)),
    x -> zero(from_zero(x)) .+ 1, x -> table(x) .+ from_zero(x)[0],
    x -> x[shifted([1, 3], -1)], x -> select.(from_zero(x) .> 0, from_zero(x), 0),
    x -> accumulate(+, from_zero(x)), x -> (y = similar(from_zero(x)); y .= 2 .* from_zero(x)),
    x -> (y = from_zero(copy(x)); y .*= 3; y[4] = x[1]; y), x -> fill!(from_zero(copy(x)), x[2]),
    x -> (y = from_zero(copy(x)); y .= cumsum(y); y), x -> vec(from_zero(x)) .* 2,
    x -> copyto!(similar(from_zero(x)), x)])
    @test same_axes(f, x)
end

@testset "elements and numbers: $k" for (k, f) in enumerate([
    x -> (from_zero(x) .^ 2)[0], x -> sum(from_zero(x)), x -> sum(abs2, from_zero(x)),
    x -> norm(from_zero(x)), x -> dot(from_zero(x), x), x -> from_zero(x)[1:2] .* 3,
    x -> view(from_zero(x), 0:2) .* 2, x -> maximum(from_zero(x)), x -> collect(from_zero(x)),
    x -> [v^2 for v in from_zero(x)],
    x -> sum(k * from_zero(x)[k] for k in 0:4), x -> mapreduce(*, +, from_zero(x), from_zero(x))])
    @test agrees(f, x)
end

@testset "arguments and derivatives have the axes" begin
    weighted(y) = sum(k * y[k]^2 for k in eachindex(y))
    g = gradient(weighted, from_zero(x))
    @test axes(g) == axes(from_zero(x)) && collect(g) ≈ 2 .* (0:4) .* x
    @test jvp(y -> y .* y[0], (from_zero(x),), (from_zero(x),))[2][4] ≈ 2 * x[1] * x[5]
    @test axes(jit(y -> y .+ 1)(from_zero(x))) == axes(from_zero(x))
    @test vmap(sum)(shifted([1.0 2.0; 3.0 4.0], 0, 0)) == [4.0, 6.0]
    @test scan((s, v) -> (s + v, s), 0.0, from_zero(x))[2] == trace(
        y -> scan((s, v) -> (s + v, s), 0.0, y)[2], from_zero(x))(from_zero(x))
    long = shifted(collect(1.0:100.0), 0)
    @test gradient(y -> sum(y .* long), zero(long)) == long
end

@testset "what Julia refuses" begin
    failed(f) = message_of(JaxprAD.TracingFailed, () -> trace(f, x))
    for f in (x -> from_zero(x) .+ x, x -> map(+, from_zero(x), x), x -> from_zero(x) + x,
        x -> (y = copy(x); y .= from_zero(x)))
        @test occursin("DimensionMismatch", failed(f))
        @test_throws DimensionMismatch f(x)
    end
    @test occursin("offset arrays", failed(x -> shifted(x * x', 0, 0) * x))
    @test occursin("offset arrays", failed(x -> diff(from_zero(x))))
end

@testset "axes of which no package makes arrays" begin
    ranges(x) = view(x, Base.IdentityUnitRange(2:3)) .^ 2
    @test occursin("reshape(array, axes)",
        message_of(JaxprAD.TracingFailed, () -> trace(ranges, x)))
end
