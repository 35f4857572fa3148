# A loop that sums windows begins with what is added to its result.

r = seeded("begin sums")
rewritten(text) = JaxprAD.begin_sums(JaxprAD.add_in_place(program(text)))

"A loop that adds a row in each trip to zeros (%4), and gives the sum as `sum`."
row_sums(sum, more) = """%$sum: f64[9,8], %$more: f64[9] = scan %4 %3 %1 {length=9, reverse=true,
  consts=0, carry=1, unroll=1, body=(%0: f64[9,8], %1: i32[], %2: f64[8]) {
    %3: f64[9,8] = broadcast_in_dim 0.0:f64 {shape=[9, 8], dims=[]}
    %4: f64[8] = sin %2
    %5: f64[1,8] = reshape %4 {shape=[1, 8]}
    %6: f64[9,8] = dynamic_update_slice %3 %5 %1 0:i32
    %7: f64[9,8] = add %0 %6
    %8: f64[] = reduce_sum %4 {axes=[0]}
    return %7 %8
  }}"""
with_loops(equations, outputs = "%20") = """(%0: f64[9,8], %1: f64[9,8], %2: f64[9]) {
  %3: i32[9] = iota {dtype=i32, shape=[9], dim=0}
  %4: f64[9,8] = broadcast_in_dim 0.0:f64 {shape=[9, 8], dims=[]}
  $equations
  return $outputs }"""
x = Any[randn(r, 8, 9), randn(r, 8, 9), randn(r, 9)]

@testset "$sum, where %7 is $term" for sum in ("add %7 %5", "add %5 %7"),
    term in ("cos %0", "mul %0 %1", "broadcast_in_dim %2 {shape=[9, 8], dims=[0]}")
    first_, loop = "%7: f64[9,8] = $term", row_sums(5, 6)
    for equations in (first_ * "\n" * loop, loop * "\n" * first_)
        text = with_loops("$equations %20: f64[9,8] = $sum", "%20 %6")
        @test !(:add in names_in(rewritten(text))) && native_agrees(text, x...)
    end
end

@testset "a number is added to all elements" for number in ("1.5:f64", "%6"),
    sum in ("add $number %5", "add %5 $number")

    loop = row_sums(5, 7)
    text = with_loops("%8: f64[9] = cos %2 %6: f64[] = reduce_sum %8 {axes=[0]} $loop
      %20: f64[9,8] = $sum", "%20 %7")
    @test !(:add in names_in(rewritten(text))) && native_agrees(text, x...)
end

@testset "an argument is not written to" begin
    text = with_loops("$(row_sums(5, 6)) %20: f64[9,8] = add %0 %5")
    @test !(:add in names_in(rewritten(text))) && native_agrees(text, x...)
    text = with_loops("$(row_sums(5, 6)) %20: f64[9,8] = add %0 %5 %21: f64[9,8] = mul %20 %0",
        "%21")
    @test !(:add in names_in(rewritten(text))) && native_agrees(text, x...)
end

@testset "of two loops the second begins with what the first gives" begin
    text = with_loops("$(row_sums(5, 6)) $(row_sums(7, 8)) %20: f64[9,8] = add %5 %7", "%20 %6")
    @test !(:add in names_in(rewritten(text))) && native_agrees(text, x...)
end

@testset "sums that stay: $why" for (why, equations) in (
    "the loop's sum is needed" => "%7: f64[9,8] = sin %5 %8: f64[9,8] = add %0 %5
      %20: f64[9,8] = mul %8 %7",
    "the term depends on the loop" => "%7: f64[9,8] = broadcast_in_dim %6 {shape=[9, 8], dims=[0]}
      %20: f64[9,8] = add %7 %5",
    "it is no sum" => "%20: f64[9,8] = mul %0 %5")
    text = with_loops(row_sums(5, 6) * " " * equations)
    @test map(e -> name_of(e), rewritten(text).equations) ==
          map(e -> name_of(e), JaxprAD.add_in_place(program(text)).equations)
    @test native_agrees(text, x...)
end

@testset "inside of a loop's body" begin
    text = """(%0: f64[9,8], %1: f64[9,8]) {
      %2: f64[9,8] = scan %1 %0 {length=2, reverse=false, consts=1, carry=1, unroll=1,
        body=(%1: f64[9,8], %0: f64[9,8]) {
        %3: i32[9] = iota {dtype=i32, shape=[9], dim=0}
        %4: f64[9,8] = broadcast_in_dim 0.0:f64 {shape=[9, 8], dims=[]}
        $(row_sums(5, 6))
        %7: f64[9,8] = cos %0
        %8: f64[9,8] = add %7 %5
        return %8 }}
      return %2 }"""
    inner = only(e for e in rewritten(text).equations if name_of(e) === :scan)[:body]
    @test !(:add in names_in(inner)) && native_agrees(text, x[1:2]...)
end
