# Sums over many rows in native code: as exact as sums by blocks are, not as sums one by one.

r = seeded("sum blocks")

"The relative error of the native sum of positive numbers over the axes, the largest of all sums."
function error_of_sum(T, n, axes)
    kept = [k for k in eachindex(n) if !(k - 1 in axes)]
    dtype = T === Float32 ? "f32" : "f64"
    y = "$dtype[$(join(n[kept], ","))]"
    text = """(%0: $dtype[$(join(n, ","))]) {
      %1: $y = reduce_sum %0 {axes=[$(join(axes, ", "))]} return %1 }"""
    p, x = program(text), rand(r, T, Tuple(reverse(n)))
    sums = JaxprAD.run(JaxprAD.compile(p), p, Any[x])[1]
    wide = sum(big.(x); dims = Tuple(length(n) .- axes))
    maximum(abs.(vec(sums) .- vec(wide)) ./ vec(wide))
end

# One by one, 40 000 numbers of single precision lose 1e-5 or so, 100 eps.
@testset "sums over axes $axes of $n, $T" for T in (Float32, Float64),
    (n, axes) in ([40_000, 3] => [0], [50_021, 1] => [0], [40_000, 70] => [0],
        [300, 200, 5] => [0, 1], [300, 5, 200] => [0, 2], [20_000, 2, 3] => [0, 1, 2],
        [1_000_000] => [0], [3, 300_000] => [1], [257, 3] => [0], [256, 3] => [0],
        [255, 3] => [0], [2, 30_000, 3] => [1])

    @test error_of_sum(T, n, axes) < 12eps(T)
end

@testset "what is left of vectors has a sum of its own, $T" for (T, n) in
                                                                ((Float32, 1000), (Float64, 159))

    # Added one after the other to all that is before, they make it 3 eps.
    @test sum(error_of_sum(T, [64, n], [1]) for _ in 1:20) < 20 * 1.5eps(T)
end

@testset "long rows by blocks of blocks" begin
    # 512 blocks of 2048, one after the other, lose three times as much.
    @test maximum(error_of_sum(Float32, [4_000_000], [0]) for _ in 1:5) < 3eps(Float32)
end

@testset "next to other results, of a batch of loops and backwards" begin
    # The sum's terms are the cotangent of a broadcast, and what it is of goes to memory, too.
    text = """(%0: f64[40001,3], %1: f64[3]) {
      %2: f64[40001,3] = broadcast_in_dim %1 {shape=[40001, 3], dims=[1]}
      %3: f64[40001,3] = mul %2 %0 %4: f64[40001,3] = sin %3 %5: f64[3] = reduce_sum %4 {axes=[0]}
      %6: f64[] = reduce_max %4 {axes=[0, 1]} return %4 %5 %6 }"""
    @test native_agrees(text, rand(r, 3, 40_001), rand(r, 3); tolerance = 1e-11)
    gradient = vjp(program("""(%0: f64[40001,3], %1: f64[3]) {
      %2: f64[40001,3] = broadcast_in_dim %1 {shape=[40001, 3], dims=[1]}
      %3: f64[40001,3] = mul %2 %0 %4: f64[40001,3] = sin %3 return %4 }"""))
    x = Any[rand(r, 3, 40_001), rand(r, 3), rand(r, 3, 40_001)]
    y, z = JaxprAD.run(JaxprAD.compile(gradient), gradient, x), JaxprAD.evaluate(gradient, x)
    @test all(isapprox.(y, z; rtol = 1e-11))
end
