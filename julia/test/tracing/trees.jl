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
