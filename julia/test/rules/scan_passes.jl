# What is the same in every trip is no carry and no slice, and two loops may be one.

r = seeded("scan_passes")
only_loop(p) = only(e for e in p.equations if name_of(e) === :scan)

@testset "constants, reverse=$reverse" for reverse in (false, true)
    text = """(%0: f64[3], %1: f64[3], %2: f64[], %3: f64[4]) {
      %4: f64[4,3] = broadcast_in_dim %2 {shape=[4, 3], dims=[]}
      %5: f64[3] = broadcast_in_dim %2 {shape=[3], dims=[]}
      %6: f64[3] = broadcast_in_dim 2.0:f64 {shape=[3], dims=[]}
      %7: f64[4,3] = broadcast_in_dim %0 {shape=[4, 3], dims=[1]}
      %8: f64[4,3] = broadcast_in_dim %3 {shape=[4, 3], dims=[0]}
      %9: f64[4] = broadcast_in_dim 0.5:f64 {shape=[4], dims=[]}
      %10: f64[3], %11: f64[3], %12: f64[4] = scan %5 %6 %0 %1 %4 %7 %8 %9 {length=4,
        reverse=$reverse, consts=2, carry=2, unroll=1, body=(%0: f64[3], %1: f64[3], %2: f64[3],
        %3: f64[3], %4: f64[3], %5: f64[3], %6: f64[3], %7: f64[]) {
        %8: f64[3] = mul %0 %2
        %9: f64[3] = mul %1 %4
        %10: f64[3] = mul %5 %6
        %11: f64[3] = add %8 %9
        %12: f64[3] = add %11 %10
        %13: f64[3] = sin %12
        %14: f64[3] = add %3 %13
        %15: f64[] = reduce_sum %14 {axes=[0]}
        %16: f64[] = mul %15 %7
        return %2 %14 %16
      }}
      %13: f64[3] = mul %10 %11
      return %13 %12 %10
    }"""
    check(text, randn(r, 3), randn(r, 3), fill(0.3), randn(r, 4))
    p = JaxprAD.optimize(program(text))
    loop = only_loop(p)
    # The unchanged carry, the two numbers and the row are constants; of the slices one is left.
    @test loop[:carry] == 1 && map(ndims ∘ aval, loop.inputs[loop[:consts]+2:end]) == [1]
    @test all(a -> ndims(aval(a)) <= 1, loop.inputs) && p.outputs[3] === p.inputs[1]
    x = Any[randn(r, 3), randn(r, 3), fill(0.3), randn(r, 4)]
    @test relative_error(run(p, x), run(program(text), x)) < 1e-14
    @test native_agrees(p, x)
end

@testset "a loop that changes nothing is none" begin
    text = """(%0: f64[3], %1: f64[4]) {
      %2: f64[3] = scan %0 %1 {length=4, reverse=false, consts=0, carry=1, unroll=1,
        body=(%0: f64[3], %1: f64[]) { return %0 }}
      return %2 }"""
    @test isempty(JaxprAD.optimize(program(text)).equations)
    check(text, randn(r, 3), randn(r, 4))
end

@testset "what a loop in a loop leaves as it is, is constant in both" begin
    inner(body) = """scan %1 %0 {length=3, reverse=false, consts=0, carry=2, unroll=1,
      body=(%1: f64[3], %0: f64[3]) { %2: f64[3] = mul %0 %1 %3: f64[3] = sin %2 $body }}"""
    text(kept) = """(%0: f64[3], %1: f64[]) {
      %2: f64[3] = broadcast_in_dim %1 {shape=[3], dims=[]}
      %3: f64[3], %4: f64[3] = scan %0 %2 {length=2, reverse=false, consts=0, carry=2, unroll=1,
        body=(%0: f64[3], %1: f64[3]) {
          %2: f64[3], %3: f64[3] = $(inner("return $kept %3"))
          return %3 %2 }}
      return %3 %4 }"""
    x = Any[randn(r, 3), fill(0.3)]
    p = JaxprAD.optimize(program(text("%1")))
    loop = only_loop(p)
    @test loop[:carry] == only_loop(loop[:body])[:carry] == 1
    @test isempty(JaxprAD.shape(loop.inputs[1])) && isempty(JaxprAD.shape(loop[:body].inputs[1]))
    for kept in ("%1", "%3")
        @test relative_error(run(JaxprAD.optimize(program(text(kept))), x),
            run(program(text(kept)), x)) < 1e-14
    end
    check(text("%1"), x...)
end

moving(reverse, more = "") = program("""(%0: f64[5], %1: f64[7], %2: i32[7]) {
  %3: f64[5], %4: f64[7,5] = scan %0 %1 %2 {length=7, reverse=false, consts=0, carry=1, unroll=1,
    body=(%0: f64[5], %1: f64[], %2: i32[]) {
    %3: f64[1] = reshape %1 {shape=[1]}
    %4: f64[5] = dynamic_update_slice %0 %3 %2
    return %4 %4
  }}
  $more
  %5: f64[], %6: f64[7,5] = scan 0.0:f64 %4 %4 {length=7, reverse=$reverse, consts=0, carry=1,
    unroll=1, body=(%0: f64[], %1: f64[5], %2: f64[5]) {
    %3: f64[5] = mul %1 %2
    %4: f64[] = reduce_sum %3 {axes=[0]}
    %5: f64[] = mul %0 0.5:f64
    %6: f64[] = add %5 %4
    %7: f64[5] = sin %1
    return %6 %7
  }}
  return %5 %6 $(isempty(more) ? "" : "%7")
}""")

@testset "a stack that is only moved together and read in the same order is none" begin
    x = Any[randn(r, 5), randn(r, 7), Int32[0, 3, 4, 3, 9, -1, 2]]
    merged = JaxprAD.optimize(moving(false))
    @test count(e -> name_of(e) === :scan, merged.equations) == 1
    @test relative_error(run(merged, x), run(moving(false), x)) < 1e-15
    @test native_agrees(merged, x)
    # Read in the other order, or by others too, it stays.
    for other in (moving(true), moving(false, "%7: f64[7,5] = sin %4"),
        moving(false, "%7: f64[5] = sin %3"))
        kept = JaxprAD.optimize(other)
        @test count(e -> name_of(e) === :scan, kept.equations) == 2
        @test relative_error(run(kept, x), run(other, x)) < 1e-15
    end
end
