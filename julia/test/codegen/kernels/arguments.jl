# Native kernels of primitives that are not elementwise: awkward arguments, and code without the
# heap. Ordinary arguments are checked with every rule (`check`), in the tests of the rules.

"Agreement and the proof, on one Program."
native(text, x...) = @testset "$text" begin
    @test native_agrees(text, x...)
    @test heap_free(text)
end
rng = seeded("kernels")
one_op(op, attrs, x, y = x) = "(%0: $x) { %1: $y = $op %0 {$attrs} return %1 }"
awkward = Float32.(rand(rng, [-0.0, 0.0, 1.0, NaN, -Inf, Inf, 2, 3], 100))

@testset "along an axis" begin
    x = reshape(awkward[1:20], 5, 4)
    for op in ("cumsum", "cummax", "cumlogsumexp"), (axis, backwards) in ((0, true), (1, false))
        native(one_op(op, "axis=$axis, reverse=$backwards", "f32[4,5]"),
            op == "cummax" ? x : randn(rng, Float32, 5, 4))
    end
    native(one_op("cumsum", "axis=0, reverse=false", "bf16[4,5]"),
        JaxprAD.BFloat16.(randn(rng, Float32, 5, 4)))
    native(one_op("cumprod", "axis=0, reverse=false", "i32[0,5]"), zeros(Int32, 5, 0))
    for op in ("argmax", "argmin"), (axis, n) in ((0, 5), (1, 4))
        native(one_op(op, "axis=$axis, dtype=i32", "f32[4,5]", "i32[$n]"), x)
    end
end

@testset "sorting" begin
    places = Int32.(1:100)
    # The bits tell zeros apart.
    native("(%0: f32[100]) { %1: f32[100] = sort %0 {dim=0, stable=true, num_keys=1}
      %2: i32[100] = bitcast_convert_type %1 {dtype=i32} return %2 }", awkward)
    for keys in (1, 2)
        native("(%0: f32[100], %1: i32[100]) { %2: f32[100],
          %3: i32[100] = sort %0 %1 {dim=0, stable=true, num_keys=$keys} return %2 %3 }", awkward,
            reverse(places))
    end
    native(one_op("sort", "dim=0, stable=true, num_keys=1", "c64[5,10]"),
        reshape(complex.(awkward[1:50], awkward[51:100]), 10, 5))
    native(one_op("sort", "dim=1, stable=true, num_keys=1", "i32[3,0]"), zeros(Int32, 0, 3))
    for k in (0, 3, 20, 100)
        native("(%0: f32[100]) { %1: f32[$k],
          %2: i32[$k] = top_k %0 {k=$k, axis=0} return %1 %2 }", awkward)
    end
end

@testset "bits" begin
    native(one_op("bitcast_convert_type", "dtype=u8", "f32[6]", "u8[6,4]"), awkward[1:6])
    native("(%0: u8[6,4]) { %1: f32[6] = bitcast_convert_type %0 {dtype=f32}
      %2: f32[6] = neg %1 return %1 %2 }", rand(rng, UInt8, 4, 6))
    native(one_op("bitcast_convert_type", "dtype=f32", "u8[4]", "f32[]"), UInt8[0, 0, 1, 64])
    native(one_op("bitcast_convert_type", "dtype=u8", "f32[]", "u8[4]"), 3.0f0)
    native("(%0: u32[6], %1: u32[6]) { %2: u32[6],
      %3: u32[6] = threefry2x32 1:u32 2:u32 %0 %1 return %2 %3 }", rand(rng, UInt32, 6),
        rand(rng,
            UInt32, 6))
end

rows_gather(mode, T, fill = "none") =
    "offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], operand_batching_dims=[], " *
    "start_indices_batching_dims=[], " *
    "slice_sizes=[1, 6], mode=$mode, fill_value=$fill, " *
    "sorted=false, unique=false"
rows_scatter(mode) =
    "update_window_dims=[1], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], " *
    "operand_batching_dims=[], " *
    "scatter_indices_batching_dims=[], mode=$mode, sorted=false, unique=false"
@testset "gather and scatter" begin
    x, u = randn(rng, Float32, 6, 5), randn(rng, Float32, 6, 4)
    for (T, t, i) in ((Int32, "i32", [0, 7, -3, 4]), (UInt64, "u64", [0, 7, typemax(UInt64), 4]),
            (UInt8, "u8", [0, 255, 1, 4])), mode in ("clip", "fill", "promise")
        indices = reshape(T.(i), 1, 4)
        native("(%0: f32[5,6], %1: $t[4,1]) {
          %2: f32[4,6] = gather %0 %1 {$(rows_gather(mode, T))} return %2 }", x, indices)
        native("(%0: f32[5,6], %1: $t[4,1], %2: f32[4,6]) {
          %3: f32[5,6] = scatter_add %0 %1 %2 {$(rows_scatter(mode))} return %3 }", x, indices, u)
    end
    # Updates that are computed from the array they are written to.
    rows = "update_window_dims=[1], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0]"
    all_ = "update_window_dims=[0, 1], inserted_window_dims=[], scatter_dims_to_operand_dims=[]"
    whole = replace(rows_scatter("clip"), rows => all_)
    for write in ("scatter %2 %1 %3 {$whole}", "dynamic_update_slice %2 %3 0:i32 0:i32")
        native("(%0: f32[5,6], %1: i32[0]) { %2: f32[5,6] = sin %0
          %3: f32[5,6] = rev %2 {dims=[0, 1]} %4: f32[5,6] = $write
          %5: f32[5,6] = neg %4 return %5 }",
            x, zeros(Int32, 0))
    end
end

@testset "windows" begin
    sliding =
        "window=[2, 2], strides=[2, 2], low=[0, 1], high=[0, 1], base_dilation=[3, " *
        "2], window_dilation=[3, 2]"
    keys = reshape(awkward[1:30], 6, 5)
    native(one_op("reduce_window_max", sliding, "f32[5,6]", "f32[5,5]"), keys)
    native(one_op("reduce_window_sum", sliding, "f16[5,6]", "f16[5,5]"),
        Float16.(randn(rng, Float32, 6, 5)))
    native(
        one_op("reduce_window_min",
            "window=[1, 2], strides=[1, 1], low=[0, 0], high=[0, 0], " *
            "base_dilation=[1, 1], window_dilation=[1, 1]", "i32[0,6]",
            "i32[0,5]"), zeros(Int32, 6, 0))
    pooling = "window=[1, 2, 2, 1], strides=[1, 2, 2, 1], low=[0, 0, 0, 0], high=[0, 0, 0, 0]"
    native(
        one_op("reduce_window_max",
            "$pooling, base_dilation=[1, 1, 1, 1], window_dilation=[1, 1, 1, 1]", "f32[2,8,8,1]",
            "f32[2,4,4,1]"), randn(rng, Float32, 1, 8, 8, 2))
    native("(%0: f32[2,4,4,3], %1: f32[2,8,8,3]) {
      %2: f32[2,8,8,3] = select_and_scatter_add %0 %1 {select=ge, $pooling} return %2 }",
        randn(rng, Float32, 3, 4, 4, 2), randn(rng, Float32, 3, 8, 8, 2))
    values = randn(rng, Float32, 6, 5)
    for select in ("ge", "le")
        native("(%0: f32[5,6], %1: f32[5,6]) {
          %2: f32[5,5] = select_and_gather_add %0 %1 {select=$select, $sliding} return %2 }",
            values, keys)
        native("(%0: f32[3,6], %1: f32[5,6]) {
          %2: f32[5,6] = select_and_scatter_add %0 %1 {select=$select, window=[2, 2], strides=[1,
          1], low=[-1, 1], high=[0, 0]} return %2 }",
            values[:, 1:3], keys)
    end
end

@testset "convolution" begin
    for (k, stride, pad, base, dilation, features, batches) in ((3, 1, 1, 1, 1, 1, 1),
        (3, 2, 1, 1, 1, 1, 1), (2, 1, 2, 2, 2, 1, 1), (3, 1, 0, 1, 1, 2, 1), (3, 1, 1, 1, 1, 1, 2))
        m, n, c, o = 20, 2batches, 3features, 8features * batches
        p = ((m - 1) * base + 1 + 2pad - (k - 1) * dilation - 1) ÷ stride + 1
        orders =
            [
                ([n, c, m, m], [o, 3, k, k], [2, o, p, p], "[0, 1, 2, 3]", "[0, 1, 2, 3]",
                    "[0, 1, 2, 3]"),
                ([n, m, m, c], [k, k, 3, o], [2, p, p, o], "[0, 3, 1, 2]", "[3, 2, 0, 1]",
                    "[0, 3, 1, 2]"),
                ([c, n, m, m], [k, k, 3, o], [o, 2, p, p], "[1, 0, 2, 3]", "[3, 2, 0, 1]",
                    "[1, 0, 2, 3]"),
                ([n, m, m, c], [o, 3, k, k], [p, 2, o, p], "[0, 3, 1, 2]", "[0, 1, 2, 3]",
                    "[1, 2, 0, 3]")]
        for (x, w, y, x_spec, w_spec, y_spec) in orders,
            (T, t) in ((Float32, "f32"), (Int32, "i32"))

            text =
                "(%0: $t$x, %1: $t$w) {
           %2: $t$y = conv_general_dilated %0 %1 {strides=[$stride, $stride], low=[$pad, $pad],
           high=[$pad, $pad], lhs_dilation=[$base, $base], " *
                "rhs_dilation=[$dilation, $dilation], lhs_spec=$x_spec, rhs_spec=$w_spec,
                  out_spec=$y_spec, feature_groups=$features, batch_groups=$batches, dtype=$t,
                  precision=none} return %2 }"
            @test native_agrees(text, rand(rng, T.(-4:4), reverse(x)...),
                rand(rng, T.(-4:4), reverse(w)...))
            stride == 1 && pad == 1 && @test heap_free(text)
        end
    end
end

@testset "Fourier" begin
    for n in (1, 2, 3, 12, 15, 17, 64, 97, 143, 360), kind in ("fft", "ifft")
        @test native_agrees(one_op("fft", "fft_type=$kind, fft_lengths=[$n]", "c128[3,$n]"),
            randn(rng, ComplexF64, n, 3); tolerance = 1e-13)
    end
    native(one_op("fft", "fft_type=rfft, fft_lengths=[6, 17, 8]", "f32[2,6,17,8]", "c64[2,6,17,5]"),
        randn(rng, Float32, 8, 17, 6, 2))
    native(
        one_op("fft", "fft_type=irfft, fft_lengths=[6, 17, 8]", "c64[2,6,17,5]",
            "f32[2,6,17,8]"), randn(rng, ComplexF32, 5, 17, 6, 2))
    native(one_op("fft", "fft_type=fft, fft_lengths=[8]", "c64[0,8]"), zeros(ComplexF32, 8, 0))
end

@testset "matrices" begin
    for (T, t, r, z) in ((Float32, "f32", "f32", "c64"), (ComplexF64, "c128", "f64", "c128")),
        bad in (0, NaN, Inf)

        a = randn(rng, T, 4, 4)
        x = cat(a * a' + 2 * one(a), -one(a), bad == 0 ? a : fill!(similar(a), bad); dims = 3)
        native(one_op("cholesky", "", "$t[3,4,4]") |> text -> replace(text, " {}" => ""), x)
        native("(%0: $t[3,4,4]) { %1: $t[3,4,4],
          %2: $r[3,4] = eigh %0 {lower=false, sort_eigenvalues=true} return %2 }", x)
        native("(%0: $t[3,4,4]) { %1: $r[3,4], %2: $t[3,4,4],
          %3: $t[3,4,4] = svd %0 {full_matrices=true, compute_uv=true} return %1 }", x)
    end
    x = randn(rng, 3, 4, 2)
    native("(%0: f64[2,4,3]) { %1: f64[2,4,4],
      %2: f64[2,4,3] = qr %0 {pivoting=false, full_matrices=true} return %1 %2 }", x)
    for (T, t, R) in
        ((Float32, "f32", "f32"), (Float64, "f64", "f64"), (ComplexF32, "c64", "f32"),
            (ComplexF64, "c128", "f64")), flag in (true, false)
        a, c, s = (randn(rng, T, 3, 4, 2), randn(rng, T, (flag ? (2, 4) : (4, 2))..., 2),
            randn(rng, T, 2, 2))
        side = flag ? "4,2" : "2,4"
        k = flag ? 4 : 3
        native("(%0: $t[2,4,3]) { %1: $t[2,4,$k], %2: $t[2,$k,3],
          %3: i32[2,3] = qr %0 {pivoting=true, full_matrices=$flag} return %1 %2 %3 }", a)
        native("(%0: $t[2,4,3]) { %1: $t[2,4,3], %2: $t[2,3] = geqrf %0 return %1 %2 }", a)
        native("(%0: $t[2,4,3], %1: i32[2,3]) { %2: $t[2,4,3], %3: i32[2,3],
          %4: $t[2,3] = geqp3 %0 %1 return %2 %3 %4 }", a, Int32[0 1; 0 0; 1 0])
        native("(%0: $t[2,4,3], %1: $t[2,2], %2: $t[2,$side]) {
          %3: $t[2,$side] = ormqr %0 %1 %2 {left=$flag, transpose=$(size(a, 1) == 3)} return %3 }",
            a, s, c)
        for bad in (0, NaN)
            native("(%0: $t[2,3,3]) { %1: $t[2,3,3], %2: $R[2,3], %3: $R[2,2],
              %4: $t[2,2] = tridiagonal %0 {lower=$flag} return %1 %2 %3 %4 }",
                a[:, 1:3,
                    :] .+ T(bad))
        end
    end
    for (m, n) in ((0, 3), (3, 0))
        native("(%0: f64[$m,$n]) { %1: f64[$m,$m], %2: f64[$m,$n],
          %3: i32[$n] = qr %0 {pivoting=true, full_matrices=true} return %1 %2 %3 }", zeros(n, m))
        native("(%0: f64[$m,$n], %1: i32[$n]) { %2: f64[$m,$n], %3: i32[$n],
          %4: f64[0] = geqp3 %0 %1 return %2 %3 %4 }", zeros(n, m), ones(Int32, n))
    end
    native("(%0: f64[2,4,3]) { %1: f64[2,4,3], %2: i32[2,3],
      %3: i32[2,4] = lu %0 return %1 %2 %3 }", x)
    native("(%0: f64[2,3,3]) { %1: c128[2,3], %2: c128[2,3,3],
      %3: c128[2,3,3] = eig %0 {left=true, right=true, vector_derivatives=false} return %1 %2 %3 }",
        x[:, 1:3, :])
    native("(%0: f64[2,3,3]) { %1: f64[2,3,3],
      %2: f64[2,2] = hessenberg %0 return %1 %2 }", x[:, 1:3, :])
    native("(%0: f64[2,3,3]) { %1: f64[2,3,3],
      %2: f64[2,3,3] = schur %0 {vectors=true} return %1 %2 }", x[:, 1:3, :])
    native("(%0: f64[2,4,3], %1: f64[2,2]) {
      %2: f64[2,4,3] = householder_product %0 %1 return %2 }", x, x[1:2, 1, :])
    native("(%0: f64[2,4], %1: f64[2,4], %2: f64[2,4,3]) {
      %3: f64[2,4,3] = tridiagonal_solve %0 %1 %0 %2 return %3 }", x[1, :, :], x[2, :, :], x)
    native("(%0: f64[0,3]) { %1: f64[0], %2: f64[0,0],
      %3: f64[3,3] = svd %0 {full_matrices=true, compute_uv=true} return %1 %2 %3 }", zeros(3, 0))
    for side in (true, false), lower in (true, false), conjugate in (true, false)
        n = side ? "3,2" : "2,3"
        native("(%0: c64[3,3], %1: c64[$n]) {
          %2: c64[$n] = triangular_solve %0 %1 {left_side=$side, lower=$lower, transpose_a=$lower,
          conjugate_a=$conjugate, unit_diagonal=$side} return %2 }",
            randn(rng, ComplexF32, 3, 3), randn(rng, ComplexF32, (side ? (2, 3) : (3, 2))...))
    end
end
