# Small nests in the bodies of loops: instructions on vectors, against the evaluator.

"A loop of three trips around `body`, which takes and gives a carry of that type and a constant."
in_loop(type, constant, body) = """(%0: $type, %1: $constant) {
  %2: $type = scan %1 %0 {length=3, reverse=false, consts=1, carry=1, unroll=1,
    body=(%0: $constant, %1: $type) { $body }}
  return %2 }"""
tensor(T, n) = "$(T === Float32 ? "f32" : "f64")[$(join(n, ","))]"
sample(T, n) = T(0.5) .+ rand(T, Tuple(reverse(n)))
"How many instructions on vectors the kernel's code has."
function vector_instructions(text)
    definitions, _ = JaxprAD.kernel_code(program(text))
    count("getelementptr", string(definitions))
end
agrees(text, T, x...) = native_agrees(text, x...; tolerance = T === Float32 ? 1e-5 : 1e-13)

"Pairs of rows, quotients of them and their sums along `axes`, which are added to the carry."
function pairs_of_rows(T, n, axes)
    rows, columns, all_ = tensor(T, n[[1, 3]]), tensor(T, n[2:3]), tensor(T, n)
    kept = [k for k in 0:2 if !(k in axes)]
    some = tensor(T, n[kept.+1])
    back = """%9: $rows = mul %1 0.5:$(T === Float32 ? "f32" : "f64")"""
    in_loop(rows, columns, """
      %2: $all_ = broadcast_in_dim %1 {shape=$n, dims=[0, 2]}
      %3: $all_ = broadcast_in_dim %0 {shape=$n, dims=[1, 2]}
      %4: $all_ = sub %2 %3 %5: $all_ = mul %4 %4 %6: $all_ = div %5 %3
      %7: $some = reduce_sum %6 {axes=$axes}
      %8: $all_ = broadcast_in_dim %7 {shape=$n, dims=[$(join(kept, ", "))]}
      %10: $all_ = sqrt %8 %11: $all_ = mul %10 %4
      %12: $rows = reduce_sum %11 {axes=[1]}
      $back %13: $rows = add %12 %9 return %13""")
end

@testset "pairs, $T$n, sums along $axes" for T in (Float32, Float64),
    n in ([4, 4, 3], [1, 5, 2], [3, 1, 3], [5, 4, 3], [2, 7, 5], [3, 3, 8]),
    axes in ([0], [1], [2], [0, 2], [0, 1, 2])

    text = pairs_of_rows(T, n, axes)
    x = sample(T, n[[1, 3]]), sample(T, n[2:3])
    @test agrees(text, T, x...)
    @test heap_free(text)
    @test vector_instructions(text) > 0
end

"A product of two matrices, contracted along any of their axes, and transposed."
function products(T, n, left, right)
    type, dtype = tensor(T, [n, n]), T === Float32 ? "f32" : "f64"
    in_loop(type, type, """
      %2: $type = dot_general %1 %0 {lhs_contract=[$left], rhs_contract=[$right], lhs_batch=[],
        rhs_batch=[], dtype=$dtype, precision=none}
      %3: $type = transpose %2 {perm=[1, 0]} %4: $type = neg %3 %5: $type = add %4 %2
      %6: $type = abs %5 %7: $type = mul 0.25:$dtype %6 %8: $type = add %7 %1 return %8""")
end
@testset "products, $T, $n×$n, $left, $right" for T in (Float32, Float64), n in 2:5,
    left in 0:1, right in 0:1

    text = products(T, n, left, right)
    @test agrees(text, T, sample(T, [n, n]), sample(T, [n, n]))
    @test vector_instructions(text) > 0
end

@testset "choices" begin
    for n in ([3, 3], [7], [2, 5])
        type, flags = tensor(Float64, n), "bool[$(join(n, ","))]"
        text = in_loop(type, type, """
          %2: $flags = lt %0 %1 %3: $type = mul %1 0.5:f64 %4: $type = add %1 %0
          %5: $type = select_n %2 %3 %4 %6: $flags = ne %5 %0
          %7: $type = select_n %6 %0 %5 return %7""")
        @test agrees(text, Float64, sample(Float64, n), sample(Float64, n))
        @test vector_instructions(text) > 0
        nan = sample(Float64, n)
        nan[1] = NaN
        @test isequal(JaxprAD.run(JaxprAD.compile(program(text)), program(text), Any[nan, nan])[1],
            JaxprAD.evaluate(program(text), Any[nan, nan])[1])
    end
end

"A loop of `f(b) c`, of rows that are no whole vectors."
rows_of(T, n, f) = in_loop(tensor(T, n), tensor(T, n), """
  %2: $(tensor(T, n)) = add %1 %0 %3: $(tensor(T, n)) = $f
  %4: $(tensor(T, n)) = mul 0.25:$(T === Float32 ? "f32" : "f64") %3
  %5: $(tensor(T, n)) = add %4 %0 return %5""")

@testset "$f, $T$n" for T in (Float32, Float64), n in ([14], [3, 5], [2, 7]),
    f in ("tanh %2", "exp %2", "log %2", "pow %2 %0", "atan2 %0 %2", "one_minus_square %2",
        "max %0 %2", "min 1.5:T %2", "integer_pow %2 {y=5}", "integer_pow %2 {y=-2}", "sqrt %2",
        "integer_pow %2 {y=-1}", "integer_pow %2 {y=0}", "sin %2", "floor %2")

    text = rows_of(T, n, replace(f, ":T" => T === Float32 ? ":f32" : ":f64"))
    x = sample(T, n), sample(T, n)
    @test agrees(text, T, x...)
    @test f == "sin %2" || vector_instructions(text) > 0    # it has a fast form, for rows
    f in ("tanh %2", "pow %2 %0", "max %0 %2") && @test heap_free(text)
end

@testset "the arguments of a function are stored as its loop reads them, $T" for (T, stored) in
                                                                     ((Float32, "<16 x float>"),
    (Float64, "<8 x double>"))

    code = string(JaxprAD.kernel_code(program(rows_of(T, [2, 7], "tanh %2")))[1])
    @test occursin("store $stored", code)
end

@testset "NaN is the larger and the smaller, $T" for T in (Float32, Float64), f in ("max", "min"),
    operands in ("%0 %2", "%2 %0")

    text, x = rows_of(T, [7], "$f $operands"), (sample(T, [7]), sample(T, [7]))
    x[1][2] = x[2][5] = NaN
    y, z = (g(program(text), Any[x...])[1]
            for g in ((p, x) -> JaxprAD.run(JaxprAD.compile(p), p, x), JaxprAD.evaluate))
    @test isnan.(y) == isnan.(z) && count(isnan, y) == 2
end

@testset "what is known of memory is forgotten where it changes" begin
    # An array that is updated in place where only the run knows, between nests that read it.
    text = in_loop("f64[3,3]", "f64[3,3]", """
      %2: f64[3,3] = mul %1 %0 %3: f64[] = reduce_sum %2 {axes=[0, 1]}
      %4: i32[] = convert_element_type %3 {dtype=i32} %5: i32[] = rem %4 3:i32
      %6: f64[1,3] = slice %2 {start=[1, 0], limit=[2, 3], strides=[1, 1]}
      %7: f64[1,3] = neg %6
      %8: f64[3,3] = dynamic_update_slice %2 %7 %5 0:i32
      %9: f64[3,3] = transpose %8 {perm=[1, 0]} %10: f64[3,3] = add %9 %8
      %11: f64[3,3] = mul 0.1:f64 %10 return %11""")
    # A branch that writes the array, and a loop in the loop.
    nested = in_loop("f64[3,3]", "f64[3,3]", """
      %2: f64[3,3] = add %1 %0 %3: f64[] = reduce_sum %2 {axes=[0, 1]}
      %4: bool[] = gt %3 5.0:f64 %5: i32[] = convert_element_type %4 {dtype=i32}
      %6: f64[3,3] = cond %5 %2 {branches=[(%0: f64[3,3]) {
        %1: f64[3,3] = mul %0 %0 return %1 }, (%0: f64[3,3]) {
        %1: f64[3,3] = transpose %0 {perm=[1, 0]} %2: f64[3,3] = sub %1 %0 return %2 }]}
      %7: f64[3,3] = scan %6 {length=2, reverse=false, consts=0, carry=1, unroll=1,
        body=(%0: f64[3,3]) { %1: f64[3,3] = transpose %0 {perm=[1, 0]}
          %2: f64[3,3] = mul 0.5:f64 %1 return %2 }}
      %8: f64[3,3] = add %7 %2 %9: f64[3,3] = mul 0.3:f64 %8 return %9""")
    for t in (text, nested), _ in 1:5
        @test agrees(t, Float64, sample(Float64, [3, 3]), sample(Float64, [3, 3]))
    end
    @test vector_instructions(text) > 0 && vector_instructions(nested) > 0
end

"Whether a loop is entered with vectors read from memory, which its trips do not read again."
function enters_with_vectors(text)
    code = JaxprAD.lower(JaxprAD.prepare_native(program(text))).code
    reads(x) = x isa JaxprAD.VectorStep && x.instruction isa JaxprAD.Reading
    isloop(x) = x isa Expr && x.head === :while
    enters(x) = x isa Expr && (x.head === :block && reads(x.args[1]) && isloop(x.args[end]) ||
                 any(enters, x.args))
    any(enters, code)
end

@testset "carried arrays stay in registers" begin
    square, x = "f64[3,3]", () -> sample(Float64, [3, 3])
    step = """%2: $square = mul %1 %0 %3: $square = sqrt %2 %4: $square = mul 0.5:f64 %3
      %5: $square = add %4 %1 return %5"""
    @test enters_with_vectors(in_loop(square, square, step))
    @test agrees(in_loop(square, square, step), Float64, x(), x())
    # Two that change places, one that stays, and one of which a row is overwritten.
    exchanged = """(%0: $square, %1: $square, %2: $square, %3: $square) {
      %4: $square, %5: $square, %6: $square, %7: $square = scan %0 %1 %2 %3 {length=5,
        reverse=true, consts=0, carry=4, unroll=1,
        body=(%0: $square, %1: $square, %2: $square, %3: $square) {
          %4: $square = mul 0.5:f64 %0 %5: $square = add %4 %2 %6: $square = neg %1
          %7: f64[1,3] = slice %0 {start=[1, 0], limit=[2, 3], strides=[1, 1]}
          %8: $square = dynamic_update_slice %3 %7 2:i32 0:i32 return %6 %5 %2 %8 }}
      return %4 %5 %6 %7 }"""
    @test agrees(exchanged, Float64, x(), x(), x(), x())
    # A loop whose trips are counted as they come, around another loop, and one of no trip.
    until(limit) = """(%0: $square, %1: $square) {
      %2: $square, %3: i32[] = while %1 %0 0:i32 {cond_consts=0, body_consts=1, bound=none,
        cond=(%0: $square, %1: i32[]) { %2: bool[] = lt %1 $limit:i32 return %2 },
        body=(%0: $square, %1: $square, %2: i32[]) {
          %3: $square = scan %0 %1 {length=2, reverse=false, consts=1, carry=1, unroll=1,
            body=(%0: $square, %1: $square) { $step }}
          %4: $square = mul 0.5:f64 %3 %5: i32[] = add %2 1:i32 return %4 %5 }}
      return %2 }"""
    for limit in (0, 1, 4)
        @test agrees(until(limit), Float64, x(), x())
    end
    @test enters_with_vectors(until(4))
end

@testset "code cut into functions next to such a loop, $extra numbers before it" for extra in 0:7
    # What is between functions is in slots, in which vectors have no room.
    square, n = "f64[3,3]", JaxprAD.LONGEST_FUNCTION - 8 + extra
    numbers = join(("%$(k + 1): f64[] = sin %$k" for k in 1:n), " ")
    text = """(%0: $square, %1: f64[]) { $numbers
      %$(n + 2): $square = mul %0 %$(n + 1)
      %$(n + 3): $square = scan %$(n + 2) %0 {length=3, reverse=false, consts=1, carry=1, unroll=1,
        body=(%0: $square, %1: $square) {
          %2: $square = mul %1 %0 %3: $square = sqrt %2 %4: $square = mul 0.5:f64 %3
          %5: $square = add %4 %1 return %5 }}
      return %$(n + 3) }"""
    @test enters_with_vectors(text)
    @test length(JaxprAD.kernel_code(program(text))[1]) > 1
    @test agrees(text, Float64, sample(Float64, [3, 3]), fill(0.3))
end

@testset "sums of the lanes of vectors" begin
    # Rows of a square of as many numbers as a vector has, of more, and of fewer.
    for (T, n) in ((Float64, [4, 4]), (Float64, [9, 4]), (Float64, [3, 4]), (Float32, [8, 8]),
        (Float32, [5, 8]))

        rows, sums = tensor(T, n), tensor(T, n[1:1])
        text = in_loop(sums, rows, """
          %2: $rows = broadcast_in_dim %1 {shape=$n, dims=[0]} %3: $rows = mul %2 %0
          %4: $sums = reduce_sum %3 {axes=[1]}
          %5: $sums = mul 0.2:$(T === Float32 ? "f32" : "f64") %4 return %5""")
        @test agrees(text, T, sample(T, n[1:1]), sample(T, n))
    end
end

@testset "long rows and large arrays have loops" begin
    square(n) = in_loop(tensor(Float64, n), tensor(Float64, n),
        "%2: $(tensor(Float64, n)) = mul %1 %0 return %2")
    @test vector_instructions(square([3, 3])) > 0
    @test vector_instructions(square([2, 40])) == vector_instructions(square([40, 12])) == 0
end
