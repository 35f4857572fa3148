# Records of batches with their numbers in front of the items.

r = seeded("transpose records")

"A loop that stacks records of `items`, and one that reads them; `last_line` says what is returned."
records(items, last_line = "return %5") = """(%0: f64[$items], %1: f64[$items]) {
  %2: f64[$items], %3: f64[$items], %4: f64[7,$items,2] = scan %0 %1 {length=7, reverse=false,
    consts=0, carry=2, unroll=1, body=(%0: f64[$items], %1: f64[$items]) {
    %2: f64[$items] = mul %0 %1
    %3: f64[$items] = sin %2
    %4: f64[$items,1] = reshape %0 {shape=[$items, 1]}
    %5: f64[$items,1] = reshape %3 {shape=[$items, 1]}
    %6: f64[$items,2] = concatenate %4 %5 {dim=1}
    return %3 %2 %6 }}
  %5: f64[$items] = scan %2 %4 {length=7, reverse=true, consts=0, carry=1, unroll=1,
    body=(%0: f64[$items], %1: f64[$items,2]) {
    %2: f64[$items,1], %3: f64[$items,1] = split %1 {axis=1, sizes=[1, 1]}
    %4: f64[$items] = reshape %2 {shape=[$items]}
    %5: f64[$items] = reshape %3 {shape=[$items]}
    %6: f64[$items] = mul %4 %0
    %7: f64[$items] = add %6 %5
    return %7 }}
  $last_line }"""
stack_of(p) = JaxprAD.shape(p.equations[1].outputs[3])

@testset "between two loops" begin
    text, x = records(40), Any[randn(r, 40), randn(r, 40)]
    p = program(text)
    q = JaxprAD.transpose_stacks(typecheck(JaxprAD.transpose_records(p)))
    @test stack_of(q) == [7, 2, 40] && names_in(q) == [:scan, :scan]
    @test run(typecheck(q), x) ≈ run(p, x)
    @test native_agrees(p, x; tolerance = 1e-12)
end

@testset "of few items, and what is a result" begin
    @test stack_of(JaxprAD.transpose_records(program(records(15)))) == [7, 15, 2]
    p = JaxprAD.transpose_records(program(records(40, "return %5 %4")))
    @test stack_of(p) == [7, 40, 2]
end

@testset "what else reads it has it as it was" begin
    text = records(40, "%6: f64[40,2] = reduce_sum %4 {axes=[0]} return %5 %6")
    p, x = program(text), Any[randn(r, 40), randn(r, 40)]
    q = typecheck(JaxprAD.transpose_records(p))
    @test run(q, x) ≈ run(p, x)
    @test native_agrees(p, x; tolerance = 1e-12)
end

@testset "of loops in a loop" begin
    text = """(%0: f64[40], %1: f64[3,40]) {
      %2: f64[40] = scan %0 %1 {length=3, reverse=false, consts=0, carry=1, unroll=1,
        body=$(records(40)) }
      return %2 }"""
    p, x = program(text), Any[rand(r, 40) ./ 2, rand(r, 40, 3) ./ 2]
    q = JaxprAD.transpose_records(p)
    @test stack_of(q.equations[1][:body]) == [7, 2, 40]
    @test native_agrees(p, x; tolerance = 1e-12)
end
