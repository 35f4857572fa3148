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
