# Reductions of small windows become slices that are combined.

r = seeded("small windows")
written_out(text) = JaxprAD.flatten_calls(program(text))

windowed(op, sizes, result, attributes) = """(%0: $sizes) {
  %1: $result = $op %0 {$attributes}
  return %1 }"""
pooling(op, sizes, result; window, strides, low = zero.(window), high = low,
    base = one.(window), dilation = one.(window)) =
    windowed(op, sizes, result, "window=$window, strides=$strides, low=$low, high=$high, " *
        "base_dilation=$base, window_dilation=$dilation")
const REDUCTIONS = ("reduce_window_sum", "reduce_window_max", "reduce_window_min")

@testset "$op" for op in REDUCTIONS
    for (text, n) in (
        (pooling(op, "f64[2,6,8,3]", "f64[2,3,4,3]"; window = [1, 2, 2, 1],
            strides = [1, 2, 2, 1]), 4),
        (pooling(op, "f64[7,9]", "f64[7,9]"; window = [3, 3], strides = [1, 1],
            low = [1, 1]), 9),
        (pooling(op, "f64[9]", "f64[4]"; window = [3], strides = [3], low = [4], high = [3],
            dilation = [2]), 3),
        (pooling(op, "f64[4]", "f64[9]"; window = [2], strides = [1], low = [2], high = [1],
            base = [2]), 2),
        (pooling(op, "f64[9]", "f64[6]"; window = [2], strides = [1], low = [-2], high = [0]), 2))
        names = names_in(written_out(text))
        @test count(==(:slice), names) == n && !(Symbol(op) in names)
        size_ = aval(program(text).inputs[1]).shape
        @test native_agrees(text, randn(r, reverse(Int.(size_))...))
    end
end

@testset "what stays a reduction of windows" begin
    long = pooling("reduce_window_sum", "f64[40]", "f64[24]"; window = [17], strides = [1])
    half = pooling("reduce_window_sum", "f16[9]", "f16[8]"; window = [2], strides = [1])
    none = pooling("reduce_window_max", "f64[1]", "f64[0]"; window = [2], strides = [1])
    @testset for text in (long, half, none)
        @test any(n -> startswith(string(n), "reduce_window"), names_in(written_out(text)))
    end
end
