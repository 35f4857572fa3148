# Results in the memory of operands, carried arrays that are updated in place.

r = seeded("in place")
workspace(text) = JaxprAD.kernel_code(program(text))[2]
function scan_body(carries, n, body; length = 5)
    inputs = join(("%$k: f64[$n]" for k in 0:carries-1), ", ")
    outputs = join(("%$(carries + k): f64[$n]" for k in 0:carries-1), ", ")
    operands = join(("%$k" for k in 0:carries-1), " ")
    results = join(("%$(carries + k)" for k in 0:carries-1), " ")
    "($inputs) { $outputs = scan $operands {length=$length, reverse=false, consts=0, " *
    "carry=$carries, unroll=1, body=($inputs) { $body }} return $results }"
end

@testset "a carried array that is read element by element has no spare, $length trips" for length in
                                                                                           (0,
    1, 4, 5)
    n = 300
    alone = scan_body(1, n, "%1: f64[$n] = sin %0
      %2: f64[$n] = add %1 0.5:f64 return %2"; length = length)
    @test workspace(alone) < 8n
    @test native_agrees(alone, randn(r, n)) && heap_free(alone)
    # Each is computed from both.
    both = scan_body(2, n, "%2: f64[$n] = sin %1 %3: f64[$n] = add %0 %2
      %4: f64[$n] = mul %0 %1 return %3 %4"; length = length)
    @test native_agrees(both, randn(r, n), randn(r, n))
    # They change places, are reversed, or read each other later.
    for body in ("%2: f64[$n] = add %0 %1 return %1 %2", "%2: f64[$n] = rev %0 {dims=[0]}
      %3: f64[$n] = add %1 %2 return %2 %3",
        "%2: f64[] = reduce_sum %0 {axes=[0]} %3: f64[$n] = mul 0.001:f64 %0
          %4: f64[$n] = cumsum %3 {axis=0, reverse=false} %5: f64[$n] = add %4 %0 " *
        "%6: f64[$n] = broadcast_in_dim %2 {shape=[$n], dims=[]}
          %7: f64[$n] = mul %6 0.001:f64 return %5 %7",
        "%2: f64[$n] = mul 0.001:f64 %0 %3: f64[$n] = cumsum %2 {axis=0, reverse=true}
          %4: f64[$n] = sub %3 %0 %5: f64[$n] = add %1 %0 return %4 %5",
        "%2: f64[$n] = cos %0 return %2 %2")
        @test native_agrees(scan_body(2, n, body; length = length), randn(r, n), randn(r, n))
    end
end

@testset "where a loop starts from is the first value's memory" begin
    product =
        "lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[], " *
        "dtype=f64, precision=none"
    # what the loop started from is read afterwards, or not
    for length in (0, 3, 4), last_ in ("add %5 %4", "sin %5")
        text = """(%0: f64[40,40], %1: f64[40]) { %4: f64[40] = dot_general %0 %1 {$product}
          %5: f64[40] = scan %0 %4 {length=$length, reverse=false, consts=1, carry=1, unroll=1,
            body=(%0: f64[40,40], %1: f64[40]) {
            %2: f64[40] = dot_general %0 %1 {$product} %3: f64[40] = mul 0.1:f64 %2 return %3 }}
          %6: f64[40] = $last_ return %6 }"""
        @test native_agrees(text, randn(r, 40, 40), randn(r, 40))
    end
end

@testset "a nest's result replaces an operand that it reads last, and no other" begin
    sums(k, from) = "%$k: f64[500] = cumsum %$from {axis=0, reverse=false}"
    chain = "(%0: f64[500]) { $(sums(1, 0)) %2: f64[500] = sin %1 $(sums(3, 2))
      %4: f64[500] = sin %3 $(sums(5, 4)) return %5 }"
    @test native_agrees(chain, randn(r, 500)) && workspace(chain) < 3 * 4032
    later = "(%0: f64[500]) { $(sums(1, 0)) %2: f64[500] = sin %1 $(sums(3, 2))
      %4: f64[500] = mul %3 %1 $(sums(5, 4)) %6: f64[500] = add %5 %1 return %6 }"
    @test native_agrees(later, randn(r, 500))
    turned = "(%0: f64[500]) { $(sums(1, 0)) %2: f64[500] = rev %1 {dims=[0]}
      %3: f64[500] = add %1 %2 $(sums(4, 3)) return %4 }"
    @test native_agrees(turned, randn(r, 500))
    reshaped =
        "(%0: f64[500]) { $(sums(1, 0)) %2: f64[20,25] = reshape %1 {shape=[20, 25]}
%3: f64[500] = sin %1 $(sums(4, 3)) " *
        "%5: f64[25,20] = transpose %2 {perm=[1, 0]} %6: f64[500] = reshape %5 {shape=[500]}
          %7: f64[500] = add %4 %6 return %7 }"
    @test native_agrees(reshaped, randn(r, 500))
end

@testset "a number times an array is no product of matrices" begin
    none =
        "{lhs_contract=[], rhs_contract=[], lhs_batch=[], rhs_batch=[], " *
        "dtype=f64, precision=none}"
    text =
        "(%0: f64[], %1: f64[70]) { %2: f64[70] = dot_general %0 %1 $none
   %3: f64[70] = dot_general %2 2.0:f64 $none " *
        "%4: f64[] = dot_general %0 %0 $none %5: f64[70] = mul %3 %3 return %5 %4 }"
    @test workspace(text) == 0 && native_agrees(text, fill(1.5), randn(r, 70))
    flags = "(%0: bool[], %1: bool[3]) {
      %2: bool[3] = dot_general %0 %1 {lhs_contract=[], rhs_contract=[], lhs_batch=[], rhs_batch=[],
      dtype=bool, precision=none} return %2 }"
    @test native_agrees(flags, fill(true), [true, false, true])
end
