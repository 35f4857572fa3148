# Which loops add to each element but a few times, whatever their length.

r = seeded("scan sums")
"A loop that adds windows of one element to zeros at `start`, read from an array of its trips."
loop(start; places = "iota {dtype=i32, shape=[9], dim=0}", size = 12, more = "", result = "%9") =
    """(%0: f64[$size], %1: f64[9], %2: i32[9]) {
      %3: i32[9] = $places
      %4: f64[$size] = broadcast_in_dim 0.0:f64 {shape=[$size], dims=[]}
      %5: i32[], %6: f64[$size] = scan 2:i32 %4 %3 %1 {length=9, reverse=false, consts=0, carry=2,
        unroll=1, body=(%0: i32[], %1: f64[$size], %2: i32[], %3: f64[]) {
        %4: i32[] = add %0 1:i32
        $start
        %7: f64[1] = reshape %3 {shape=[1]}
        %8: f64[$size] = broadcast_in_dim 0.0:f64 {shape=[$size], dims=[]}
        %11: f64[$size] = dynamic_update_slice %8 %7 %6
        %9: f64[$size] = add %1 %11
        $more
        return %4 $result
      }}
      %7: f64[$size] = cos %0
      %8: f64[$size] = add %7 %6
      return %8 }"""
isbegun(text) = !(:add in map(name_of,
    JaxprAD.begin_sums(JaxprAD.add_in_place(program(text))).equations))
x(size = 12) = Any[randn(r, size), randn(r, 9), rand(r, Int32(0):Int32(8), 9)]
wrapped(i, T) = "%10: bool[] = lt $i 0:$T %12: $T[] = add $i 12:$T %6: $T[] = select_n %10 $i %12"

@testset "each trip elsewhere: $start" for start in (
    "%6: i64[] = convert_element_type %2 {dtype=i64}",
    "%6: i32[] = convert_element_type %0 {dtype=i32}", wrapped("%2", "i32"), wrapped("%0", "i32"),
    "%5: i64[] = convert_element_type %2 {dtype=i64} " * wrapped("%5", "i64"))
    @test isbegun(loop(start))
    @test native_agrees(loop(start), x()...)
end

@testset "left alone: $why" for (why, text) in (
    "the same place in each trip" => loop("%6: i32[] = add 3:i32 2:i32"),
    "who knows where" => loop("%6: i32[] = convert_element_type %2 {dtype=i32}"; places = "neg %2"),
    "the last trips are moved to one place" =>
        loop("%6: i32[] = convert_element_type %0 {dtype=i32}"; size = 10),
    "of other slices" => loop("%6: i32[] = mul %2 2:i32"),
    "another choice" => loop(replace(wrapped("%2", "i32"), "lt %2 0" => "lt %2 4")),
    "the sum is read" => loop("%6: i32[] = convert_element_type %2 {dtype=i32}";
        more = "%13: f64[12] = sin %9", result = "%13"))
    size = occursin("f64[10]", text) ? 10 : 12
    @test !isbegun(text)
    @test native_agrees(text, x(size)...)
end
