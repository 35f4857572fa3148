# Tuples, named tuples and structs as arguments and results.

include("../support/tracing.jl")

struct Oscillator{T}
    stiffness::T
    damping::T
    steps::Int
end
struct Rigid
    x::Float64
end
energy(o::Oscillator) = sum(o.stiffness * k - o.damping^2 for k in 1:o.steps)

@testset "containers" begin
    @test agrees(p -> (sum = p.a .+ p.b, rest = (p.a[1], 2.0)), (a = [1.0, 2.0], b = 3.0))
    @test agrees(t -> t[1] .* t[2][1], ([1.0, 2.0], (3.0, "word", 4)))
    @test agrees(v -> [v[1] .* 2, v[2]], [[1.0, 2.0], [3.0]])
    @test agrees(energy, Oscillator(2.0, 0.5, 3))
    @test agrees(o -> Oscillator(o.damping, o.stiffness * 2, 7), Oscillator(2.0, 0.5, 3))
    g = gradient(energy, Oscillator(2.0, 0.5, 3))
    @test g isa Oscillator && g.stiffness == 6 && g.damping == -3 && g.steps == 3
    @test gradient((p, n) -> sum(p.w .^ n), (w = [1.0, 2.0],), 3) == ((w = [3.0, 12.0],), 3)
end

"An array of structs that keeps an array for each field, as StructArrays does."
struct Columns{T,N,C<:NamedTuple} <: AbstractArray{T,N}
    columns::C
end
Columns{T}(columns::NamedTuple) where {T} = Columns{T,ndims(columns[1]),typeof(columns)}(columns)
Base.size(c::Columns) = size(c.columns[1])
Base.getindex(c::Columns{T,N}, k::Vararg{Int,N}) where {T,N} =
    T.name.wrapper((column[k...] for column in c.columns)...)
function Base.setindex!(c::Columns{T,N}, v, k::Vararg{Int,N}) where {T,N}
    foreach(name -> c.columns[name][k...] = getfield(v, name), keys(c.columns))
    c
end
Base.similar(::Columns, ::Type{T}, n::Dims) where {T} = Columns{T}(
    NamedTuple{fieldnames(T)}(Tuple(Array{S}(undef, n) for S in fieldtypes(T))))

@testset "arrays of structs" begin
    total(os) = sum(energy(o) * k for (k, o) in enumerate(os))
    o(a, b) = Oscillator(a, b, 2)
    of_matrix = gradient(total, [o(1.0, 2.0) o(3.0, 4.0); o(0.5, 1.0) o(2.0, 0.5)])
    @test of_matrix isa Matrix
    @test of_matrix[2, 1] == o(6.0, -8.0) && of_matrix[1, 2] == o(9.0, -48.0)
    columns = Columns{Oscillator{Float64}}(
        (stiffness = [1.0, 3.0], damping = [2.0, 4.0], steps = [2, 2]))
    @test agrees(total, columns)
    @test agrees(c -> c.columns.stiffness .^ 2 .+ c[1].damping, columns)
    g = gradient(total, columns)
    @test g isa Columns && g[2] == o(6.0, -32.0) && g.columns.damping == [-8.0, -32.0]
    @test jit(total)(columns) == total(columns)
    row = reshape([[1.0], [2.0, 3.0]], 1, 2)
    @test gradient(m -> sum(v -> sum(v) * v[1], m), row) == reshape([[2.0], [7.0, 2.0]], 1, 2)
    swapped(os) = [o(os[i].damping, os[j].stiffness) for i in 1:2, j in 1:2]
    @test agrees(swapped, [o(1.0, 2.0), o(3.0, 4.0)])
    @test_throws ArgumentError trace(total, [o(1.0, 2.0)])([o(1.0, 2.0) o(1.0, 2.0)])
end

@testset "containers in containers" begin
    # in time that is linear in the depth
    nested(depth) = foldl((x, _) -> Any[x], 1:depth; init = 2.0)
    innermost(x) = x isa AbstractVector ? innermost(x[1]) : x
    @test gradient(x -> innermost(x)^2, nested(60)) == foldl((x, _) -> Any[x], 1:60; init = 4.0)
    @test trace((x, known) -> x, 1.0, foldl((x, _) -> Any[x], 1:60; init = "a word")) isa Any
end

@testset "what is known" begin
    @test trace((x, n, word) -> word == "twice" ? 2x : x^n, 3.0, 4, "twice")(3.0, 4, "twice") == 6
    @test_throws ArgumentError trace((x, n) -> x^n, 3.0, 4)(3.0, 5)
    @test_throws DimensionMismatch trace(sum, [1.0, 2.0])([1.0])
    @test gradient((x, k) -> sum(x[k]), [1.0, 2.0, 3.0], [1, 3])[2] === nothing
end

@testset "a struct that cannot hold traced numbers is told so" begin
    @test occursin("type parameter", message_of(JaxprAD.TracedConversion,
    () -> trace(x -> Rigid(x), 1.0)))
end
