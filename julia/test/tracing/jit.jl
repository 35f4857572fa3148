# Native code of traced functions.

include("../support/tracing.jl")

const A = randn(seeded("A"), 12, 12)
network(p, x) = p.w2 * tanh.(p.w1 * x .+ p.b1)
loss(p, x, y) = sum(abs2, network(p, x) .- y) / length(y)

@testset "values and derivatives" begin
    p = (w1 = randn(seeded("1"), 8, 3), b1 = randn(seeded("2"), 8), w2 = randn(seeded("3"), 2, 8))
    x, y = randn(seeded("4"), 3, 10), randn(seeded("5"), 2, 10)
    @test jit(loss)(p, x, y) ≈ loss(p, x, y)
    slope(p, x, y) = gradient(p -> loss(p, x, y), p)
    g, h = jit(slope)(p, x, y), slope(p, x, y)
    @test all(g[k] ≈ h[k] for k in keys(p))
end

@testset "one compilation for each kind of arguments" begin
    calls = Ref(0)
    f = jit((x, n) -> (calls[] += 1; x .^ n))
    @test f([1.0, 2.0], 2) == [1, 4] && f([3.0, 2.0], 2) == [9, 4] && calls[] == 1
    @test f([1.0, 2.0], 3) == [1, 8] && calls[] == 2
    @test f([1.0], 3) == [1] && f(Float32[2], 3) == [8] && calls[] == 4
    @test f(2.0, 3) === 8.0 && f(2.0f0, 3) === 8.0f0
end

@testset "arguments are left as they are" begin
    x = [1.0, 2.0]
    f! = jit(x -> (x .*= 2; x[1] = 7; x))
    @test f!(x) == [7, 4] && x == [1, 2]
    @test f!(view([1.0, 2.0, 3.0], 1:2)) == [7, 4]
end

@testset "captured arrays" begin
    B = copy(A)
    f = jit(x -> B * x)
    @test f(ones(12)) ≈ B * ones(12)
    B[1, 1] += 1
    @test occursin("has changed", message_of(JaxprAD.CapturedArrayChanged, () -> f(ones(12))))
end

@testset "decompositions" begin
    B = Symmetric(A * A')
    @test jit(M -> eigvals(Symmetric(M)))(Matrix(B)) ≈ eigvals(B)
    @test jit(M -> gradient(logdet, M))(Matrix(B)) ≈ inv(B)
end
