# Comparisons of derivatives: right ones agree, and of wrong ones it is said where.

include("../support/tracing.jl")
using JaxprAD: NumberMath, TracedReal, number_op
using JaxprAD.Testing: disagreement, title

struct Rates{T}
    growth::T
    decay::T
end

const A = randn(seeded("A"), 4, 3)
const POSITIVE = abs.(randn(seeded("positive"), 6)) .+ 0.1

softmax(x) = exp.(x) ./ sum(exp.(x))

@testset "right: $k" for (k, (f, x)) in enumerate([
    sin => (0.7,), (x -> x .^ 2) => ([1.0, -2.0],), (x -> 3x) => ([0.0, 0.0],),
    ((p, x) -> tanh.(p.w * x .+ p.b)) => ((w = A, b = ones(4)), [0.1, 2.0, -1.0]),
    (x -> sum(log.(x) ./ sqrt.(x))) => (POSITIVE,),
    ((x, n) -> x^n) => (1.3, 5), (x -> (sum(x), argmax(x), x .> 0)) => ([1.0, 3.0],),
    ((r, x) -> r.growth * x - r.decay) => (Rates(0.3, 0.2), 2.0),
    (x -> x[1] .* x[2]) => ([[1.0, 2.0], [3.0, 4.0]],),
    (z -> z .^ 2 .* exp.(z)) => ([0.3 + 1im, -0.2 + 0.5im],),
    (x -> sum(exp.(x))) => (Float32[0.5, -1, 2],), (x -> softmax(x)) => (randn(seeded("s"), 5),),
    (d -> d["a"] * sum(d["b"])) => (Dict("a" => 2.0, "b" => [1.0, 2.0]),),
    (x -> (x .= x .^ 2; sum(x) * x[1])) => ([1.0, 2.0],), (x -> log(x + 1)) => (-0.99,),
    (x -> scan((s, v) -> (s * v, s), 1.0, x)) => ([1.0, 0.5, 2.0],)])
    before = deepcopy(x)
    report = check_derivatives(f, x...)
    @test failures(report) == []
    @test repr(x) == repr(before)
end

# Rules that are wrong, as a user may give them: of traced numbers only. The values are functions
# that kernels may call, which throw nothing.
if !haskey(JaxprAD.PRIMITIVES, :tripled_tangent)
    JaxprAD.@unary(:tripled_tangent, NumberMath.sin;
        tangents = ((t, y, x) -> 3 * (t * cos(x)),))
    JaxprAD.@unary(:wrong_curvature, NumberMath.cos;
        tangents = ((t, y, x) -> -2 * (t * sin(x)),))
    JaxprAD.@unary(:wrong_second, NumberMath.sin;
        tangents = ((t, y, x) -> t * JaxprAD.apply(:wrong_curvature, x),))
    JaxprAD.@unary(:wrong_transpose, -; transpose = (ȳ, x) -> (3 * -ȳ,),
        tangents = ((t, y, x) -> JaxprAD.apply(:wrong_transpose, t),))
end
for (f, plain, op) in ((:tripled, :sin, :tripled_tangent), (:bent, :sin, :wrong_second),
    (:flipped, :-, :wrong_transpose), (:shifted, :cos, :sin))
    @eval $f(x::Real) = $plain(x)
    @eval $f(x::TracedReal) = number_op($(QuoteNode(op)), x)
end

"The titles of what a function with arguments `good` and `bad.rate` does not pass."
function wrong(g; options...)
    f(good, bad) = sum(exp.(good)) .* g.(bad.rate)
    sort!(map(title, failures(check_derivatives(f, [0.3, 1.1], (rate = [0.4, 0.9],); options...))))
end

@testset "the argument that is off is named" begin
    @test wrong(sin) == []
    @test wrong(tripled; order = 1) == ["bad.rate: JVP", "bad.rate: VJP"]
    @test wrong(flipped; order = 1) == ["bad.rate: VJP", "bad.rate: ȳ·Jẋ = Jᵀȳ·ẋ"]
    @test wrong(bent; order = 1) == [] && "bad.rate: HVP" in wrong(bent)
    @test "value" in wrong(shifted; order = 0)
    message = disagreement(failures(check_derivatives(tripled, 0.0; order = 1))[1])
    @test occursin("x1: JVP: ẏ ", message) && occursin("by differences", message)
    @test occursin("off by 0.67, allowed 5.5e-7", message)
end

@testset "a Hessian that is not symmetric" begin
    # ∂f/∂y is wrong by a term in x, so that the mixed derivatives differ
    p = program("""(%0: f64[], %1: f64[]) {
      %2: f64[] = custom_jvp %0 %1 {call=(%0: f64[], %1: f64[]) {
        %2: f64[] = mul %0 %1
        return %2
      }, jvp=(%0: f64[], %1: f64[], %2: f64[], %3: f64[]) {
        %4: f64[] = mul %0 %1
        %5: f64[] = mul %1 %2
        %6: f64[] = mul %0 %0
        %7: f64[] = mul %6 %3
        %8: f64[] = add %5 %7
        return %4 %8
      }}
      return %2
    }""")
    number = JaxprAD.NumberLeaf()
    f = JaxprAD.TracedFunction(p, [], ["x", "y"],
        JaxprAD.Container(Tuple, (number, number)), number)
    names = map(title, failures(check_derivatives(f, 2.0, 3.0)))
    @test "symmetry of the Hessian" in names && "y: JVP" in names && !("x: JVP" in names)
    # at x = 1 the first derivatives are right
    @test map(title, failures(check_derivatives(f, 1.0, 3.0; order = 1))) == []
end

@testset "a rule for reverse mode only" begin
    rule(factor) = load_rule("""(%0: f64[2]) {
      %1: f64[2] = custom_vjp %0 {call=(%0: f64[2]) {
        %1: f64[2] = sin %0
        return %1
      }, fwd=(%0: f64[2]) {
        %1: f64[2] = sin %0
        return %1 %0
      }, bwd=(%0: f64[2], %1: f64[2]) {
        %2: f64[2] = cos %0
        %3: f64[2] = mul %1 %2
        %4: f64[2] = mul %3 $factor:f64
        return %4
      }}
      return %1
    }""")
    vector = JaxprAD.ArrayLeaf()
    load_rule(text) = JaxprAD.TracedFunction(program(text), [], ["angles"],
        JaxprAD.Container(Tuple, (vector,)), vector)
    right = check_derivatives(rule(1.0), [0.2, 0.7])
    @test failures(right) == [] && !any(c -> c.kind == "JVP", right.checks)
    @test any(c -> c.kind == "HVP", right.checks)
    wrong = check_derivatives(rule(2.0), [0.2, 0.7]; order = 1)
    @test map(title, failures(wrong)) == ["angles: VJP"]
end

@testset "tolerances" begin
    off(x) = sin(x)
    off(x::TracedReal) = sin(x) * (1 + 1e-9)
    @test failures(check_derivatives(off, 0.3)) == []
    @test map(title, failures(check_derivatives(off, 0.3; order = 0, rtol = 1e-10))) == ["value"]
    # steps that are long enough to cross a kink do not count
    @test failures(check_derivatives(x -> abs(x - 1.01), 1.0; order = 1)) == []
    message = disagreement(failures(check_derivatives(x -> cbrt(x - 1), 1.0; order = 1))[1])
    @test occursin("do not settle", message)
end

@testset "native code" begin
    @test failures(check_derivatives(x -> sum(sin.(x) .^ 2), POSITIVE; native = true)) == []
    names = map(title, failures(check_derivatives(tripled, 0.4; native = true, order = 1)))
    @test names == ["x1: JVP", "x1: VJP"]
    halved(x) = while_loop(v -> v > 1, v -> v / 2, x)
    @test failures(check_derivatives(halved, 5.3; native = true)) == []
end

@testset "reports" begin
    report = check_derivatives(tripled, 0.4; order = 1)
    @test sprint(show, report) == "derivatives of tripled: 2 of 4 comparisons disagree"
    text = sprint(show, MIME("text/plain"), report)
    @test count(isequal('\n'), text) == 4 && occursin(r"x1: VJP +0\.67  x̄·ẋ", text)
end

@testset "what cannot be compared" begin
    @test_throws ArgumentError check_derivatives(sin, 1)
    @test_throws ArgumentError check_derivatives(x -> x > 0, 1.0)
    @test_throws ArgumentError check_derivatives(sin, 1.0; order = 3)
    @test_throws JaxprAD.TracedControlFlow check_derivatives(x -> x > 0 ? x : -x, 1.0)
    @test_throws ArgumentError check_derivatives(sqrt, 0.0)
end

@testset "rules of the user's" begin
    f(p, x) = sum(p.w .* x) + p.b
    rule(factor) = ((p, x), (ṗ, ẋ)) -> (f(p, x), sum(ṗ.w .* x) + sum(p.w .* ẋ) + factor * ṗ.b)
    p, x = (w = [0.3, -0.7], b = 0.4), [1.2, 0.5]
    @test isempty(failures(check_derivatives(custom_jvp(f, rule(1)), p, x)))
    wrong = failures(check_derivatives(custom_jvp(f, rule(1.01)), p, x))
    @test !isempty(wrong) && all(c -> occursin(".b", c.argument), wrong)
    reverse_rule(factor) = custom_vjp((x, a) -> a * sum(x), (x, a) -> (a * sum(x), (x, a)),
        ((x, a), ȳ) -> (fill(a * ȳ, length(x)), factor * ȳ * sum(x)))
    @test isempty(failures(check_derivatives(reverse_rule(1), x, 3.0)))
    @test !isempty(failures(check_derivatives(reverse_rule(2), x, 3.0; order = 1)))
end
