# Derivatives as functions of functions, against closed forms and difference quotients.

include("../support/tracing.jl")

const x = [0.3, -0.7, 1.2]
cubes(x) = sum(x .^ 3)
function rosenbrock(x)
    s = zero(eltype(x))
    for i in 1:length(x)-1
        s += 100 * (x[i+1] - x[i]^2)^2 + (1 - x[i])^2
    end
    s
end
brown(x) = (a = x[1:end-1] .^ 2; b = x[2:end] .^ 2; sum(a .^ (b .+ 1) .+ b .^ (a .+ 1)))
function rosenbrock_gradient(x)
    g = zero(x)
    for i in 1:length(x)-1
        g[i] += -400x[i] * (x[i+1] - x[i]^2) - 2 * (1 - x[i])
        g[i+1] += 200 * (x[i+1] - x[i]^2)
    end
    g
end
function rosenbrock_hvp(x, v)
    h = zero(x)
    for i in 1:length(x)-1
        h[i] += (1200x[i]^2 - 400x[i+1] + 2) * v[i] - 400x[i] * v[i+1]
        h[i+1] += -400x[i] * v[i] + 200v[i+1]
    end
    h
end

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

@testset "Taylor: $f" for f in (rosenbrock, brown)
    rng = seeded(string(f))
    z, v = randn(rng, 30), randn(rng, 30)
    g, h = gradient(f, z), hvp(f, z, v)
    rest(t) = f(z .+ t .* v) - f(z) - t * sum(g .* v) - t^2 / 2 * sum(v .* h)
    order = log2(abs(rest(2e-3) / rest(1e-3)))
    @test 2.9 < order < 3.1
end

"Newton's method with conjugate gradients for its systems: only products with the Hessian."
function newton_cg(f, z; steps = 100)
    value = jit(f)
    slope, product = jit(z -> gradient(f, z)), jit((z, v) -> hvp(f, z, v))
    for _ in 1:steps
        g = slope(z)
        norm(g) < 1e-8 && break
        d, r = zero(z), -g
        p, rr = copy(r), sum(abs2, r)
        for k in 1:200
            h = product(z, p)
            curvature = sum(p .* h)
            curvature <= 1e-12 * sum(abs2, p) && (k == 1 && (d = r); break)
            α = rr / curvature
            d += α * p
            r -= α * h
            new = sum(abs2, r)
            new < min(0.25, sqrt(norm(g))) * sum(abs2, g) * 1e-4 && break
            p = r + new / rr * p
            rr = new
        end
        t = 1.0
        while t > 1e-10 && value(z + t * d) > value(z) + 1e-4t * sum(g .* d)
            t /= 2
        end
        z += t * d
    end
    z
end

@testset "n = 1000" begin
    n = 1000
    z = [isodd(i) ? -1.2 : 1.0 for i in 1:n] .* 0.5
    v = randn(seeded("v"), n)
    @test gradient(rosenbrock, z) ≈ rosenbrock_gradient(z)
    @test jit((z, v) -> hvp(rosenbrock, z, v))(z, v) ≈ rosenbrock_hvp(z, v)
    start = 1 .+ 0.1 .* sin.(1:n)
    @test maximum(abs, newton_cg(rosenbrock, start) .- 1) < 1e-6
    @test maximum(abs, newton_cg(brown, 0.5 .* sin.(1:n))) < 1e-3
end

@testset "what cannot be" begin
    @test occursin("real result", message_of(JaxprAD.NotDifferentiable,
    () -> gradient(x -> x, x)))
    @test_throws DimensionMismatch jvp(cubes, (x,), ([1.0],))
end
