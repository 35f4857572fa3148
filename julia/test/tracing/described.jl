# Functions that requests describe, as Programs: what JAX sends, and what it gets.

include("../support/tracing.jl")
using JaxprAD: GlobalChanged, TensorType, TracedControlFlow, TracingFailed, aval, in_32_bits,
    program_text, same_state
using JaxprAD.Functions: Description, InputMutated, ResultMismatch, tree_text

describe(name, code, arguments; result = "-", inplace = 0, inputs = "auto", narrow = 0) =
    Description(
        "name $name\nsource code \ndigest $(bytes2hex(reinterpret(UInt8, [hash(code)])))\n" *
        "inplace $inplace\ninputs $inputs\narguments $arguments\nresult $result\n" *
        "narrow $narrow\n\n$code")
function described(arguments...; options...)
    d = describe(arguments...; options...)
    JaxprAD.Functions.home(d)
    Base.invokelatest(trace, d)
end
"The results for arrays as they lie in memory."
results(t, x...) = evaluate(t.program, Any[t.captured; collect(x)])

@testset "arrays have Python's order of indices" begin
    # memory of a matrix of JAX's is its transpose
    t = described("f", "f(A, x) = A * x", "( f64[2,3] f64[3] )")
    A, x = randn(3, 2), randn(3)
    @test tree_text(t.result) == "f64[2]" && results(t, A, x)[1] ≈ A' * x
    t = described("f", "f(x) = x[2, 1, 3]", "( f64[2,3,4] )")
    B = randn(4, 3, 2)
    @test results(t, B)[1][] == B[3, 1, 2]
    t = described("f", "f(x) = [100i + 10j + x for i in 1:2, j in 1:3]", "( f64[] )")
    @test results(t, fill(0.5))[1] == [100i + 10j + 0.5 for j in 1:3, i in 1:2]
end

@testset "trees" begin
    t = described("f", "f(m) = (z = m.w, a = (length(m.w), nothing))", "( { w f64[3] } )")
    @test tree_text(t.result) == "{ a ( i64[] none ) z f64[3] }"
    @test results(t, [1.0, 2.0, 3.0]) == [fill(3), [1.0, 2.0, 3.0]]
    t = described("f", "f(m) = (z = m, a = 2m)", "( f64[] )"; result = "{ z f64[] a f64[] }")
    @test results(t, fill(1.0)) == [fill(1.0), fill(2.0)]
    @test_throws ResultMismatch described("f", "f(m) = (m, m)", "( f64[] )"; result = "f64[]")
    @test_throws ResultMismatch described("f", "f(x) = Float32(x)", "( f64[] )"; result = "f64[]")
end

@testset "in place" begin
    code = "f!(out, x) = (for i in 1:2, j in 1:3; out[i, j] = x[i] * j; end)"
    t = described("f!", code, "( f64[2] )"; inplace = 1, result = "f64[2,3]")
    @test results(t, [1.0, 2.0])[1] == [x * j for j in 1:3, x in 1.0:2.0]
    @test t.program.name == "f"
end

@testset "writes to arguments" begin
    for body in ("x[1] = 2", "fill!(view(x, 1:2), 0)", "x .*= 2")
        code = "f(x) = ($body; x)"
        @test_throws InputMutated described("f", code, "( f64[3] )")
        @test results(described("f", code, "( f64[3] )"; inputs = "copy"), ones(3))[1] != ones(3)
    end
end

@testset "arrays of the source's" begin
    t = described("f", "const W = reshape(sin.(1:200), 10, 20)\nf(x) = W * x", "( f64[20] )")
    @test map(size, t.captured) == [(10, 20)]
    @test results(t, ones(20))[1] ≈ reshape(sin.(1:200), 10, 20) * ones(20)
    narrow = described("f", "const W = reshape(sin.(1:200), 10, 20)\nf(x) = W * x", "( f32[20] )";
        narrow = 1)
    @test eltype(narrow.captured[1]) === Float32 && !occursin("f64", program_text(narrow.program))
    @test tree_text(narrow.result) == "f32[10]"
    @test results(narrow, ones(Float32, 20))[1] ≈ reshape(sin.(1:200), 10, 20) * ones(20)
end

@testset "32 bits" begin
    code = """
        using JaxprAD
        f(x) = (argmax(x), minimum([typemax(Int), length(x)]) + (x[1] > 0), 0.5 * x[2])
        g(x) = scan((s, v) -> (s + v, 2.0 * s), 0.0, x)
        h(x) = x[1] + 2^40
        """
    t = described("f", code, "( f32[3] )"; narrow = 1)
    @test tree_text(t.result) == "( i32[] i32[] f32[] )" && !occursin("64", program_text(t.program))
    @test map(only, results(t, Float32[1, 3, 2])) == [2, 4, 1.5f0]
    t = described("g", code, "( f32[3] )"; narrow = 1)
    @test !occursin("64", program_text(t.program))
    @test results(t, Float32[1, 2, 3])[2] == Float32[0, 2, 6]
    @test_throws TracingFailed described("h", code, "( i32[3] )"; narrow = 1)
    p = described("h", code, "( i32[3] )").program
    @test occursin("i64", program_text(p)) && in_32_bits(TensorType(Float64)) == TensorType(Float32)
end

const STATE = """
mutable struct Tally
    calls::Int
end
const TABLE, CALLS, TALLY, SEEN, NOTES = zeros(3), Ref(0), Tally(0), Dict{Int,Any}(), Any[]
const STRUCTS = [Tally(1), Tally(2)]
total = 0.0
reads(x) = x .* sum(TABLE) .+ CALLS[] .+ TALLY.calls .+ length(SEEN) .+ total .+ STRUCTS[2].calls
adds(x) = (TABLE .+= 1; x)
increments(x) = (CALLS[] += 1; x)
tallies(x) = (TALLY.calls += 1; x)
inside(x) = (STRUCTS[2].calls += 1; x)
remembers(x) = (SEEN[1] = x; x)
notes(x) = (push!(NOTES, x); x)
rebinds(x) = (global total = 1.0; x)
"""
@testset "globals may be read, and not changed" begin
    @test results(described("reads", STATE, "( f64[3] )"), ones(3))[1] == fill(2.0, 3)
    changing = ("adds", "increments", "tallies", "inside", "remembers", "notes", "rebinds")
    @testset "$f" for f in changing
        @test_throws GlobalChanged described(f, STATE, "( f64[3] )")
    end
    # what refused functions have left in globals is no change of others'
    @test !isempty(results(described("reads", STATE, "( f64[3] )"), ones(3)))
    @testset "$f, again" for f in setdiff(changing, ("rebinds",))
        @test_throws GlobalChanged described(f, STATE, "( f64[3] )")
    end
    @test same_state(Dict(1 => [1.0]), Dict(1 => [1.0])) && !same_state(Any[1], Any[2])
end

@testset "lines" begin
    code = "g(x) = x > 0 ? x : -x\nf(x) = g(sin(x))"
    e = try
        described("f", code, "( f64[] )")
    catch e
        e
    end
    @test e isa TracedControlFlow && e.source == "source of julia_function:1 (g)"
    t = described("f", "function f(x)\n  sin(x)\nend", "( f64[] )")
    @test t.program.equations[1].source == "source of julia_function:2 (f)"
end

@testset "the request" begin
    d = "name f\nsource code \ndigest 1\ninplace 0\ninputs auto\narguments ( f64[100] )\n" *
        "result -\nnarrow 0\n\nconst W = collect(1:100.0)\nf(x) = W .* x"
    head, text = split(JaxprAD.serve("function_trace\n$d"), "\n\n"; limit = 2)
    lines = split(head, '\n')
    @test lines[1:3] == ["ok", "keep", "f64[100]"]
    @test lines[4] == "f64[100] " * bytes2hex(reinterpret(UInt8, collect(1:100.0)))
    @test map(aval, parse_program(String(text)).inputs) == fill(TensorType(Float64, [100]), 2)
end
