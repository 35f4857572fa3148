# Quotients by broadcasts as products with reciprocals.

using JaxprAD: share_reciprocals

r = seeded("share reciprocals")
"x / d and y / d with d over the axes `dims` of arrays of that shape."
function quotients(shape, dims, of = "f64")
    type(n) = "$of[$(join(n, ','))]"
    x = type(shape)
    """(%0: $x, %1: $x, %2: $(type(shape[dims.+1]))) {
      %3: $x = broadcast_in_dim %2 {shape=[$(join(shape, ", "))], dims=[$(join(dims, ", "))]}
      %4: $x = div %0 %3
      %5: $x = div %1 %3
      return %4 %5 }"""
end
divisions(p) = count(e -> name_of(e) === :div, p.equations)

@testset "$of $shape by $dims" for of in ("f32", "f64"),
    (shape, dims) in (([4, 4, 3], [0, 1]), ([5, 3], [0]), ([2, 9, 4], [1]), ([6, 15], [0]))

    p = program(quotients(shape, dims, of))
    q = typecheck(share_reciprocals(p))
    @test divisions(q) == 1 && count(e -> name_of(e) === :mul, q.equations) == 5
    T = dtype(p.inputs[1])
    x = Any[normal(r, T, shape), normal(r, T, shape), normal(r, T, shape[dims.+1]) .+ T(4)]
    @test relative_error(run(q, x), run(p, x)) < 4eps(T)
    @test native_agrees(p, x; tolerance = 4eps(T))
end

# Divisors from subnormal to the largest, next to dividends whose quotients are in range.
@testset "the range is that of quotients, $of" for (of, T) in (("f32", Float32), ("f64", Float64))
    low, high = exponent(nextfloat(zero(T))), exponent(floatmax(T))
    divisors = T[ldexp(T(1.3), k) for k in low+1:high]
    p = program(quotients([length(divisors), 3], [0], of))
    q = typecheck(share_reciprocals(p))
    @test divisions(q) == 1
    quotient = ldexp.(T(0.7), rand(r, -20:20, 3, length(divisors)))
    x = T.(clamp.(quotient .* reshape(big.(divisors), 1, :), -floatmax(T), floatmax(T)))
    expected = T.(big.(x) ./ reshape(big.(divisors), 1, :))
    near(y) = all(abs.(y .- expected) .<= 2eps.(expected))
    @test near(run(q, Any[x, x, divisors])[1])
    @test near(JaxprAD.run(JaxprAD.compile(p), p, Any[x, x, divisors])[1])
end

@testset "by what has no reciprocal, $d" for d in (0.0, -0.0, Inf, -Inf, NaN)
    p = program(quotients([2, 3], [0]))
    x = rowmajor([1.0 2.0 3.0; 0.0 -1.0 Inf])
    kernel = JaxprAD.compile(p)
    @test isequal(JaxprAD.run(kernel, p, Any[x, x, [d, d]])[1], x ./ d)
end

@testset "what divides stays where nothing is gained" begin
    for text in (quotients([4, 2], [0]), quotients([4, 3], [0, 1]), quotients([5, 16], [0]),
        quotients([40, 3], [1]),
        "(%0: f64[3], %1: f64[]) { %2: f64[3] = broadcast_in_dim %1 {shape=[3], dims=[]}
           %3: f64[3] = div %0 %2 return %3 }",
        "(%0: i32[4,3], %1: i32[4]) {
           %2: i32[4,3] = broadcast_in_dim %1 {shape=[4, 3], dims=[0]}
           %3: i32[4,3] = div %0 %2 return %3 }")
        p = program(text)
        @test names_in(share_reciprocals(p)) == names_in(p)
    end
end

@testset "derivatives keep no quotient of the larger shape" begin
    p = program("""(%0: f64[4,4,3], %1: f64[4,4]) {
      %2: f64[4,4,3] = broadcast_in_dim %1 {shape=[4, 4, 3], dims=[0, 1]}
      %3: f64[4,4,3] = div %0 %2
      %4: f64[] = reduce_sum %3 {axes=[0, 1, 2]}
      return %4 }""")
    q = JaxprAD.with_gradient(p, trues(2))
    @test all(e -> name_of(e) !== :div || JaxprAD.shape(e.outputs[1]) == [4, 4],
        share_reciprocals(q).equations)
    x = Any[normal(r, Float64, [4, 4, 3]), normal(r, Float64, [4, 4]) .+ 4]
    y, x̄ = run(q, x)[1], run(q, x)[2:end]
    d = reshape(x[2], 1, 4, 4)
    @test y[] ≈ sum(x[1] ./ d)
    @test x̄[1] ≈ ones(3) ./ d
    @test x̄[2] ≈ reshape(-sum(x[1] ./ d .^ 2; dims = 1), 4, 4)
end

@testset "derivatives of shares keep their range, $size" for size in (1.0f20, 1.0f-20, 8.0f37)
    p = program("""(%0: f32[4,3]) {
      %1: f32[4] = reduce_sum %0 {axes=[1]}
      %2: f32[4,3] = broadcast_in_dim %1 {shape=[4, 3], dims=[0]}
      %3: f32[4,3] = div %0 %2
      return %3 }""")
    x, ȳ = size .* Float32[1 2 0.5 1; 1 1 0.5 0.25; 1 0.5 1 2], randn(r, Float32, 3, 4)
    v, b = JaxprAD.linearized(p, [true]; compact = true, optimized = true), JaxprAD.Builder()
    inputs = JaxprAD.fresh(p.inputs)
    known = JaxprAD.inline!(b, v.known, inputs)
    cotangent = JaxprAD.fresh(p.inputs)
    x̄ = JaxprAD.backward!(b, v.linear, known[2:end], JaxprAD.Atom[cotangent...])
    q = typecheck(Program("vjp", vcat(inputs, cotangent), b.equations, JaxprAD.Atom[x̄...]))
    wide, total = Float64.(x), sum(Float64.(x); dims = 1)
    expected = ȳ ./ total .- sum(ȳ .* wide; dims = 1) ./ total .^ 2
    for g in (run(q, Any[x, ȳ])[1], JaxprAD.run(JaxprAD.compile(q), q, Any[x, ȳ])[1])
        @test maximum(abs.(g .- expected)) < 1e-5 * maximum(abs.(expected))
    end
end

@testset "in loops" begin
    p = program("""(%0: f64[4,3], %1: f64[4]) {
      %2: f64[4,3] = scan %1 %0 {length=5, reverse=false, consts=1, carry=1, unroll=1,
        body=(%0: f64[4], %1: f64[4,3]) {
          %2: f64[4,3] = broadcast_in_dim %0 {shape=[4, 3], dims=[0]}
          %3: f64[4,3] = div %1 %2
          %4: f64[4,3] = cos %3
          return %4 }}
      return %2 }""")
    @test :mul in names_in(only(share_reciprocals(p).equations)[:body])
    @test native_agrees(p, Any[normal(r, Float64, [4, 3]), [2.0, 3.0, 4.0, 5.0]]; tolerance = 1e-13)
end
