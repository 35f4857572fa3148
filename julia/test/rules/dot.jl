r = seeded("dot")
dot(x, y, z, numbers, dtype) = """(%0: $x, %1: $y) {
  %2: $z = dot_general %0 %1 {lhs_contract=$(numbers[1]), rhs_contract=$(numbers[2]),
    lhs_batch=$(numbers[3]), rhs_batch=$(numbers[4]), dtype=$dtype, precision=none} return %2 }"""
matrix, none = ([1], [0], "[]", "[]"), "[]"

check(dot("f64[2,3]", "f64[3,4]", "f64[2,4]", matrix, "f64"), randn(r, 3, 2), randn(r, 4, 3);
    reference = (x, y) -> (y * x,), name = "matrices")
check(dot("c128[2,3]", "c128[3,4]", "c128[2,4]", matrix, "c128"), randn(r, ComplexF64, 3, 2),
    randn(r, ComplexF64, 4, 3);
    reference = (x, y) -> (y * x,), name = "complex")
check(dot("f64[3]", "f64[3]", "f64[]", ([0], [0], none, none), "f64"), randn(r, 3), randn(r, 3);
    reference = (x, y) -> (sum(x .* y),), name = "vectors")
check(dot("f64[2]", "f64[3]", "f64[2,3]", (none, none, none, none), "f64"), randn(r, 2),
    randn(r, 3); reference = (x, y) -> (y * x',), name = "outer product")
check(dot("f64[2,0]", "f64[0,3]", "f64[2,3]", matrix, "f64"), zeros(0, 2), zeros(3, 0);
    reference = (x, y) -> (zeros(3, 2),), name = "empty")
# Batch and contracted axes in every place, contracted ones in different orders.
check(dot("f64[3,2,5,4]", "f64[4,6,3,2]", "f64[2,5,6]", ([0, 3], [2, 0], [1], [3]), "f64"),
    normal(r, Float64, [3, 2, 5, 4]), normal(r, Float64, [4, 6, 3, 2]);
    reference = (x, y) ->
        ([
            sum(x[k, i, b, j] * y[b, j, n, k] for k in 1:4, j in 1:3)
            for n in 1:6, i in 1:5, b in 1:2
        ],), name = "axes")
# The result's type is the attribute's; the cotangents have the operands' types.
check(dot("f32[2,3]", "f64[3,4]", "f64[2,4]", matrix, "f64"), randn(r, Float32, 3, 2),
    randn(r, 4, 3); reference = (x, y) -> (y * x,), name = "mixed")
check_value(dot("i8[2]", "i8[2]", "i32[]", ([0], [0], none, none), "i32"),
    (x, y) -> (fill(Int32(20000)),), Int8[100, 100], Int8[100, 100])
check_value(dot("i8[2]", "i8[2]", "i8[]", ([0], [0], none, none), "i8"),
    (x, y) -> (fill(20000 % Int8),), Int8[100, 100], Int8[100, 100])
check_value(dot("f16[4096]", "f16[4096]", "f16[]", ([0], [0], none, none), "f16"),
    (x, y) -> (fill(Float16(4096)),), ones(Float16, 4096), ones(Float16, 4096))
check_value(dot("bool[2]", "bool[2]", "bool[]", ([0], [0], none, none), "bool"),
    (x, y) -> (fill(true),), [true, true], [true, true])
@test refuses(dot("f64[2,3]", "f64[2,4]", "f64[2,4]", matrix, "f64"))
@test refuses(dot("f64[2,3]", "f64[3,4]", "f32[2,4]", matrix, "f64"))

@testset "outer products are elementwise in kernels" begin
    r = seeded("outer products")
    contract(a, b, batch = ("[]", "[]")) = "lhs_contract=$a, rhs_contract=$b, " *
        "lhs_batch=$(batch[1]), rhs_batch=$(batch[2]), dtype=f64, precision=none"
    kernel(text) = JaxprAD.flatten_calls(program(text))
    for (x, y, attrs, made) in (
        ("f64[3]", "f64[4]", contract("[]", "[]"), "f64[3,4]"),
        ("f64[3,1]", "f64[1,4]", contract("[1]", "[0]"), "f64[3,4]"),
        ("f64[1,3]", "f64[4,1]", contract("[0]", "[1]"), "f64[3,4]"),
        ("f64[]", "f64[4]", contract("[]", "[]"), "f64[4]"),
        ("f64[2,3]", "f64[2,4]", contract("[]", "[]", ("[0]", "[0]")), "f64[2,3,4]"),
        ("f64[3,2,1]", "f64[4,1,2]", contract("[2]", "[1]", ("[1]", "[2]")), "f64[2,3,4]"),
        ("f64[2,3,4]", "f64[3,2,5]", contract("[]", "[]", ("[0,1]", "[1,0]")), "f64[2,3,4,5]"))
        text = "(%0: $x, %1: $y) { %2: $made = dot_general %0 %1 {$attrs} return %2 }"
        flat = kernel(text)
        size(t) = Tuple(reverse(Int.(t.shape)))
        inputs = Any[randn(r, size(JaxprAD.aval(v))...) for v in flat.inputs]
        inputs = Any[ndims(v) == 0 ? fill(v[]) : v for v in inputs]
        # Where the result has the axes of an operand in another order, it is none of elements.
        kept = x in ("f64[3,2,1]", "f64[2,3,4]")
        @test any(e -> name_of(e) === :dot_general, flat.equations) == kept
        @test run(flat, inputs)[1] ≈ run(program(text), inputs)[1] rtol = 1e-15
    end
end

@testset "products as sums of products: $x × $y" for (x, y, contract, batch) in (
    ([2, 3], [3, 4], [1] => [0], Int[] => Int[]), ([5, 2, 3], [5, 3, 4], [2] => [1], [0] => [0]),
    ([3, 2], [4, 3], [0] => [1], Int[] => Int[]), ([2, 3, 9], [3, 9, 2], [0] => [2], [2] => [1]),
    ([4, 3, 2], [2, 4], [2, 0] => [0, 1], Int[] => Int[]), ([7], [7], [0] => [0], Int[] => Int[]),
    ([7], [5], Int[] => Int[], Int[] => Int[]))

    r = seeded("sums of products")
    type(n) = "f64[$(join(n, ','))]"
    kept(n, gone) = [n[k] for k in eachindex(n) if !(k - 1 in gone)]
    result = vcat(x[first(batch).+1], kept(x, vcat(first(contract), first(batch))),
        kept(y, vcat(last(contract), last(batch))))
    list(axes) = "[$(join(axes, ", "))]"
    p = program("""(%0: $(type(x)), %1: $(type(y))) {
      %2: $(type(result)) = dot_general %0 %1 {lhs_contract=$(list(first(contract))),
        rhs_contract=$(list(last(contract))), lhs_batch=$(list(first(batch))),
        rhs_batch=$(list(last(batch))), dtype=f64, precision=none}
      return %2 }""")
    e = only(p.equations)
    q = typecheck(JaxprAD.with(p; equations = JaxprAD.elementwise_form(e.op, e)))
    inputs = Any[normal(r, Float64, x), normal(r, Float64, y)]
    @test relative_error(run(q, inputs), run(p, inputs)) < 1e-14
    product = only(filter(f -> name_of(f) === :mul, q.equations))
    @test argmax(JaxprAD.shape(product.outputs[1])) == 1
end
