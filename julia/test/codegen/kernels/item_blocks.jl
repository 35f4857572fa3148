# Loops over many items, written block by block: which are, and what they give.

using JaxprAD: Generator, item_blocks, narrowed

"A scan of operands and results of these types, as a Program."
looped(trips, types, lines; consts = 1, carry = 1, reverse = false) = """
  ($(join(("%$(k - 1): $t" for (k, t) in enumerate(types[1])), ", "))) {
    $(join(("%$(length(types[1]) + k - 1): $t" for (k, t) in enumerate(types[2])), ", ")) =
    scan $(join(("%$(k - 1)" for k in eachindex(types[1])), " ")) {length=$trips,
      reverse=$reverse, consts=$consts, carry=$carry, unroll=1, body=$lines}
    return $(join(("%$(length(types[1]) + k - 1)" for k in eachindex(types[2])), " ")) }"""
scan_of(text) =
    only(e for e in JaxprAD.prepare_native(program(text)).equations if e.op isa JaxprAD.Scan)
isblocked(text) = item_blocks(Generator(1), scan_of(text)) !== nothing
on_threads(p) = any(d -> occursin("parallel_for", string(d)), JaxprAD.kernel_code(p)[1])
function random_inputs(text)
    Any[asarray(v.type.dtype <: Integer ? rand(v.type.dtype(1):v.type.dtype(3),
            reverse(Int.(v.type.shape))...) : rand(v.type.dtype, reverse(Int.(v.type.shape))...))
        for v in program(text).inputs]
end
agrees(text) = native_agrees(program(text), random_inputs(text); tolerance = 1e-12)

"Rotations with a friction that differs by item and trip; the path is stacked, and a count carried."
function rotations(n, trips; first_axis = false, reverse = false)
    pair, row = first_axis ? "f64[$n,2]" : "f64[2,$n]", first_axis ? "f64[$n,1]" : "f64[1,$n]"
    part(k) = first_axis ? "slice %3 {start=[0, $k], limit=[$n, $(k + 1)], strides=[1, 1]}" :
              "slice %3 {start=[$k, 0], limit=[$(k + 1), $n], strides=[1, 1]}"
    axis = first_axis ? 1 : 0
    spread = "broadcast_in_dim %0 {shape=$(first_axis ? "[$n, 2]" : "[2, $n]"), dims=[$axis]}"
    body = """(%0: f64[2], %1: f64[$n], %2: i32[], %3: $pair, %4: f64[$n]) {
      %5: $row = $(part(0)) %6: $row = $(part(1)) %7: $row = neg %6
      %8: $pair = concatenate %7 %5 {dim=$axis} %9: $pair = mul 0.01:f64 %8
      %10: $pair = $spread %11: $pair = mul %10 %9 %12: $pair = add %3 %11
      %13: f64[$n] = reduce_sum %12 {axes=[$axis]} %14: f64[$n] = mul %13 %4
      %15: f64[$n] = mul %14 %1 %16: f64[$n] = tanh %15 %17: i32[] = add %2 1:i32
      return %17 %12 %16 }"""
    looped(trips,
        (["f64[2]", "f64[$n]", "i32[]", pair, "f64[$trips,$n]"], ["i32[]", pair, "f64[$trips,$n]"]),
        body; consts = 2, carry = 2, reverse = reverse)
end

@testset "$n items, the first axis $first_axis, backwards $reverse" for n in (2000, 2003, 4096),
    first_axis in (false, true), reverse in (false, true)

    text = rotations(n, 110; first_axis = first_axis, reverse = reverse)
    @test isblocked(text) && on_threads(program(text))
    @test agrees(text)
    @test heap_free(text)
end

@testset "little work, or items that depend on each other" begin
    @test !isblocked(rotations(100, 110))
    simple(lines; n = 3000) = looped(400, (["f64[$n]", "f64[$n]"], ["f64[$n]"]),
        "(%0: f64[$n], %1: f64[$n]) { $lines }")
    one = "%2: f64[3000] = mul %0 %1 %3: f64[3000] = mul 0.5:f64 %2 %4: f64[3000] = add %3 %1"
    @test isblocked(simple("$one return %4"))
    for joins in ("%5: f64[] = reduce_sum %4 {axes=[0]} %6: f64[3000] = mul %5 %4 return %6",
        "%5: f64[3000] = rev %4 {dims=[0]} return %5",
        "%5: f64[3000] = cumsum %4 {axis=0, reverse=false} return %5",
        "%5: f64[2999] = slice %4 {start=[1], limit=[3000], strides=[1]}
         %6: f64[3000] = pad %5 0.0:f64 {low=[0], high=[1], interior=[0]} return %6",
        "%5: f64[3000] = pad %4 0.0:f64 {low=[1], high=[-1], interior=[0]} return %5",
        "%5: f64[3000] = iota {dtype=f64, shape=[3000], dim=0} %6: f64[3000] = add %5 %4 return %6")

        text = simple("$one $joins")
        @test !isblocked(text)
        @test agrees(text)
    end
end

@testset "an array that all items share is carried" begin
    text = looped(400, (["f64[3000]", "f64[3]"], ["f64[3000]", "f64[3]"]),
        """(%0: f64[3000], %1: f64[3]) { %2: f64[3] = mul %1 0.99:f64
          %3: f64[] = reduce_sum %2 {axes=[0]} %4: f64[3000] = mul %3 %0 %5: f64[3000] = sin %4
          return %5 %2 }"""; consts = 0, carry = 2)
    @test !isblocked(text)
    @test agrees(text)
end

@testset "a derivative in reverse of many items" begin
    n = 4000
    text = looped(120, (["f64[$n]", "f64[$n,3]", "f64[$n]"], ["f64[$n]", "f64[120,$n]"]),
        """(%0: f64[$n], %1: f64[$n,3], %2: f64[$n]) {
          %3: f64[$n] = sin %2 %4: f64[$n] = mul %3 %0 %5: f64[$n] = reduce_sum %1 {axes=[1]}
          %6: f64[$n] = mul %5 0.01:f64 %7: f64[$n] = add %4 %6 %8: f64[$n] = mul 0.9:f64 %7
          %9: f64[$n] = exp %8 %10: f64[$n] = mul 0.1:f64 %9 %11: f64[$n] = add %10 %8
          return %11 %8 }"""; consts = 2)
    p = vjp(program(text))
    x = Any[asarray(rand(reverse(Int.(v.type.shape))...)) for v in p.inputs]
    @test native_agrees(p, x; tolerance = 1e-11)
    @test on_threads(p)
end

@testset "the Program for fewer items" begin
    text = rotations(2000, 110)
    body = scan_of(text)[:body]
    few = narrowed(body, 2000, 16)
    @test [aval(v).shape for v in few.inputs] == [[2], [16], [], [2, 16], [16]]
    @test !any(d -> d == 2000, d for e in few.equations for v in e.outputs for d in aval(v).shape)
    @test narrowed(body, 2, 1) === nothing          # pieces are joined along that axis
end
