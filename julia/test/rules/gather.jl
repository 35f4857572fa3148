r = seeded("gather")

"One gather; the dimension numbers in the order of the attributes."
gathering(x, indices, y, numbers; mode, fill = "none") = """
    (%0: $x, %1: $indices) { %2: $y = gather %0 %1 {offset_dims=$(numbers[1]),
      collapsed_slice_dims=$(numbers[2]),
    start_index_map=$(numbers[3]), operand_batching_dims=$(numbers[4]),
      start_indices_batching_dims=$(numbers[5]),
    slice_sizes=$(numbers[6]), mode=$mode, fill_value=$fill, sorted=false, unique=false} return
      %2 }"""

rows = ([1], [0], [0], "[]", "[]", [1, 3])                # x[i, :]
indices = reshape(Int32[2, 5, -1, 2], 1, 4)
x = randn(r, 3, 4)
check(gathering("f64[4,3]", "i32[4,1]", "f64[4,3]", rows; mode = "clip"), x, indices;
    reference = (x, i) -> (x[:, [3, 4, 1, 3]],), name = "clip")
check(gathering("f64[4,3]", "i32[4,1]", "f64[4,3]", rows; mode = "fill", fill = "7.0"), x, indices;
    name = "fill",
    reference = (x, i) -> (hcat(x[:, 3], fill(7.0, 3), fill(7.0, 3), x[:, 3]),))
check(gathering("f64[4,3]", "i32[4,1]", "f64[4,3]", rows; mode = "promise"), x,
    reshape(Int32[0, 3, 3, 1], 1, 4); name = "promise", reference = (x, i) -> (x[:, [1, 4, 4, 2]],))
check_value(gathering("i32[4,3]", "i32[4,1]", "i32[4,3]", rows; mode = "fill"),
    (x, i) -> (Int32[9 0 0 9; 9 0 0 9; 9 0 0 9] .+ Int32[0 1 1 0] .* typemin(Int32),),
    fill(Int32(9), 3, 4), indices)
# windows of 2×2, starts in the order (column, row)
windows = ([0, 2], "[]", [1, 0], "[]", "[]", [2, 2])
check(gathering("f64[4,3]", "i32[2,2]", "f64[2,2,2]", windows; mode = "clip"), x, Int32[0 1; 3 2];
    name = "windows",
    reference = (x, i) -> (permutedims(cat(x[1:2, 3:4], x[2:3, 3:4]; dims = 3), (1, 3, 2)),))
along = ("[]", [1], [1], [0], [0], [1, 1])                 # y[i, j] = x[i, index[i, j]]
check(gathering("f64[3,4]", "i32[3,2,1]", "f64[3,2]", along; mode = "promise"), randn(r, 4, 3),
    reshape(Int32[0, 3, 1, 1, 2, 0], 1, 2, 3);
    name = "batching", reference = (x, i) -> ([x[i[1, j, k]+1, k] for j in 1:2, k in 1:3],))
@test refuses(gathering("f64[4,3]", "i32[4,2]", "f64[4,3]", rows; mode = "clip"))
@test refuses(gathering("f64[4,3]", "f32[4,1]", "f64[4,3]", rows; mode = "clip"))
@test refuses(
    gathering("f64[4,3]", "i32[4,1]", "f64[4,3]", ([1], [0], [0], "[]", "[]", [1, 4]);
        mode = "clip")
)
