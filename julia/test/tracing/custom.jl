# Derivatives that the user gives: taken instead of those of the code, and checked against them.

include("../support/tracing.jl")

using JaxprAD: TracingFailed, NotDifferentiable, while_loop

# A rule that is right but is not the code's: twice the sum of the logarithms, by hand.
log_det(x) = 2sum(log.(x))
by_jvp = custom_jvp(log_det, ((x,), (ẋ,)) -> (log_det(x), 2sum(ẋ ./ x)))
by_vjp = custom_vjp(log_det, x -> (log_det(x), x), (x, ȳ) -> (2ȳ ./ x,))
# Rules that are wrong on purpose show that they are what is used.
doubled_jvp = custom_jvp(x -> x .^ 2, ((x,), (ẋ,)) -> (x .^ 2, 4 .* x .* ẋ))
doubled_vjp = custom_vjp(x -> x .^ 2, x -> (x .^ 2, x), (x, ȳ) -> (4 .* x .* ȳ,))

rng = seeded("custom rules")
x, v = rand(rng, 5) .+ 0.5, randn(rng, 5)

@testset "outside of a trace they are the function" begin
    @test by_jvp(x) == by_vjp(x) == log_det(x)
end

@testset "the rule is what is used" begin
    for f in (doubled_jvp, doubled_vjp)
        @test gradient(z -> sum(f(z)), x) ≈ 4x
        @test vjp(f, x)[2](v)[1] ≈ 4 .* x .* v
        @test jit(z -> gradient(z -> sum(f(z)), z))(x) ≈ 4x
    end
    @test jvp(doubled_jvp, (x,), (v,)) == (x .^ 2, 4 .* x .* v)
end

@testset "values, both modes and second derivatives of right rules" begin
    f(x) = sin(by_jvp(x)) + by_jvp(x .^ 2)
    g(x) = sin(log_det(x)) + log_det(x .^ 2)
    @test agrees(f, x) && second_agrees(f, x)
    @test hessian(f, x) ≈ hessian(g, x)
    h(x) = sin(by_vjp(x)) + by_vjp(x .^ 2)
    @test gradient(h, x) ≈ gradient(g, x)
    # reverse over reverse: forward mode stops at a reverse rule
    @test gradient(z -> sum(gradient(h, z) .* v), x) ≈ hvp(g, x, v)
    @test vmap(h)([x 2x]) ≈ [h(x), h(2x)]
    @test gradient(X -> sum(vmap(h)(X)), [x 2x]) ≈ [gradient(g, x) gradient(g, 2x)]
end

@testset "forward mode of a reverse rule" begin
    @test_throws NotDifferentiable jvp(by_vjp, (x,), (v,))
end

@testset "broadcast" begin
    softplus = custom_jvp(x -> log1p(exp(x)), ((x,), (ẋ,)) -> (log1p(exp(x)), ẋ / (1 + exp(-x))))
    @test agrees(x -> softplus.(x), x; name = "softplus") &&
          second_agrees(x -> sum(softplus.(x)), x)
    power = custom_vjp((x, a) -> x^a, (x, a) -> (x^a, (x, a)),
        ((x, a), ȳ) -> (ȳ * a * x^(a - 1), ȳ * x^a * log(x)))
    for a in (1.7, x, reshape(x, 1, 5))
        plain = vjp((x, a) -> x .^ a, x, a)
        given = vjp((x, a) -> power.(x, a), x, a)
        ȳ = randn(rng, size(plain[1])...)
        @test given[1] ≈ plain[1] && all(given[2](ȳ) .≈ plain[2](ȳ))
    end
    @test gradient(x -> sum(power.(x, 2.0)), x) ≈ 2x
    # a known argument, and a constant derivative
    shifted = custom_jvp((x, k) -> x + k, ((x, k), (ẋ, _)) -> (x + k, ẋ))
    @test gradient(x -> sum(shifted.(x, 3)), x) == ones(5)
    steps = custom_vjp(round, x -> (round(x), nothing), (_, ȳ) -> (ȳ,))
    @test gradient(x -> sum(steps.(x) .* v), x) == v
end

@testset "structures, known values and arrays that are closed over" begin
    A = randn(rng, 20, 5)
    plain(p, n) = (sum = n * sum(A * p.w) + p.b, w = p.w .^ 2, n = n)
    function rule((p, n), (ṗ, _))
        (sum = n * sum(A * p.w) + p.b, w = p.w .^ 2, n = n),
        (sum = n * sum(A * ṗ.w) + ṗ.b, w = 2 .* p.w .* ṗ.w, n = nothing)
    end
    forward(p, n) = (plain(p, n), (p, n))
    backward((p, n), ȳ) = ((w = n .* vec(sum(A; dims = 1)) .* ȳ.sum .+ 2 .* p.w .* ȳ.w, b = ȳ.sum),
        nothing)
    loss(f) = p -> (y = f(p, 3); y.sum^2 + sum(y.w) * y.n)
    p = (w = x, b = 0.3)
    expected = gradient(loss(plain), p)
    for f in (custom_jvp(plain, rule), custom_vjp(plain, forward, backward))
        found = gradient(loss(f), p)
        @test found.w ≈ expected.w && found.b ≈ expected.b
        found = jit(p -> gradient(loss(f), p))(p)
        @test found.w ≈ expected.w && found.b ≈ expected.b
    end
    # no cotangent for an argument
    first_only = custom_vjp((a, b) -> sum(a .* b), (a, b) -> (sum(a .* b), b),
        (b, ȳ) -> (ȳ .* b, nothing))
    @test gradient(first_only, x, v) == (v, zeros(5))
end

@testset "within loops and branches" begin
    total(f) = z -> scan((s, a) -> (s + f(a * s), s), 0.7, z)[1]
    smooth = custom_jvp(sin, ((x,), (ẋ,)) -> (sin(x), cos(x) * ẋ))
    @test gradient(total(smooth), x) ≈ gradient(total(sin), x)
    @test gradient(x -> JaxprAD.cond(x > 0, smooth, abs2, x), 0.4) ≈ cos(0.4)
    rule = custom_vjp(sin, x -> (sin(x), x), (x, ȳ) -> (cos(x) * ȳ,))
    @test gradient(total(rule), x) ≈ gradient(total(sin), x)
end

@testset "what is wrong with a rule" begin
    refused(f, z = x) = message_of(TracingFailed, () -> gradient(z -> sum(f(z)), z))
    @test occursin("must give (y, ẏ)", refused(custom_jvp(sum, (x, ẋ) -> sum(x[1]))))
    @test occursin("tangents of types f64[5] where f64[]",
        refused(custom_jvp(sum, (x, ẋ) -> (sum(x[1]), ẋ[1]))))
    @test occursin("with y of the types", refused(custom_jvp(sum, (x, ẋ) -> (x[1], ẋ[1]))))
    @test occursin("must give (y, residuals)", refused(custom_vjp(sum, sum, (r, ȳ) -> (ȳ,))))
    @test occursin("cotangents of types f64[] where f64[5]",
        refused(custom_vjp(sum, x -> (sum(x), nothing), (r, ȳ) -> (ȳ,))))
    @test occursin("the cotangents of 1 arguments",
        refused(custom_vjp(sum, x -> (sum(x), nothing), (r, ȳ) -> ȳ)))
    closing(a) = custom_jvp(x -> a * sum(x), ((x,), (ẋ,)) -> (a * sum(x), a * sum(ẋ)))
    @test occursin("make it an argument",
        message_of(TracingFailed, () -> gradient(a -> closing(a)(x), 2.0)))
end
