# A function over slices.

include("../support/tracing.jl")

const X = randn(seeded("X"), 3, 5)
const W = randn(seeded("W"), 2, 3)

@testset "vmap" begin
    f(x) = tanh.(W * x)
    @test vmap(f)(X) ≈ tanh.(W * X)
    @test agrees(vmap(f), X)
    @test vmap((x, y) -> sum(x) * y)(X, collect(1.0:5)) ≈ vec(sum(X; dims = 1)) .* (1:5)
    @test vmap((x, a) -> a .* x)(X, 2.0) ≈ 2X
    @test vmap(p -> (s = p.a .+ p.b, t = p.b))((a = X, b = ones(5))).s ≈ X .+ 1
    @test jit(vmap(vmap(x -> x^2)))(X) ≈ X .^ 2
    @test agrees(W -> vmap(x -> W * x)(X), W)
    @test_throws DimensionMismatch vmap(+)(X, ones(4))
    @test_throws DimensionMismatch vmap(sin)(1.0)
end
