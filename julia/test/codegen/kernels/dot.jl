# Products of matrices and convolutions as native code, in all the ways in which their arrays may
# lie. Numbers are small integers: sums are exact in any order.

rng = seeded("products")
whole(T, n...) = rand(rng, T.(-4:4), reverse(n)...)
dtype_text = Dict(Float32 => "f32", Float64 => "f64", ComplexF64 => "c128", Int32 => "i32")

"""
The product of stacks of m × k and k × n matrices whose axes (b, m, k) and (b, n, k)
lie in these orders."""
function product_text(T, sizes, left, right)
    t, x, y = dtype_text[T], [sizes[a] for a in left], [sizes[a] for a in right]
    place(order, axis) = findfirst(==(axis), order) - 1
    batches = 'b' in left
    z = [sizes[a] for a in (batches ? "bmn" : "mn")]
    "(%0: $t$x, %1: $t$y) { %2: $t$z = dot_general %0 %1 {" *
    "lhs_contract=[$(place(left, 'k'))], rhs_contract=[$(place(right, 'k'))], " *
    "lhs_batch=[$(batches ? place(left, 'b') : "")], " *
    "rhs_batch=[$(batches ? place(right, 'b') : "")], dtype=$t, precision=none} return %2 }"
end
function product_agrees(T, sizes, left, right)
    x, y = whole(T, (sizes[a] for a in left)...), whole(T, (sizes[a] for a in right)...)
    native_agrees(product_text(T, sizes, left, right), x, y; tolerance = 0.0)
end

@testset "matrix products" begin
    # Every number of rows and columns that makes other tiles; products with
    # vectors; nothing at all.
    for T in (Float32, Float64),
        (m, n, k) in ((17, 8, 5), (7, 16, 3), (9, 19, 4), (6, 12, 9), (30, 2, 5), (31, 3, 7),
            (25, 5, 2), (13, 7, 6), (1, 50, 50), (50, 1, 50), (5, 0, 3), (5, 9, 0)),
        right in ("kn", "nk")

        @test product_agrees(T, Dict('m' => m, 'n' => n, 'k' => k), "mk", right)
    end
    for (left, right) in (("bmk", "bkn"), ("mbk", "kbn"), ("kbm", "nkb"), ("kmb", "nbk"),
        ("bkm", "bnk"))
        @test product_agrees(Float64, Dict('b' => 3, 'm' => 14, 'n' => 11, 'k' => 6), left, right)
        @test product_agrees(ComplexF64, Dict('b' => 3, 'm' => 30, 'n' => 20, 'k' => 15),
            left, right)
    end
    # Vectors, with rows and columns that fill registers and blocks of rows, and some left over.
    for T in (Float32, Float64),
        (free, k) in ((50, 60), (21, 16), (16, 21), (37, 43), (8, 100), (100, 8), (3, 90)),
        order in (("bmk", "bkn"), ("mbk", "kbn"), ("bkm", "bnk"), ("kmb", "nbk"), ("mk", "kn"),
            ("km", "nk"))

        @test product_agrees(T, Dict('b' => 2, 'm' => free, 'n' => 1, 'k' => k), order...)
        @test product_agrees(T, Dict('b' => 2, 'm' => 1, 'n' => free, 'k' => k), order...)
    end
    for (m, n, k) in ((700, 1, 500), (1, 700, 500), (701, 1, 503)),
        (left, right) in (("mk", "kn"), ("km", "nk"))

        @test product_agrees(Float64, Dict('m' => m, 'n' => n, 'k' => k), left, right)
        @test heap_free(product_text(Float64, Dict('m' => m, 'n' => n, 'k' => k), left, right))
    end
    for sizes in (Dict('m' => 9, 'n' => 210, 'k' => 200), Dict('m' => 3, 'n' => 33_000, 'k' => 1),
            Dict('m' => 500, 'n' => 40, 'k' => 100)), (left, right) in (("mk", "kn"), ("km", "nk"))
        @test product_agrees(Float64, sizes, left, right)
    end
    for T in (Float32, Float64), n in (2, 5, 20)
        @test heap_free(
            product_text(T, Dict('b' => 3, 'm' => 14, 'n' => n, 'k' => 6),
                "mbk", "nbk")
        )
    end
    @test heap_free(product_text(Float64, Dict('m' => 300, 'n' => 300, 'k' => 300), "km", "nk"))
end

"""
A convolution in the given orders of axes: b, c and o for batch, input and output features, then
those of space. `s` has each axis of space's (size, window, stride, low, high, base, dilation)."""
function convolution(T, sizes, s, x, w, y; feature_groups = 1, batch_groups = 1)
    spec(order, first_, second) =
        [findfirst(==(a), order) - 1 for a in vcat(first_, second, collect("pqr")[1:length(s)])]
    places = [
        ((n - 1) * base + 1 + low + high - (window - 1) * dilation - 1) ÷ stride + 1
        for (n, window, stride, low, high, base, dilation) in s
    ]
    extents(order, values, counts) = [a in "pqr" ? counts[a-'p'+1] : values[a] for a in order]
    t = dtype_text[T]
    x_shape =
        extents(x, Dict('b' => sizes['b'] * batch_groups, 'c' => sizes['c'] * feature_groups),
            [a[1] for a in s])
    w_shape, y_shape = extents(w, sizes, [a[2] for a in s]), extents(y, sizes, places)
    list(k) = [a[k] for a in s]
    text =
        "(%0: $t$x_shape, %1: $t$w_shape) {
   %2: $t$y_shape = conv_general_dilated %0 %1 {strides=$(list(3)), low=$(list(4)),
   high=$(list(5)), lhs_dilation=$(list(6)), " *
        "rhs_dilation=$(list(7)), lhs_spec=$(spec(x, 'b', 'c')), " *
        "rhs_spec=$(spec(w, 'o', 'c')), out_spec=$(spec(y, 'b', 'o')), " *
        "feature_groups=$feature_groups, " *
        "batch_groups=$batch_groups, dtype=$t, precision=none} return %2 }"
    text, whole(T, x_shape...), whole(T, w_shape...)
end

@testset "convolutions" begin
    plain(n, k) = (n, k, 1, 0, 0, 1, 1)
    odd = [(9, 3, 2, 1, 0, 1, 1), (11, 2, 1, 2, 3, 2, 3)]
    spaces = ([plain(12, 3), plain(7, 3)], odd, reverse(odd),
        [(10, 3, 1, -1, -2, 1, 1), (8, 1, 3, 0, 0, 1, 1)], [(15, 4, 1, 3, 2, 1, 2)],
        [plain(4, 2), (5, 2, 1, 1, 1, 1, 1), (6, 3, 2, 1, 1, 1, 1)])
    orders = (("bpqrc", "pqrco", "bpqro"),      # features lie together, weights as they are wanted
        ("bpqrc", "opqrc", "bpqro"),      # weights are rearranged
        ("bpqrc", "pqroc", "bpqro"),
        ("cpqrb", "cpqro", "pqrbo"),      # a derivative by weights
        ("cpqrb", "ocpqr", "bpqro"),
        ("bcpqr", "ocpqr", "bopqr"),      # places lie together
        ("pbqrc", "pcqor", "obpqr"))
    for s in spaces, order in orders,
        (T, sizes) in ((Float32, Dict('b' => 2, 'c' => 3, 'o' => 10)),
            (Float64, Dict('b' => 5, 'c' => 1, 'o' => 7)))

        names = map(axes -> filter(a -> !(a in "pqr") || a - 'p' < length(s), axes), order)
        @test native_agrees(convolution(T, sizes, s, names...)...; tolerance = 0.0)
    end
    for (feature_groups, batch_groups) in ((3, 1), (1, 3)),
        order in (("bpc", "pco", "bpo"), ("cpb", "cpo", "pbo"), ("bpc", "ocp", "bpo"),
            ("bcp", "ocp", "bop"))

        sizes = Dict('b' => 2, 'c' => 4, 'o' => 12)
        @test native_agrees(
            convolution(Float32, sizes, [(14, 3, 1, 1, 1, 1, 1)], order...;
                feature_groups = feature_groups, batch_groups = batch_groups)...; tolerance = 0.0)
    end
    # A copy in blocks; nothing at all; complex numbers and integers.
    @test native_agrees(
        convolution(Float32, Dict('b' => 1, 'c' => 3, 'o' => 2),
            [(300, 3, 1, 1, 1, 1, 1),
                (300, 2, 1, 0, 1, 1, 1)], "bpqc", "pqco", "bpqo")...; tolerance = 0.0)
    @test native_agrees(
        convolution(Float32, Dict('b' => 2, 'c' => 0, 'o' => 4), [plain(5, 3)],
            "bpc", "pco", "bpo")...
    )
    @test native_agrees(
        convolution(Float32, Dict('b' => 2, 'c' => 2, 'o' => 4), [plain(5, 0)],
            "bpc", "pco", "bpo")...
    )
    for T in (ComplexF64, Int32)
        @test native_agrees(
            convolution(T, Dict('b' => 2, 'c' => 3, 'o' => 8),
                [(20, 3, 1, 1, 1, 1, 1), plain(10, 2)], "bpqc", "opqc", "bpqo")...; tolerance = 0.0)
    end
    for order in orders[[1, 2, 4, 5]], T in (Float32, Float64), n in (1, 2, 3)
        names = map(axes -> filter(a -> !(a in "pqr") || a - 'p' < n, axes), order)
        @test heap_free(
            convolution(T, Dict('b' => 2, 'c' => 3, 'o' => 10),
                fill((6, 3, 1, 1, 1, 1, 1), n), names...)[1]
        )
    end
end

@testset "operands of a wider dtype are rounded, or lose a part, at the end" begin
    text(t, narrow) = """(%0: $t[2], %1: $t[2]) {
      %2: $narrow[] = dot_general %0 %1 {lhs_contract=[0],
      rhs_contract=[0], lhs_batch=[], rhs_batch=[], dtype=$narrow, precision=none} return %2 }"""
    for (t, narrow, x, y, z) in (
        ("f64", "f32", [2.0^24 + 1, 1], [1.0, -2.0^24], 1.0f0),
        ("c128", "f32", [2.0im, 1 + 1im], [3.0im, 2 - 1im], -3.0f0),
        ("i32", "i8", Int32[200, 100], Int32[1, 1], Int8(44)),
    )
        p = program(text(t, narrow))
        @test only(run(p, Any[x, y])) == fill(z)
        @test only(JaxprAD.run(JaxprAD.compile(p), p, Any[x, y])) == fill(z)
    end
end

"""
Products of arrays made for them, with the batch in the middle; `more` equations and `results`
may read these too."""
made_operands(n, more, results) = """(%0: f64[$n,4,10], %1: f64[$n,4,6]) {
  %2: f64[$n,4,10] = add %0 1.0:f64
  %3: f64[$n,4,6] = mul %1 2.0:f64
  %4: f64[4,10,6] = dot_general %2 %3 {lhs_contract=[0], rhs_contract=[0], lhs_batch=[1],
    rhs_batch=[1], dtype=f64, precision=none}
  %5: f64[4,10,10] = dot_general %2 %2 {lhs_contract=[0], rhs_contract=[0], lhs_batch=[1],
    rhs_batch=[1], dtype=f64, precision=none}
  $more
  return %4 %5 $results
}"""

@testset "what is made for products alone is laid out for them" begin
    transposed(p) =
        [
            e.inputs[1] for e in JaxprAD.assign_layouts(p).equations
            if JaxprAD.name(e.op) === :transpose
        ]
    made(p) = [e.outputs[1] for e in p.equations[1:2]]
    p = program(made_operands(300, "", ""))
    @test transposed(p) == made(p)
    JaxprAD.typecheck(JaxprAD.assign_layouts(p))
    # Read elsewhere, a result, or small:
    p = program(made_operands(300, "%6: f64[300,4,10] = sin %2", "%6"))
    @test transposed(p) == made(p)[2:2]
    p = program(made_operands(300, "", "%3"))
    @test transposed(p) == made(p)[1:1]
    @test isempty(transposed(program(made_operands(20, "", ""))))
    for more in (("", ""), ("%6: f64[300,4,10] = sin %2", "%6"), ("", "%3"))
        @test native_agrees(made_operands(300, more...), randn(10, 4, 300), randn(6, 4, 300))
    end
end
