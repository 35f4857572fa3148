# Chains of factors on one tangent.

using JaxprAD: linearize

linear_part(text) = optimize(linearize(program(text); compact = true).linear)
operations(p::Program) = sort!([string(JaxprAD.name(e.op)) for e in p.equations])

@testset "a chain of factors is one" begin
    l = linear_part("(%0: f64[5]) { %1: f64[5] = sin %0 %2: f64[5] = exp %1
      %3: f64[5] = mul 3.0:f64 %2 %4: f64[5] = tanh %3 return %4 }")
    @test operations(l) == ["mul"]
    # One step of the unrolled loop x *= p² - p³ - p.
    l = linear_part(
        "(%0: f64[], %1: f64[]) { %2: f64[] = integer_pow %0 {y=2}
%3: f64[] = integer_pow %0 {y=3} %4: f64[] = sub %2 %3 " *
        "%5: f64[] = sub %4 %0 %6: f64[] = mul %1 %5 return %6 }"
    )
    @test operations(l) == ["add", "mul", "mul"] && length(l.inputs) == 4
end

@testset "a difference of multiples of one tangent" begin
    # The tangent of atan2 is one: here that of the angle by itself.
    l = linearize(
        program("(%0: f64[]) { %1: f64[] = sin %0 %2: f64[] = cos %0
          %3: f64[] = atan2 %1 %2 return %3 }");
        compact = true)
    @test operations(optimize(l.linear)) == ["mul"]
    residuals = run(l.known, [fill(0.3)])[2:end]
    @test run(l.linear, vcat(residuals, [fill(2.0)]))[1][] ≈ 2
end

@testset "literals whose product is out of range stay apart" begin
    for (a, b) in (("3e38", "2e20"), ("3e-38", "2e-20"), ("-3e38", "2.0"))
        p = program("""(%0: f32[]) { %1: f32[] = mul %0 1e-30:f32 %2: f32[] = mul $a:f32 %1
          %3: f32[] = mul $b:f32 %2 return %3 }""")
        y = run(JaxprAD.preaccumulate(p, p.inputs), [fill(1.0f0)])[1][]
        @test isapprox(y, run(p, [fill(1.0f0)])[1][]; rtol = 1e-5)
    end
    p = program("(%0: f32[]) { %1: f32[] = mul 3e38:f32 %0 %2: f32[] = add %1 %1 return %2 }")
    @test run(JaxprAD.preaccumulate(p, p.inputs), [fill(1.0f-3)])[1][] ≈ 6.0f35
end

@testset "what is used twice: scalars are multiplied out, arrays are not" begin
    text(t) = "(%0: $t, %1: $t) { %2: $t = exp %0 %3: $t = sin %2 %4: $t = cos %2
      %5: $t = mul %4 %1 return %3 %5 }"
    # of e: cos e · e, -sin e · e · y, cos e
    @test linearize(program(text("f64[]")); compact = true).residuals == 3
    # e, cos e, -sin e, y or products of these
    @test linearize(program(text("f64[4]")); compact = true).residuals == 4
end

"""
Scalar Programs in which tangents are added, subtracted, negated, multiplied and
divided at random."""
function random_chain(r)
    lines, k, values = String[], 1, ["%0", "%1"]
    for _ in 1:rand(r, 3:25)
        a, b = rand(r, values), rand(r, values)
        ex =
            rand(
                r,
                ["sin $a", "neg $a", "add $a $b", "sub $a $b", "mul $a $b", "mul 0.5:f64 $a",
                    "div $a 3.0:f64", "tanh $a", "sub $a $a", "exp 0.25:f64"]
            )
        push!(lines, "%$(k += 1): f64[] = $ex")
        push!(values, "%$k")
    end
    "(%0: f64[], %1: f64[]) { $(join(lines, "\n")) return %$k $(rand(r, values)) }"
end

@testset "random chains" begin
    r = MersenneTwister(5)
    for _ in 1:200
        p, x, ẋ = (program(random_chain(r)), Any[fill(randn(r)), fill(randn(r))],
            Any[fill(randn(r)), fill(randn(r))])
        h = 1e-6
        moved(s) = run(p, Any[fill(a[] + s * h * t[]) for (a, t) in zip(x, ẋ)])
        expected = [(a[] - b[]) / 2h for (a, b) in zip(moved(1), moved(-1))]
        j = JaxprAD.jvp(p)
        y = run(JaxprAD.preaccumulate(j, j.inputs[3:4]), vcat(x, ẋ))[3:4]
        @test relative_error(y, run(j, vcat(x, ẋ))[3:4]) < 1e-12
        @test all(abs(a[] - b) <= 1e-6 * (1 + abs(b)) for (a, b) in zip(y, expected))
        x̄ = run(JaxprAD.vjp(p), vcat(x, Any[fill(1.0), fill(2.0)]))
        @test isapprox(x̄[1][] * ẋ[1][] + x̄[2][] * ẋ[2][], y[1][] + 2y[2][]; rtol = 1e-10,
            atol = 1e-10)
    end
end
