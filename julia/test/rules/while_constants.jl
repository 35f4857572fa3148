# What is the same in every trip of a while loop is no carry.

r = seeded("while_constants")
only_loop(p) = only(e for e in p.equations if name_of(e) in (:while, :while_passes))

# Until the sum is over a limit, which is carried along, as is the array of which the sum is made.
growing(limit) = """(%0: f64[4], %1: f64[], %2: f64[]) {
  %3: f64[4] = broadcast_in_dim %2 {shape=[4], dims=[]}
  %4: f64[], %5: f64[4], %6: f64[4], %7: f64[4] = while $limit %0 %3 %0 {cond_consts=0,
    body_consts=0, bound=none, cond=(%0: f64[], %1: f64[4], %2: f64[4], %3: f64[4]) {
    %4: f64[] = reduce_sum %3 {axes=[0]}
    %5: bool[] = lt %4 %0
    return %5
  }, body=(%0: f64[], %1: f64[4], %2: f64[4], %3: f64[4]) {
    %4: f64[4] = mul %1 %2
    %5: f64[4] = tanh %4
    %6: f64[4] = exp %5
    %7: f64[4] = add %3 %6
    return %0 %1 %2 %7
  }}
  return %7 %6 %4 }"""

@testset "a while loop, $limit" for limit in ("%1", "2.5:f64")
    x = Any[rand(r, 4) ./ 9, fill(3.0), fill(0.3)]
    check(growing(limit), x...; active = [true, false, true])
    p = typecheck(JaxprAD.optimize(program(growing(limit))))
    loop = only_loop(p)
    @test length(loop.outputs) == 1 && loop[:cond_consts] == 1
    # the broadcast is inside
    @test p.inputs[3] in loop.inputs
    @test relative_error(run(p, x), run(program(growing(limit)), x)) < 1e-14
    @test native_agrees(p, x)
end

@testset "passes over its trips: the cotangent that no trip changes" begin
    x = Any[rand(r, 4) ./ 9, fill(3.0), fill(0.3)]
    text = """(%0: f64[4], %1: f64[], %2: f64[]) {
      %3: f64[4] = broadcast_in_dim 0.0:f64 {shape=[4], dims=[]}
      %4: f64[], %5: f64[4] = while %1 %2 0.0:f64 %3 {cond_consts=1, body_consts=1, bound=none,
        cond=(%0: f64[], %1: f64[], %2: f64[4]) { %3: bool[] = lt %1 %0 return %3 },
        body=(%0: f64[], %1: f64[], %2: f64[4]) {
        %3: f64[] = add %1 0.5:f64
        %4: f64[] = mul %0 %3
        %5: f64[] = sin %4
        %6: f64[4] = broadcast_in_dim %5 {shape=[4], dims=[]}
        %7: f64[4] = add %2 %6
        return %3 %7 }}
      %6: f64[4] = mul %5 %0
      %7: f64[] = reduce_sum %5 {axes=[0]}
      return %7 }"""
    check(text, x...; active = [true, false, true])
    p = JaxprAD.vjp(program(text), [false, false, true])
    optimized = typecheck(JaxprAD.optimize(p))
    loop = only(e for e in optimized.equations if name_of(e) === :while_passes)
    # The passes carry the counter and the sum of c's cotangents, and no array.
    @test all(a -> isempty(JaxprAD.shape(a)), loop.inputs)
    y = vcat(x, Any[fill(0.7)])
    @test relative_error(run(optimized, y), run(p, y)) < 1e-14
    @test native_agrees(optimized, y)
end

@testset "a loop that nothing ends is left" begin
    text = """(%0: bool[], %1: f64[]) {
      %2: bool[] = while %0 {cond_consts=0, body_consts=0, bound=none,
        cond=(%0: bool[]) { return %0 }, body=(%0: bool[]) { return %0 }}
      return %2 }"""
    @test name_of(only(JaxprAD.optimize(program(text)).equations)) === :while
end
