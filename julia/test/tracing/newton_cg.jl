# Hessian-vector products in n = 1000, and the example that minimises by them.

include("../support/tracing.jl")
include("../../../examples/julia/newton_cg.jl")

"Adds the terms of each pair of neighbours: `parts(x, y)` are two numbers for its two elements."
function by_pairs(parts, x)
    total = zero(x)
    for i in 1:length(x)-1
        total[i:i+1] .+= parts(i)
    end
    total
end
rosenbrock_gradient(x) = by_pairs(x) do i
    a, b = x[i], x[i+1]
    (-400a * (b - a^2) - 2 * (1 - a), 200 * (b - a^2))
end
rosenbrock_hvp(x, v) = by_pairs(x) do i
    a, b, u, w = x[i], x[i+1], v[i], v[i+1]
    ((1200a^2 - 400b + 2) * u - 400a * w, -400a * u + 200w)
end
brown_gradient(x) = by_pairs(x) do i
    a, b = x[i]^2, x[i+1]^2
    (2x[i] * ((b + 1) * a^b + log(b) * b^(a + 1)),
        2x[i+1] * ((a + 1) * b^a + log(a) * a^(b + 1)))
end
brown_hvp(x, v) = by_pairs(x) do i
    a, b, u, w = x[i]^2, x[i+1]^2, v[i], v[i+1]
    own(a, b) = 2 * (b + 1) * (1 + 2b) * a^b + 2log(b) * b^(a + 1) * (1 + 2a * log(b))
    mixed = 4x[i] * x[i+1] * (a^b * (1 + (b + 1) * log(a)) + b^a * (1 + (a + 1) * log(b)))
    (own(a, b) * u + mixed * w, mixed * u + own(b, a) * w)
end

const N = 1000
@testset "by hand: $f" for (f, slope, product) in (
    (rosenbrock, rosenbrock_gradient, rosenbrock_hvp), (brown, brown_gradient, brown_hvp))
    x, v = 0.7 .* sin.(1:N) .+ 0.1, randn(seeded("v"), N)
    compiled = jit((x, v) -> hvp(f, x, v))
    @test jit(x -> gradient(f, x))(x) ≈ slope(x)
    @test compiled(x, v) ≈ product(x, v)
    # the reference itself, by differences
    @test quotient(slope, x, v) ≈ product(x, v) rtol = 1e-7
    rest(t) = f(x .+ t .* v) - f(x) - t * dot(slope(x), v) - t^2 / 2 * dot(v, compiled(x, v))
    @test 2.9 < log2(abs(rest(2e-4) / rest(1e-4))) < 3.1
end

@testset "the Hessian's matrix: $f" for f in (rosenbrock, brown)
    x = 0.7 .* sin.(1:6) .+ 0.1
    product = f === brown ? brown_hvp : rosenbrock_hvp
    @test hessian(f, x) ≈ reduce(hcat, (product(x, v) for v in eachcol(Matrix(1.0I, 6, 6))))
end

@testset "Newton-CG" begin
    found = newton_cg(rosenbrock, collect(1:N) ./ (N + 1))
    @test maximum(abs, found.x .- 1) < 1e-9 && found.slope < 1e-8
    found = newton_cg(brown, [isodd(i) ? -1.0 : 1.0 for i in 1:N])
    @test maximum(abs, found.x) < 1e-8 && found.steps < 20
    # a quadratic function with three eigenvalues: three products solve its system
    scales = [i % 3 + 1.0 for i in 1:N]
    found = newton_cg(x -> sum(scales .* x .^ 2), ones(N); tolerance = 1e-6)
    @test found.products <= 3found.steps && maximum(abs, found.x) < 1e-6
    # downhill where the Hessian is not positive
    @test newton_cg(x -> sum((x .^ 2 .- 1) .^ 2), [0.1, -0.2]).x ≈ [1, -1]
end
