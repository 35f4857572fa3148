# Derivatives as functions of functions, against closed forms and difference quotients.

include("../support/tracing.jl")

const x = [0.3, -0.7, 1.2]
cubes(x) = sum(x .^ 3)

@testset "each transform" begin
    @test jvp(sin, (0.5,), (2.0,)) == (sin(0.5), 2cos(0.5))
    y, pullback = vjp((x, a) -> a .* x, x, 3.0)
    @test y == 3x && pullback([1.0, 0, 2]) == ([3.0, 0, 6], 0.3 + 2.4)
    y, push = linearize((x, a) -> sin.(a .* x), x, 2.0)
    @test y == sin.(2x) && push(zeros(3), 1.0) ≈ x .* cos.(2x) && push(one.(x), 0.0) ≈ 2cos.(2x)
    A = randn(seeded("A"), 4, 3)
    @test linear_transpose(x -> A * x, x)(ones(4))[1] ≈ A' * ones(4)
    @test gradient(cubes, x) ≈ 3x .^ 2
    @test value_and_gradient(cubes, x)[1] ≈ cubes(x)
    @test all(gradient((x, a) -> a * cubes(x), x, 2.0) .≈ (6x .^ 2, cubes(x)))
    @test hvp(cubes, x, ones(3)) ≈ 6x
    @test hessian(cubes, x) ≈ Diagonal(6x)
    @test jacobian(x -> A * x, x) ≈ A && jacobian(x -> A' * x, ones(4)) ≈ A'
    @test jacobian(x -> [x[1] * x[2]; x], x) ≈ [[x[2] x[1] 0]; Matrix(I, 3, 3)]
    @test jacobian(sum, x) == ones(1, 3)
    # a result that does not depend on the argument
    @test gradient(x -> 2.0, x) == zeros(3) && jvp(x -> (x, [1.0]), (x,), (x,))[2] == (x, [0.0])
    @test gradient(x -> x[1], Float32[1, 2]) == Float32[1, 0]
end

@testset "over each other" begin
    f(x) = sin(x)^2
    @test gradient(z -> gradient(f, z), 0.4) ≈ 2cos(0.8)
    @test gradient(z -> gradient(y -> gradient(f, y), z), 0.4) ≈ -4sin(0.8)
    @test gradient(z -> jvp(f, (z,), (1.0,))[2], 0.4) ≈ 2cos(0.8)
    @test jvp(z -> gradient(f, z), (0.4,), (1.0,))[2] ≈ 2cos(0.8)
    # the inner function closes over what the outer is differentiated by
    @test gradient(a -> gradient(x -> a * x^3, 2.0), 5.0) ≈ 12
    @test gradient(a -> a * jvp(x -> a^2 * x, (a,), (a,))[2], 2.0) ≈ 32     # a · a² · a
    @test gradient(x -> sum(jacobian(y -> x .* y .^ 2, x) * x), [1.0, 2.0]) ≈ 6 .* [1.0, 4.0]
    @test hessian(x -> gradient(a -> a^2 * sum(x .^ 3), 3.0), x) ≈ Diagonal(36x)
    slopes(a) = scan((s, v) -> (s + gradient(w -> a * w^2, v), s), 0.0, x)[1]
    @test gradient(slopes, 1.0) ≈ 2sum(x)
    @test vmap(v -> gradient(cubes, v))([x 2x]) ≈ 3 .* [x 2x] .^ 2
    @test jit(z -> hvp(cubes, z, z))(x) ≈ 6x .^ 2
    @test gradient(jit(cubes), x) ≈ 3x .^ 2
end

@testset "what cannot be" begin
    @test occursin("real result", message_of(JaxprAD.NotDifferentiable,
    () -> gradient(x -> x, x)))
    @test_throws DimensionMismatch jvp(cubes, (x,), ([1.0],))
end
