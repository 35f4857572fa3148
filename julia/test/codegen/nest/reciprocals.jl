# Quotients by what is the same along a row are products with its reciprocal, where there is one.

r = seeded("reciprocals")

quotients(T, rows, columns) = """(%0: $T[$rows,$columns], %1: $T[$rows]) {
  %2: $T[$rows,$columns] = broadcast_in_dim %1 {shape=[$rows, $columns], dims=[0]}
  %3: $T[$rows,$columns] = div %0 %2
  %4: $T[$rows,$columns] = exp %3
  %5: $T[$rows] = reduce_sum %4 {axes=[1]}
  return %3 %5 }"""

@testset "$T[$rows,$columns]" for T in (Float32, Float64),
    (rows, columns) in ((3, 40), (7, 16), (2, 5000), (1, 33))
    text = quotients(JaxprAD.dtype_name(T), rows, columns)
    x, d = randn(r, T, columns, rows), randn(r, T, rows)
    @test native_agrees(text, x, d)
    # What a reciprocal could not represent, or only with few digits.
    for extreme in T[0, -0.0, Inf, NaN, floatmin(T)/8, floatmax(T), -floatmax(T)/2,
        nextfloat(zero(T))]
        d[rows] = extreme
        p = program(text)
        small = x .* (abs(extreme) < 1 ? floatmin(T) : one(T))
        y, expected = JaxprAD.run(JaxprAD.compile(p), p, Any[small, d]), run(p, Any[small, d])
        @test isequal(y[1][:, rows], expected[1][:, rows])
    end
end

@testset "by a number" begin
    text = """(%0: f64[3,40]) {
      %1: f64[3,40] = div %0 3.0:f64
      return %1 }"""
    x = randn(r, 40, 3)
    @test native_agrees(text, x)
end

@testset "to the last place, $T" for T in (Float32, Float64)
    x, d = randn(r, T, 10_000), randn(r, T, 10_000)
    q = JaxprAD.by_reciprocal.(x, d, inv.(d))
    @test maximum(abs.(q .- x ./ d) ./ eps.(x ./ d)) <= 1
    # One divisor's quotients do not share an error. Without fused multiplications, they may.
    fused = JaxprAD.muladd(T(1) + eps(T), T(1) - eps(T), -T(1)) != 0
    @test !fused || sum(q .!= x ./ d) < 10
    for (x, d) in ((T(Inf), T(3)), (-T(Inf), T(3)), (T(NaN), T(3)), (floatmax(T), T(0.1)))
        @test isequal(JaxprAD.by_reciprocal(x, d, inv(d)), x / d)
    end
end
