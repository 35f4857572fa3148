# The user's rules here are wrong by a factor of three on purpose: it shows that
# they are what is used.
const CUSTOM_JVP = """(%0: f64[2]) {
  %1: f64[2] = custom_jvp %0 {call=(%0: f64[2]) {
    %1: f64[2] = sin %0
    return %1
  }, jvp=(%0: f64[2], %1: f64[2]) {
    %2: f64[2] = sin %0
    %3: f64[2] = mul %1 3.0:f64
    return %2 %3
  }}
  return %1
}"""
const CUSTOM_VJP = """(%0: f64[2], %1: i32[]) {
  %2: f64[2] = custom_vjp %0 %1 {call=(%0: f64[2], %1: i32[]) {
    %2: f64[2] = sin %0
    return %2
  }, fwd=(%0: f64[2], %1: i32[]) {
    %2: f64[2] = sin %0
    return %2 %0
  }, bwd=(%0: f64[2], %1: f64[2]) {
    %2: f64[2] = mul %1 3.0:f64
    %3: f64[2] = mul %2 %0
    return %3
  }}
  return %2
}"""
x, ȳ = [0.3, -0.8], [1.0, 2.0]
@testset "custom_jvp" begin
    p = program(CUSTOM_JVP)
    @test run(p, [x])[1] ≈ sin.(x)
    @test run(jvp(p), [x, ȳ]) ≈ [sin.(x), 3ȳ]
    @test run(vjp(p), [x, ȳ]) == [3ȳ]
    @test all(wellformed, (jvp(p), vjp(p), vjp(vjp(p)), jvp(vjp(p))))
end
@testset "custom_vjp" begin
    p = program(CUSTOM_VJP)
    @test run(p, [x, fill(Int32(1))])[1] ≈ sin.(x)
    @test run(vjp(p), [x, fill(Int32(1)), ȳ])[1] ≈ 3ȳ .* x
    # the rule's own derivative: d/dx of 3ȳx
    @test run(vjp(vjp(p)), [x, fill(Int32(1)), ȳ, ones(2)])[1] ≈ 3ȳ
    @test run(jvp(vjp(p)), [x, fill(Int32(1)), ȳ, ones(2), zeros(2)])[2] ≈ 3ȳ
    err = try
        run(jvp(p), [x, fill(Int32(1)), ȳ])
    catch e
        e
    end
    @test err isa JaxprAD.NotDifferentiable && occursin("custom_vjp", sprint(showerror, err))
end
@testset "a rule inside a scan is used" begin
    p = program("""(%0: f64[]) {
      %1: f64[] = scan %0 {length=2, reverse=false, consts=0, carry=1, unroll=1, body=(%0: f64[]) {
        %1: f64[] = custom_jvp %0 {call=(%0: f64[]) {
          return %0
        }, jvp=(%0: f64[], %1: f64[]) {
          %2: f64[] = mul %1 3.0:f64
          return %0 %2
        }}
        return %1
      }}
      return %1
    }""")
    @test run(vjp(p), [fill(0.5), fill(1.0)])[1][] == 9
end
@testset "a rule inside a scan is used for second derivatives too" begin
    # The value is x; the derivative, by the rule, 3x. Residuals of the loop are
    # values of the custom call.
    rule(inner) =
        "custom_jvp %0 {call=(%0: f64[]) {\n return %0\n}, jvp=(%0: f64[], %1: f64[]) {\n" *
        "%2: f64[] = $inner\n%3: f64[] = mul %1 3.0:f64\n%4: f64[] = " *
        "mul %3 %0\nreturn %2 %4\n}}"
    p = program("""(%0: f64[]) {
      %1: f64[] = scan %0 {length=2, reverse=false, consts=0, carry=1, unroll=1, body=(%0: f64[]) {
        %1: f64[] = $(rule(rule("copy %0")))
        return %1
      }}
      return %1
    }""")
    x = [fill(0.5), fill(1.0)]
    @test run(vjp(p), x)[1][] ≈ 9 * 0.5^2
    @test run(jvp(vjp(p)), [x; [fill(1.0), fill(0.0)]])[2][] ≈ 9 * (0.5 + 0.5 * 3 * 0.5)
end
@testset "a custom call that is linear is transposed by its plain body" begin
    p = program("""(%0: f64[2], %1: f64[2]) {
      %2: f64[2] = custom_jvp %0 %1 {call=(%0: f64[2], %1: f64[2]) {
        %2: f64[2] = mul %0 %1
        return %2
      }, jvp=(%0: f64[2], %1: f64[2], %2: f64[2], %3: f64[2]) {
        return %0 %2
      }}
      return %2
    }""")
    @test run(JaxprAD.transpose(p, [true, false]), [[2.0, 3.0], ȳ]) == [[2.0, 3.0] .* ȳ]
end
@testset "a custom_vjp tangent that nothing uses does not stand in the way of forward mode" begin
    p = program(CUSTOM_VJP)
    gradient = JaxprAD.select_outputs(vjp(p; value = true), [false, true])
    @test run(jvp(gradient), [x, fill(Int32(1)), ȳ, ones(2), zeros(2)])[2] ≈ 3ȳ
end
