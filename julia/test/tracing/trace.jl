# Programs of functions: lines of code, loops, captured values, errors.

include("../support/tracing.jl")

function logistic_path(x, n)
    path = zeros(eltype(x), n)
    path[1] = x[1]
    for k in 2:n
        path[k] = 3.7 * path[k-1] * (1 - path[k-1])
    end
    path
end
function spiral(u, n)
    path = zeros(eltype(u), 2, n)
    path[:, 1] = u
    for k in 2:n
        @views path[:, k] .= path[:, k-1] .+ 0.01 .* [path[2, k-1], -sin(path[1, k-1])]
    end
    path
end
function bouncing(x, n)
    v = zero(eltype(x))
    y = copy(x)
    for k in 1:n, i in 1:length(y)
        v = 0.9v + 0.1y[i]
        y[i] += sin(v)
    end
    y
end
equations(t) = JaxprAD.count_equations(t.program)

@testset "the lines are those of the code" begin
    line = @__LINE__() + 1
    f(x) = sin(x) + 1
    e = trace(f, 1.0).program.equations[1]
    @test e.source == "trace.jl:$line (f)"
end

@testset "the text reads back" begin
    for t in (trace(logistic_path, [0.3], 200), trace(x -> JaxprAD.cond(x > 0, sin, cos, x), 1.0),
        trace(x -> x .* [1.0, 2.0] .* true, [1.0, 2.0]))
        p = t.program
        text = JaxprAD.program_text(p)
        @test JaxprAD.program_text(JaxprAD.typecheck(parse_program(text))) == text
    end
end

@testset "loops that write arrays: $f" for (f, x) in ((logistic_path, [0.3]), (spiral, [1.0, 0.5]))
    short, long = trace(f, x, 300), trace(f, x, 600)
    @test equations(long) == equations(short) < 80
    @test near(vec(long(x, 600)), vec(f(x, 600)), 1e-9) || f === logistic_path      # chaotic
    @test near(vec(short(x, 300))[1:40], vec(f(x, 300))[1:40], 1e-9)
    @test agrees(x -> f(x, 8), x; name = string(f))
    g = trace(x -> gradient(x -> sum(abs2, f(x, 600)), x), x)
    @test equations(g) < 500
end
@testset "a loop that mutates its argument" begin
    @test agrees(x -> bouncing(x, 3), [0.1, 0.7, -0.4])
    y = [0.1, 0.7]
    gradient(x -> sum(bouncing(x, 2)), y)
    @test y == [0.1, 0.7]
end

@testset "captured arrays" begin
    large = randn(seeded("large"), 20, 20)
    t = trace(x -> large * x, zeros(20))
    @test length(t.captured) == 1 && length(t.program.inputs) == 2
    @test t(ones(20)) ≈ vec(sum(large; dims = 2))
    # what changes while it is traced
    buffer = zeros(100)
    f(x) = (buffer .= 1; y = sum(x .* buffer); buffer .= 2; y + sum(x .* buffer))
    @test trace(f, ones(100))(ones(100)) == 300
end

@testset "control flow on traced values" begin
    bad(x) = x > 0 ? x : -x
    message = message_of(JaxprAD.TracedControlFlow, () -> trace(bad, 1.0))
    @test occursin("JaxprAD.cond", message) && occursin("while_loop", message) &&
          occursin("scan", message) && occursin("trace.jl:", message) && occursin("(bad)", message)
    both(x) = x > 0 && x < 1
    @test occursin("(both)", message_of(JaxprAD.TracedControlFlow, () -> trace(both, 1.0)))
    endless(x) = (while x < 10; x = 2x; end; x)
    @test occursin("(endless)", message_of(JaxprAD.TracedControlFlow, () -> trace(endless, 1.0)))
    upto(x) = sum(k for k in 1:Int(floor(x)))
    @test occursin("cond", message_of(JaxprAD.TracedControlFlow, () -> trace(upto, 3.0)))
    @test occursin("cond", message_of(JaxprAD.TracedControlFlow, () -> gradient(bad, 1.0)))
end

@testset "other errors" begin
    failing(x) = error("out of coffee")
    message = message_of(JaxprAD.TracingFailed, () -> trace(failing, 1.0))
    @test occursin("out of coffee", message) && occursin("trace.jl:", message)
    kept = Ref{Any}()
    trace(x -> (kept[] = x; x), 1.0)
    @test occursin("outside of its trace", message_of(JaxprAD.EscapedTracer, () -> kept[] + 1))
    @test occursin("outside of its trace",
        message_of(JaxprAD.EscapedTracer, () -> trace(y -> kept[] * y, 1.0)))
    writes(x) = scan((s, v) -> (x[1] = v; (s, v)), 0.0, x)[2]
    @test occursin("is written to", message_of(JaxprAD.EscapedTracer,
    () -> trace(writes, [1.0, 2.0])))
    @test occursin("Float64", message_of(JaxprAD.TracedConversion,
    () -> trace(x -> Float64[x, 1.0], 1.0)))
end
