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
    # without blocks, which need a workspace of their own
    maxima(k, from) = "%$k: f64[500] = cummax %$from {axis=0, reverse=false}"
    chain = "(%0: f64[500]) { $(maxima(1, 0)) %2: f64[500] = sin %1 $(maxima(3, 2))
      %4: f64[500] = sin %3 $(maxima(5, 4)) return %5 }"
    @test native_agrees(chain, randn(r, 500)) && workspace(chain) < 3 * 4032
    later = "(%0: f64[500]) { $(maxima(1, 0)) %2: f64[500] = sin %1 $(maxima(3, 2))
      %4: f64[500] = mul %3 %1 $(maxima(5, 4)) %6: f64[500] = add %5 %1 return %6 }"
    @test native_agrees(later, randn(r, 500))
    turned = "(%0: f64[500]) { $(maxima(1, 0)) %2: f64[500] = rev %1 {dims=[0]}
      %3: f64[500] = add %1 %2 $(maxima(4, 3)) return %4 }"
    @test native_agrees(turned, randn(r, 500))
    reshaped =
        "(%0: f64[500]) { $(maxima(1, 0)) %2: f64[20,25] = reshape %1 {shape=[20, 25]}
%3: f64[500] = sin %1 $(maxima(4, 3)) " *
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

# Loops that update elements of an array that they carry.

const ELEMENT = "update_window_dims=[], inserted_window_dims=[0], " *
                "scatter_dims_to_operand_dims=[0], operand_batching_dims=[], " *
                "scatter_indices_batching_dims=[], mode=fill, sorted=true, unique=true"
indexed_loop(n, body; carries = 1, length = 6) =
    "(%0: f64[$n], %1: f64[$n], %2: i32[$length]) { " *
    (carries == 1 ? "%3: f64[$n]" : "%3: f64[$n], %4: f64[$n]") *
    " = scan $(carries == 1 ? "%1 %0 %2" : "%0 %1 %2") {length=$length, reverse=false,
      consts=$(2 - carries), carry=$carries, unroll=1,
      body=(%0: f64[$n], %1: f64[$n], %2: i32[]) { %3: i32[1] = reshape %2 {shape=[1]}
        %4: f64[1] = dynamic_slice %1 %2 {sizes=[1]} %5: f64[] = reshape %4 {shape=[]} $body }}
      return $(carries == 1 ? "%3" : "%3 %4") }"

@testset "elements are updated in place: $what" for (what, body) in (
    ("written", "%6: f64[] = sin %5 %7: f64[300] = scatter %1 %3 %6 {$ELEMENT} return %7"),
    ("written before others are read", "%6: f64[300] = scatter %1 %3 2.0:f64 {$ELEMENT}
      %7: f64[1] = dynamic_slice %1 4:i32 {sizes=[1]} %8: f64[300] = dynamic_update_slice %6 %7 %2
      return %8"),
    ("one update after the other", "%6: f64[300] = scatter_add %1 %3 %5 {$ELEMENT}
      %7: f64[300] = scatter_mul %6 %3 0.5:f64 {$ELEMENT}
      %8: f64[300] = dynamic_update_slice %7 %4 7:i32 return %8"),
    ("by elements of itself", "%6: f64[5] = slice %1 {start=[0], limit=[5], strides=[1]}
      %7: f64[5] = mul %6 0.5:f64 %8: f64[300] = dynamic_update_slice %1 %7 2:i32 return %8"),
    ("after a nest", "%6: f64[300] = mul %1 0.9:f64
      %7: f64[300] = scatter %6 %3 %5 {$ELEMENT} return %7"))
    text = indexed_loop(300, body)
    @test workspace(text) < 8 * 300 && heap_free(text)
    for indices in (rand(r, 0:299, 6), fill(3, 6), [-1, 300, 0, 299, 5, 5])
        @test native_agrees(text, randn(r, 300), randn(r, 300), Int32.(indices))
    end
end

@testset "what is read later is not overwritten: $what" for (what, body) in (
    ("the array before the update", "%6: f64[300] = scatter %1 %3 2.0:f64 {$ELEMENT}
      %7: f64[300] = add %6 %1 return %0 %7"),
    ("a result that is updated too", "%6: f64[300] = scatter %1 %3 2.0:f64 {$ELEMENT}
      %7: f64[300] = scatter_add %6 %3 1.0:f64 {$ELEMENT} return %6 %7"),
    ("two updates of one array", "%6: f64[300] = scatter %1 %3 2.0:f64 {$ELEMENT}
      %7: f64[300] = scatter_add %1 %3 1.0:f64 {$ELEMENT} return %6 %7"),
    ("arrays that change places", "%6: f64[300] = scatter %1 %3 2.0:f64 {$ELEMENT}
      %7: f64[300] = scatter_add %0 %3 1.0:f64 {$ELEMENT} return %6 %7"),
    ("another form of it", "%6: f64[20,15] = reshape %1 {shape=[20, 15]}
      %7: f64[300] = scatter %1 %3 2.0:f64 {$ELEMENT} %8: f64[15,20] = transpose %6 {perm=[1, 0]}
      %9: f64[300] = reshape %8 {shape=[300]} return %7 %9"),
    ("the array by itself", "%6: f64[300] = dynamic_update_slice %1 %1 %2 return %0 %6"))
    text = indexed_loop(300, body; carries = 2)
    for indices in (rand(r, 0:299, 6), [-1, 300, 0, 299, 5, 5])
        @test native_agrees(text, randn(r, 300), randn(r, 300), Int32.(indices))
    end
end

# A loop in a trip starts from what the trip was given, and gives what it passes on.
inner(trips, step, start = "%1") = "%6: f64[300] = scan %0 %2 $start {length=$trips, reverse=false,
  consts=2, carry=1, unroll=1, body=(%0: f64[300], %1: i32[], %2: f64[300]) {
    %3: i32[1] = reshape %1 {shape=[1]} %4: f64[1] = dynamic_slice %2 %1 {sizes=[1]}
    %5: f64[] = reshape %4 {shape=[]} $step return %6 }}"
const UPDATE = "%7: f64[] = sin %5 %6: f64[300] = scatter_add %2 %3 %7 {$ELEMENT}"
# reads all of what it replaces, and so needs two arrays that change places
const REPLACED = "%7: f64[300] = rev %2 {dims=[0]} %8: f64[300] = mul %7 %2
  %6: f64[300] = scatter_add %8 %3 %5 {$ELEMENT}"
in_while(step) = "%8: i32[], %6: f64[300] = while %2 %0 0:i32 %1 {cond_consts=0, body_consts=2,
  bound=none, cond=(%0: i32[], %1: f64[300]) { %2: bool[] = lt %0 3:i32 return %2 },
  body=(%0: i32[], %1: f64[300], %20: i32[], %2: f64[300]) { %3: i32[1] = reshape %0 {shape=[1]}
    %4: f64[1] = dynamic_slice %2 %0 {sizes=[1]} %5: f64[] = reshape %4 {shape=[]} $step
    %21: i32[] = add %20 1:i32 return %21 %6 }}"

@testset "loops in loops: $what" for (what, body, arrays) in (
    ("updates", "$(inner(3, UPDATE)) return %6", 0),
    ("updates, and none", "$(inner(0, UPDATE)) return %6", 0),
    ("updates in a while loop", "$(in_while(UPDATE)) return %6", 0),
    ("arrays that change places, odd", "$(inner(3, REPLACED)) return %6", 2),
    ("arrays that change places, even", "$(inner(4, REPLACED)) return %6", 2),
    ("arrays that change places in a while loop", "$(in_while(REPLACED)) return %6", 2),
    ("after an update", "%7: f64[300] = scatter %1 %3 2.0:f64 {$ELEMENT}
      $(inner(3, UPDATE, "%7")) %8: f64[300] = scatter_add %6 %3 %5 {$ELEMENT} return %8", 0),
    ("after a nest that reads other places", "%7: f64[300] = rev %1 {dims=[0]}
      %8: f64[300] = mul %7 %1 $(inner(3, UPDATE, "%8")) return %6", 1),
    ("what it started from is read later", "$(inner(3, UPDATE)) %7: f64[300] = rev %1 {dims=[0]}
      %8: f64[300] = add %7 %6 return %8", 3))
    text = indexed_loop(300, body)
    @test workspace(text) < 2400 * arrays + 1200 && heap_free(text)
    for indices in (rand(r, 0:299, 6), [-1, 300, 0, 299, 5, 5])
        @test native_agrees(text, 0.1randn(r, 300), 0.1randn(r, 300), Int32.(indices))
    end
end

branches(one, other) = "%15: bool[] = gt %5 0.0:f64
  %16: i32[] = convert_element_type %15 {dtype=i32}
  %6: f64[300] = cond %16 %0 %3 %5 %1 {branches=[
  (%0: f64[300], %3: i32[1], %5: f64[], %2: f64[300]) { $one },
  (%0: f64[300], %3: i32[1], %5: f64[], %2: f64[300]) { $other }]}"
@testset "branches in loops: $what" for (what, body, arrays) in (
    ("an update or none", "$(branches("$UPDATE return %6", "return %2")) return %6", 0),
    ("updates", "$(branches("$UPDATE return %6", "%6: f64[300] = scatter %2 %3 0.5:f64 {$ELEMENT}
      return %6")) return %6", 0),
    ("a sum and an update", "$(branches("%6: f64[300] = add %0 %2 return %6",
        "$UPDATE return %6")) return %6", 0),
    ("what reads other places", "$(branches("$REPLACED return %6", "return %2")) return %6", 2),
    ("another array", "$(branches("return %0", "return %2")) return %6", 1),
    ("read later", "$(branches("$UPDATE return %6", "return %2")) %7: f64[300] = rev %1 {dims=[0]}
      %8: f64[300] = add %6 %7 return %8", 2))
    text = indexed_loop(300, body)
    @test workspace(text) < 2400 * arrays + 1200 && heap_free(text)
    for indices in (rand(r, 0:299, 6), [-1, 300, 0, 299, 5, 5])
        @test native_agrees(text, randn(r, 300), randn(r, 300), Int32.(indices))
    end
end

@testset "loops in loops: two arrays, $what" for (what, body) in (
    ("one by one", "$(inner(3, UPDATE)) return %0 %6"),
    ("that change places", "$(inner(3, UPDATE)) return %6 %0"),
    ("of one", "$(inner(3, UPDATE)) %7: f64[300] = add %1 1.0:f64 return %7 %6"))
    text = indexed_loop(300, body; carries = 2)
    @test native_agrees(text, 0.1randn(r, 300), 0.1randn(r, 300), Int32.(rand(r, 0:299, 6)))
end
