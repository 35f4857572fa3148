wave = """(%0: f64[40,30], %1: f64[30], %2: f64[40,50], %3: f64[50,30]) {
  %4: f64[40,30] = broadcast_in_dim %1 {shape=[40, 30], dims=[1]} %5: f64[40,30] = mul %4 %0
    %6: f64[40,30] = sin %5 %7: f64[40,30] = mul %6 %6
  %8: f64[40,30] = dot_general %2 %3 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[],
    rhs_batch=[], dtype=f64, precision=none}
  %9: f64[40,30] = tanh %8 %10: f64[40,30] = mul %9 %7 return %10 }"""

@testset "large residuals that are cheap are computed again" begin
    l = linearize(program(wave))
    shorter = JaxprAD.rematerialize(l)
    residuals(l) = l.known.outputs[end-l.residuals+1:end]
    @test any(!in(l.known.inputs), residuals(l)) && !isempty(residuals(shorter))
    # The sines are gone; the matrix product, and what needs it, stays.
    @test !any(e -> name_of(e) in (:sin, :cos) && any(in(residuals(shorter)), e.outputs),
        shorter.known.equations)
    @test any(e -> name_of(e) === :dot_general, shorter.known.equations) &&
          !any(e -> name_of(e) === :dot_general, shorter.linear.equations[1:3])
    @test wellformed(shorter.known) && wellformed(shorter.linear)
    rng = seeded("recompute")
    x = Any[normal(rng, Float64, s) for s in ([40, 30], [30], [40, 50], [50, 30])]
    ẋ = Any[like(rng, v) for v in x]
    tangents(l) = (known = run(l.known, x); run(l.linear, vcat(known[end-l.residuals+1:end], ẋ)))
    @test relative_error(tangents(shorter), tangents(l)) < 1e-14
    @test run(shorter.known, x)[1] == run(l.known, x)[1]
end

@testset "what is small or expensive is kept" begin
    small = linearize(program("(%0: f64[3]) { %1: f64[3] = sin %0 return %1 }"))
    @test JaxprAD.rematerialize(small) === small
    sums = linearize(program("(%0: f64[2000]) { %1: f64[2000] = cumsum %0 {axis=0, reverse=false}
      %2: f64[2000] = sin %1 return %2 }"))
    @test JaxprAD.rematerialize(sums) === sums
end

@testset "a result is no residual where what is kept besides gives it" begin
    # y = sin(a x)² / a: the derivative by a needs y, and x in any case.
    seed = linearize(program("""(%0: f32[], %1: f32[64,64]) {
      %6: f32[64,64] = broadcast_in_dim %0 {shape=[64, 64], dims=[]}
      %2: f32[64,64] = mul %6 %1 %3: f32[64,64] = sin %2 %4: f32[64,64] = integer_pow %3 {y=2}
        %5: f32[64,64] = div %4 %6 return %5 }"""))
    shorter = JaxprAD.rematerialize(seed)
    @test all(in(shorter.known.inputs), shorter.known.outputs[2:end])
    @test wellformed(shorter.known) && wellformed(shorter.linear)
    x, ẋ = (Any[fill(1.5f0), normal(seeded("result"), Float32, [64, 64])],
        Any[fill(1.0f0), normal(seeded("tangent"), Float32, [64, 64])])
    tangents(l) = (known = run(l.known, x); run(l.linear, vcat(known[end-l.residuals+1:end], ẋ)))
    @test relative_error(tangents(shorter), tangents(seed)) < 1e-6
    # Of exp only the result is needed, and stays in place of the operand.
    power = linearize(program("(%0: f64[2000]) { %1: f64[2000] = exp %0 return %1 }"))
    @test JaxprAD.rematerialize(power) === power
end

@testset "what is computed from much smaller arrays is not kept" begin
    # softmax: of the rows' greatest elements and sums, and the operand, all follows
    softmax(greatest) = linearize(program("""(%0: f32[64,128]) {
      %1: f32[64] = reduce_max %0 {axes=[1]} %10: f32[64] = $greatest %1
      %2: f32[64,128] = broadcast_in_dim %10 {shape=[64, 128], dims=[0]}
      %3: f32[64,128] = sub %0 %2 %4: f32[64,128] = exp %3
      %5: f32[64] = reduce_sum %4 {axes=[1]}
      %6: f32[64,128] = broadcast_in_dim %5 {shape=[64, 128], dims=[0]}
      %7: f32[64,128] = div %4 %6 %8: f32[64,128] = integer_pow %7 {y=2}
      %9: f32[] = reduce_sum %8 {axes=[0, 1]} return %9 }"""))
    full = softmax("stop_gradient")
    shorter = JaxprAD.rematerialize(full)
    large = [v for v in shorter.known.outputs[2:end] if ndims(JaxprAD.aval(v)) == 2]
    @test large == shorter.known.inputs
    @test wellformed(shorter.known) && wellformed(shorter.linear)
    x, ẋ = (Any[normal(seeded(s), Float32, [64, 128])] for s in ("softmax", "its tangent"))
    tangents(l) = (known = run(l.known, x); run(l.linear, vcat(known[end-l.residuals+1:end], ẋ)))
    @test relative_error(tangents(shorter), tangents(full)) < 1e-6
    # Which elements are the greatest is asked again of what is in memory, and there alone: XLA may
    # have rounded other elements otherwise.
    compared(p) = any(e -> name_of(e) === :eq, p.equations)
    again = JaxprAD.rematerialize(softmax("copy"))
    large = [v for v in again.known.outputs[2:end] if ndims(JaxprAD.aval(v)) == 2]
    @test large == again.known.inputs && compared(again.linear)
    barrier = only(e for e in again.linear.equations if name_of(e) === :optimization_barrier)
    @test barrier.inputs[1] in again.linear.inputs
    computed = JaxprAD.rematerialize(linearize(program("""(%0: f32[64,128]) {
      %1: f32[64,128] = mul %0 %0 %2: f32[64] = reduce_max %1 {axes=[1]} return %2 }""")))
    @test compared(computed.known) && !compared(computed.linear)
end

@testset "one residual from another, or several from one" begin
    product = """%4: f64[40,30] = dot_general %1 %2 {lhs_contract=[1], rhs_contract=[0],
      lhs_batch=[], rhs_batch=[], dtype=f64, precision=none}"""
    layers(equations) = linearize(program("""(%0: f64[40,30], %1: f64[40,50], %2: f64[50,30]) {
      $product $equations return %9 }"""))
    large(l) = [v for v in l.known.outputs[end-l.residuals+1:end]
                if !(v in l.known.inputs) && ndims(JaxprAD.aval(v)) == 2]
    rng = seeded("one from another")
    x = Any[normal(rng, Float64, s) for s in ([40, 30], [40, 50], [50, 30])]
    ẋ = Any[like(rng, v) for v in x]
    tangents(l) = (known = run(l.known, x); run(l.linear, vcat(known[end-l.residuals+1:end], ẋ)))
    same(a, b) = wellformed(a.known) && wellformed(a.linear) &&
                 relative_error(tangents(a), tangents(b)) < 1e-14
    # exp(u) and -2 exp(u): the second follows from the first.
    first_ = layers("""%5: f64[40,30] = exp %4 %6: f64[40,30] = mul %5 %0
      %7: f64[40,30] = mul -2.0:f64 %5 %8: f64[40,30] = mul %7 %6 %9: f64[40,30] = sin %8""")
    # 2 u and u + 1: neither gives the other, u gives both.
    second = layers("""%5: f64[40,30] = mul 2.0:f64 %4 %6: f64[40,30] = add 1.0:f64 %4
      %7: f64[40,30] = mul %5 %0 %8: f64[40,30] = mul %6 %0 %9: f64[40,30] = mul %7 %8""")
    # a comparison as numbers: as one byte each
    third = layers("""%5: bool[40,30] = gt %4 0.0:f64
      %6: f64[40,30] = convert_element_type %5 {dtype=f64} %9: f64[40,30] = mul %6 %0""")
    for (l, before) in ((first_, 2), (second, 2), (third, 1))
        shorter = JaxprAD.rematerialize(l)
        @test length(large(l)) >= before && length(large(shorter)) == 1 && same(shorter, l)
    end
    @test JaxprAD.dtype(large(JaxprAD.rematerialize(third))[1]) === Bool
end
