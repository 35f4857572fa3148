r = seeded("convolution")
"Attributes and types of a convolution with axes in the order NC…, OI…, NC…, unless told otherwise."
function convolution(x, w, y, n; strides = ones(Int, n), low = zeros(Int, n), high = zeros(Int, n),
    lhs_dilation = ones(Int, n), rhs_dilation = ones(Int, n), lhs_spec = 0:n+1, rhs_spec = 0:n+1,
    out_spec = 0:n+1, feature_groups = 1, batch_groups = 1, dtype = "f64")
    list(v) = "[" * join(v, ", ") * "]"
    """(%0: $x, %1: $w) { %2: $y = conv_general_dilated %0 %1 {strides=$(list(strides)),
      low=$(list(low)), high=$(list(high)),
    lhs_dilation=$(list(lhs_dilation)), rhs_dilation=$(list(rhs_dilation)),
      lhs_spec=$(list(lhs_spec)), rhs_spec=$(list(rhs_spec)),
    out_spec=$(list(out_spec)), feature_groups=$feature_groups, batch_groups=$batch_groups,
      dtype=$dtype, precision=none} return %2 }"""
end
at(x, i...) = checkbounds(Bool, x, i...) ? x[i...] : zero(eltype(x))

check(convolution("f64[2,3]", "f64[4,3]", "f64[2,4]", 0), randn(r, 3, 2), randn(r, 3, 4);
    reference = (x, w) -> (w' * x,), name = "no space: a matrix product")
check(convolution("f64[1,1,6]", "f64[1,1,3]", "f64[1,1,4]", 1), randn(r, 6, 1, 1),
    randn(r, 3, 1, 1);
    reference = (x, w) -> (reshape([sum(x[p+k] * w[1+k] for k in 0:2) for p in 1:4], 4, 1, 1),),
    name = "correlation")
# Everything at once in one dimension: x[n, c, i] at i·2 - 1 … meets w[o, c, k] at p·3 + k·2.
check(
    convolution("f64[2,3,5]", "f64[4,3,3]", "f64[2,4,3]", 1; strides = [3], low = [1], high = [2],
        lhs_dilation = [2], rhs_dilation = [2]),
    randn(r, 5, 3, 2), randn(r, 3, 3, 4); name = "strides, padding, dilations",
    reference = (x, w) -> (
        [
        sum(
            iseven(3p + 2k - 1) ? at(x, (3p + 2k - 1) ÷ 2 + 1, c, n) * w[k+1, c, o] : 0.0
            for c in 1:3, k in 0:2
        ) for p in 0:2, o in 1:4, n in 1:2
    ],))
check(convolution("f64[1,2,6]", "f64[2,2,2]", "f64[1,2,3]", 1; low = [-1], high = [-1]),
    randn(r, 6, 2, 1), randn(r, 2, 2, 2);
    reference = (x, w) ->
        ([
            sum(x[1+p+k, c, 1] * w[k+1, c, o] for c in 1:2, k in 0:1)
            for p in 1:3, o in 1:2, n in 1:1
        ],), name = "negative padding")
check(convolution("f64[2,6,3]", "f64[4,3,2]", "f64[2,4,2]", 1; feature_groups = 2),
    randn(r, 3, 6, 2), randn(r, 2, 3, 4); name = "feature groups",
    reference = (x, w) ->
        ([
            sum(x[p+k, c+3*((o-1)÷2), n] * w[k+1, c, o] for c in 1:3, k in 0:1)
            for p in 1:2, o in 1:4, n in 1:2
        ],))
check(convolution("f64[4,3,3]", "f64[4,3,2]", "f64[2,4,2]", 1; batch_groups = 2), randn(r, 3, 3, 4),
    randn(r, 2, 3, 4); name = "batch groups",
    reference = (x, w) ->
        ([
            sum(x[p+k, c, n+2*((o-1)÷2)] * w[k+1, c, o] for c in 1:3, k in 0:1)
            for p in 1:2, o in 1:4, n in 1:2
        ],))
# NHWC, HWIO, NHWC: the batch axis 0, features last; two spatial axes treated differently.
check(
    convolution("f64[2,4,5,3]", "f64[2,3,3,4]", "f64[2,2,4,4]", 2; strides = [2, 1], low = [0, 1],
        high = [1, 0], lhs_spec = [0, 3, 1, 2], rhs_spec = [3, 2, 0, 1], out_spec = [0, 3, 1, 2]),
    normal(r, Float64, [2, 4, 5, 3]), normal(r, Float64, [2, 3, 3, 4]); name = "NHWC",
    reference = (x, w) ->
        ([
            sum(
                at(x, c, q + l - 1, 2p + k + 1, n) * w[o, c, l+1, k+1]
                for c in 1:3, k in 0:1, l in 0:2
            ) for o in 1:4, q in 1:4, p in 0:1, n in 1:2
        ],))
check(convolution("c128[1,2,4]", "c128[2,2,2]", "c128[1,2,3]", 1; dtype = "c128"),
    randn(r, ComplexF64, 4, 2, 1), randn(r, ComplexF64, 2, 2, 2); name = "complex")
check(convolution("f32[1,2,4]", "f32[2,2,2]", "f64[1,2,3]", 1), randn(r, Float32, 4, 2, 1),
    randn(r, Float32, 2, 2, 2); name = "a wider result")
for (x, w, y) in [([0, 2, 4], [2, 2, 2], [0, 2, 3]), ([1, 2, 1], [2, 2, 3], [1, 2, 0]),
    ([1, 0, 4], [2, 0, 2], [1, 2, 3]), ([1, 2, 4], [2, 2, 0], [1, 2, 5])]
    type(sizes) = "f64[$(join(sizes, ","))]"
    check(convolution(type(x), type(w), type(y), 1), normal(r, Float64, x), normal(r, Float64, w);
        name = "empty: $x and $w")
end
check_value(convolution("i8[1,1,2]", "i8[1,1,2]", "i32[1,1,1]", 1; dtype = "i32"),
    (x, w) -> (fill(Int32(20000), 1, 1, 1),), fill(Int8(100), 2, 1, 1), fill(Int8(100), 2, 1, 1))
@test refuses(convolution("f64[1,2,4]", "f64[2,3,2]", "f64[1,2,3]", 1))
@test refuses(convolution("f64[1,2,4]", "f64[3,1,2]", "f64[1,3,3]", 1; feature_groups = 2))
@test refuses(convolution("f64[1,2,4]", "f64[2,2,2]", "f64[1,2,3]", 1; strides = [0]))
@test refuses(convolution("f64[1,2,4]", "f64[2,2,2]", "f64[1,2,3]", 1; lhs_spec = [0, 0, 1]))

# Any order of axes, so that output features lie together or not: with them the ways to compute it.
"An array with axes batch, feature, space... as the Program has it, whose axes `spec` orders."
in_program(x, spec) = permutedims(x, reverse(invperm(collect(spec) .+ 1)))
function convolved(x, w, places, strides, low, dilation, groups)
    taken, each = size(w, 2), size(w, 1) ÷ groups
    y = zeros(eltype(x), size(x, 1), size(w, 1), places...)
    for p in CartesianIndices(places), k in CartesianIndices(size(w)[3:end]), n in axes(x, 1),
        o in axes(w, 1), c in 1:taken

        i = (Tuple(p) .- 1) .* strides .+ (Tuple(k) .- 1) .* dilation .- low .+ 1
        y[n, o, p] += at(x, n, c + taken * ((o - 1) ÷ each), i...) * w[o, c, k]
    end
    y
end
@testset "$T, orders $(specs)" for (T, dtype) in ((Float32, "f32"), (Float64, "f64")), trial in 1:8,
    specs in (Tuple(randperm(r, 4) .- 1 for _ in 1:3),)

    groups, strides, dilation, low = rand(r, 1:2), rand(r, 1:2, 2), rand(r, 1:2, 2), rand(r, 0:2, 2)
    n, taken, each, window = rand(r, 1:9), rand(r, 1:5), rand(r, 1:9), rand(r, 1:3, 2)
    space = rand(r, 5:9, 2)
    places = Tuple((space .+ 2low .- (dilation .* (window .- 1) .+ 1)) .÷ strides .+ 1)
    x, w = randn(r, T, n, taken * groups, space...), randn(r, T, each * groups, taken, window...)
    y = convolved(x, w, places, strides, low, dilation, groups)
    arrays = map(in_program, (x, w, y), specs)
    types = ["$dtype[$(join(reverse(size(a)), ","))]" for a in arrays]
    check(
        convolution(types..., 2; strides = strides, low = low, high = low, rhs_dilation = dilation,
            lhs_spec = specs[1], rhs_spec = specs[2], out_spec = specs[3], feature_groups = groups,
            dtype = dtype),
        arrays[1], arrays[2]; reference = (x, w) -> (arrays[3],), name = "$types by $specs")
end
