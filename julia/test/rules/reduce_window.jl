r = seeded("reduce_window")
list(v) = "[" * join(v, ", ") * "]"
function windowed(op, x, y, window; strides = one.(window), low = zero.(window),
    high = zero.(window), base_dilation = one.(window), window_dilation = one.(window))
    "(%0: $x) { %1: $y = $op %0 {window=$(list(window)), strides=$(list(strides)), low=$(list(low)),
      high=$(list(high)), " *
    "base_dilation=$(list(base_dilation)), window_dilation=$(list(window_dilation))} return %1 }"
end
x = spaced(r, 5, 4)
every(f, x, window, strides) =
    [
        f(x[i:i+window[2]-1, j:j+window[1]-1])
        for i in 1:strides[2]:size(x, 1)-window[2]+1, j in 1:strides[1]:size(x, 2)-window[1]+1
    ]

for (op, f, empty) in [("reduce_window_sum", sum, 0.0), ("reduce_window_max", maximum, -Inf),
    ("reduce_window_min", minimum, Inf)]
    check(windowed(op, "f64[4,5]", "f64[3,3]", [2, 3]), x;
        reference = x -> (every(f, x, (2, 3), (1, 1)),), name = op)
    check(windowed(op, "f64[4,5]", "f64[2,2]", [2, 2]; strides = [2, 3]), x;
        reference = x -> (every(f, x, (2, 2), (2, 3)),), name = "$op strides")
    check(
        windowed(op, "f64[4,5]", "f64[2,5]", [3, 1]; strides = [2, 1], low = [1, 0],
            high = [1, 0]), x; name = "$op padding",
        reference = x ->
            (hcat([[f(x[i, max(1, j):min(4, j + 2)]) for i in 1:5] for j in (0, 2)]...),))
    check(windowed(op, "f64[4]", "f64[2]", [2]; low = [-1], high = [0]), randn(r, 4);
        reference = x -> ([f(x[2:3]), f(x[3:4])],), name = "$op negative padding")
    # Elements at 0, 3, 6; the windows 0 1 2, 2 3 4, 4 5 6.
    check(windowed(op, "f64[3]", "f64[3]", [3]; strides = [2], base_dilation = [3]),
        [1.0, 5.0, 3.0]; reference = x -> (x,), name = "$op base dilation")
    check_value(windowed(op, "f64[2]", "f64[4]", [2]; low = [2], high = [1]),
        x -> ([empty, x[1], f(x), x[2]],), [1.0, 5.0])
    check(windowed(op, "f64[]", "f64[]", Int[]), randn(r); reference = x -> (x,),
        name = "$op of a number")
    check(windowed(op, "f64[2]", "f64[0]", [3]), randn(r, 2); name = "$op no place")
    check_value(windowed(op, "f64[0]", "f64[2]", [2]; low = [1], high = [2]),
        x -> (fill(empty, 2),), zeros(0))
    @test refuses(windowed(op, "f64[4,5]", "f64[4]", [2]))
    @test refuses(windowed(op, "f64[4]", "f64[4]", [2]; strides = [0]))
end
dilated_window = windowed("reduce_window_sum", "f64[6]", "f64[4]", [2]; window_dilation = [2])
check(dilated_window, randn(r, 6); reference = x -> (x[1:4] .+ x[3:6],),
    name = "a window with gaps")
@testset "extrema in a window with gaps have forward mode alone" begin
    p = program(windowed("reduce_window_max", "f64[6]", "f64[4]", [2]; window_dilation = [2]))
    @test run(jvp(p), Any[[1.0, 2, 0, 4, 5, 3], [1.0, 2, 3, 4, 5, 6]]) ==
          Any[[1.0, 4, 5, 4], [1.0, 4, 5, 4]]
    @test_throws JaxprAD.UnsupportedPrimitive vjp(p)
end
@testset "the first of equals has the tangent" begin
    p = program(windowed("reduce_window_max", "f64[4]", "f64[2]", [2]; strides = [2]))
    @test run(jvp(p), Any[[3.0, 3, 1, 2], [1.0, 2, 3, 4]])[2] == [1, 4]
    @test run(vjp(p), Any[[3.0, 3, 1, 2], [1.0, 2]])[1] == [1, 0, 0, 2]
end
@testset "windows of nothing but padding have no tangent" begin
    p = program(windowed("reduce_window_max", "f64[2]", "f64[4]", [2]; low = [2], high = [1]))
    @test run(jvp(p), Any[[1.0, 5.0], [3.0, 4.0]])[2] == [0, 3, 4, 4]
    @test run(vjp(p), Any[[1.0, 5.0], [1.0, 2.0, 3.0, 4.0]])[1] == [2, 7]
end
check_value(windowed("reduce_window_max", "i8[3]", "i8[2]", [2]), x -> (Int8[2, 3],), Int8[1, 2, 3])
check_value(windowed("reduce_window_sum", "bf16[600]", "bf16[1]", [600]),
    x -> ([JaxprAD.BFloat16(600)],), fill(JaxprAD.BFloat16(1.0f0), 600))
check_value(windowed("reduce_window_max", "bf16[1]", "bf16[2]", [2]; low = [2]),
    x -> (JaxprAD.BFloat16[-Inf, 1],), [JaxprAD.BFloat16(1.0f0)])

selection(op, x, y, z, more = "") = "(%0: $x, %1: $y) {
  %2: $z = $op %0 %1 {select=ge, window=[2, 2], strides=[1, 2], low=[1, 0], high=[0, 1]$more} return
  %2 }"
ones_ = ", base_dilation=[1, 1], window_dilation=[1, 1]"
check(selection("select_and_gather_add", "f64[4,5]", "f64[4,5]", "f64[4,3]", ones_), randn(r, 5, 4),
    x; active = [true, false], name = "select_and_gather_add")
check(selection("select_and_scatter_add", "f64[4,3]", "f64[4,5]", "f64[4,5]"), randn(r, 3, 4), x;
    active = [true, false], name = "select_and_scatter_add")
@test refuses(selection("select_and_scatter_add", "f64[4,5]", "f64[4,5]", "f64[4,5]"))
@test refuses(selection("select_and_gather_add", "f64[4,3]", "f64[4,5]", "f64[4,3]", ones_))
