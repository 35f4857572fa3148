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
    @test divisions(q) == 1 && count(e -> name_of(e) === :mul, q.equations) == 2
    T = dtype(p.inputs[1])
    x = Any[normal(r, T, shape), normal(r, T, shape), normal(r, T, shape[dims.+1]) .+ T(4)]
    @test relative_error(run(q, x), run(p, x)) < 4eps(T)
    @test native_agrees(p, x; tolerance = 4eps(T))
end

@testset "where there is no reciprocal, they are what XLA makes of them, $d" for d in (
    0.0, -0.0, Inf, NaN, floatmin() / 8, nextfloat(0.0), floatmax())

    p = program(quotients([2, 3], [0]))
    x = rowmajor([1.0 2.0 3.0; 0.0 -1.0 Inf])
    kernel = JaxprAD.compile(p)
    y = JaxprAD.run(kernel, p, Any[x, x, [d, d]])[1]
    @test isequal(y, x .* inv(d)) || isequal(y, x ./ d)
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
    @test all(e -> name_of(e) !== :div || JaxprAD.shape(e.outputs[1]) == [4, 4], q.equations)
    x = Any[normal(r, Float64, [4, 4, 3]), normal(r, Float64, [4, 4]) .+ 4]
    y, x̄ = run(q, x)[1], run(q, x)[2:end]
    d = reshape(x[2], 1, 4, 4)
    @test y[] ≈ sum(x[1] ./ d)
    @test x̄[1] ≈ ones(3) ./ d
    @test x̄[2] ≈ reshape(-sum(x[1] ./ d .^ 2; dims = 1), 4, 4)
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
