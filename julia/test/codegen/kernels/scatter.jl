# Scatters: rows of updates that are read by index, windows of one element, and of several axes.

scattered(updates, window, mode = "promise", op = "scatter_add") = """
  (%0: f64[7,$window], %1: i32[40,1], %2: f64[9,$window], %3: i32[40,1]) {
  %4: f64[40,$window] = gather %2 %3 {offset_dims=[$(join(1:2, ","))], collapsed_slice_dims=[0],
    start_index_map=[0], operand_batching_dims=[], start_indices_batching_dims=[],
    slice_sizes=[1,$window], mode=clip, fill_value=none, sorted=false, unique=false}
  %5: f64[40,$window] = $updates
  %6: f64[7,$window] = $op %0 %1 %5 {update_window_dims=[1,2], inserted_window_dims=[0],
    scatter_dims_to_operand_dims=[0], operand_batching_dims=[], scatter_indices_batching_dims=[],
    mode=$mode, sorted=false, unique=false}
  return %6 }"""

r = seeded("scatter of gathered rows")
for window in ([3, 16], [1, 5], [4, 1], [1, 1]), updates in ("mul 2.0:f64 %4", "sin %4", "copy %4"),
    (mode, op) in (("promise", "scatter_add"), ("clip", "scatter_mul"), ("fill_or_drop", "scatter"))

    @testset "$op $(join(window, "×")) $updates" begin
        text = scattered(updates, join(window, ","), mode, op)
        indices(n) = reshape(rand(r, Int32(-2):Int32(n + 1), 40), 1, 40)
        inside(n) = reshape(rand(r, Int32(0):Int32(n - 1), 40), 1, 40)
        x = Any[randn(r, reverse(window)..., 7), (mode == "promise" ? inside : indices)(7),
            randn(r, reverse(window)..., 9), indices(9)]
        @test native_agrees(program(text), x)
    end
end

@testset "numbers, in a matrix and a vector" begin
    for (n, indices) in (("7,4", 2), ("7", 1))
        axes = join(0:indices-1, ",")
        text = """(%0: f32[$n], %1: i32[40,$indices], %2: f32[40]) {
          %3: f32[40] = sin %2
          %4: f32[$n] = scatter_add %0 %1 %3 {update_window_dims=[],
            inserted_window_dims=[$axes], scatter_dims_to_operand_dims=[$axes],
            operand_batching_dims=[], scatter_indices_batching_dims=[], mode=fill_or_drop,
            sorted=false, unique=false}
          return %4 }"""
        x = Any[randn(r, Float32, reverse(parse.(Int, split(n, ",")))...),
            rand(r, Int32(-1):Int32(7), indices, 40), randn(r, Float32, 40)]
        @test native_agrees(program(text), x)
    end
end

@testset "what is the same in all of a row is computed once" begin
    source = string(native_kernel(program(scattered("mul 2.0:f64 %4", "3,16"))).source)
    rows = [last(split(s, "while")) for s in split(source, "julia.simdloop")[1:end-1]]
    @test any(row -> occursin("mul_float", row), rows)
    @test !any(row -> occursin("clamp_position", row), rows)
end
