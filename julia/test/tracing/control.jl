# cond, while_loop and scan: traced as in plain Julia.

include("../support/tracing.jl")

const xs = [0.3, -0.7, 1.2, 0.4]
const A = [0.1 0.5 -0.2; 0.9 -1.1 0.4]

@testset "cond" begin
    for x in (0.7, -0.7)
        @test agrees(x -> JaxprAD.cond(x > 0, sin, y -> 3y, x), x)
        on(y, z) = (y .* y[1], 1.0)
        off(y, z) = (z .^ 2, y[1])
        @test agrees(x -> JaxprAD.cond(x > 0, on, off, xs .* x, xs), x)
    end
    message = message_of(JaxprAD.TracingFailed,
        () -> trace(x -> JaxprAD.cond(x > 0, y -> [y], y -> y, x), 1.0))
    @test occursin("different structure", message)
end

@testset "while_loop" begin
    @test agrees(x -> while_loop(s -> s[1] < 100, s -> (s[1] * x, s[2] + x^2), (x, 0.0)), 1.7)
    power(x) = while_loop(s -> s[2] < 5, s -> (s[1] * x, s[2] + 1), (x, 0))[1]
    @test trace(power, 2.0)(2.0) == 64
    @test agrees(x -> while_loop(v -> sum(v) < 50, v -> v .* 2 .+ 1, abs.(x)), xs;
        derivative = false)
    @test occursin("must give one traced Bool",
        message_of(JaxprAD.TracingFailed,
        () -> trace(x -> while_loop(s -> true, s -> s, x), 1.0)))
    @test occursin("changes its structure",
        message_of(JaxprAD.TracingFailed,
        () -> trace(x -> while_loop(s -> sum(s) < 1, s -> sum(s), x), xs)))
end

@testset "scan" begin
    running(x) = scan((s, v) -> (s + v^2, s * v), x[1], x)
    @test agrees(running, xs)
    @test agrees(x -> scan((s, v) -> (0.5s + sin(v), s), 0.0, x; reverse = true), xs)
    @test agrees(A -> scan((s, c) -> (s .+ c, (sum(c), c .* s)), zeros(2), A), A)
    @test agrees(x -> scan((s, _) -> (s .* x, sum(s)), x, nothing; length = 5), xs)
    @test agrees(x -> scan((s, t) -> (s + t.a * t.b[1], s), 0.0, (a = x, b = [x x x x])), xs)
    @test agrees(x -> scan((s, k) -> ((s[1] + 1, s[2] * x), s[2]), (0, x), nothing;
    length = 4)[2], 1.3)
    @test scan((s, k) -> (s + k, s), 0, [1, 2, 3]) == (6, [0, 1, 3])
    inner(x) = scan((s, v) -> (scan((r, w) -> (r * v + w, r), s, x)[1], s), 1.0, x)[1]
    @test agrees(inner, xs)
    @test_throws DimensionMismatch scan((s, v) -> (s, s), 0.0, (xs, A))
    @test occursin("changes its structure",
        message_of(JaxprAD.TracingFailed, () -> trace(x -> scan((s, v) -> (x, v), 0.0, x), xs)))
end
