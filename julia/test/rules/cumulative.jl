r = seeded("cumulative")
cumulative(op, reverse; n = 5) = "(%0: f64[2,$n,3]) {
  %1: f64[2,$n,3] = $op %0 {axis=1, reverse=$reverse} return %1 }"
turned(f) = x -> reverse(f(reverse(x; dims = 2)); dims = 2)

for (op, f) in ["cumsum" => x -> cumsum(x; dims = 2), "cumprod" => x -> cumprod(x; dims = 2),
    "cummax" => x -> accumulate(max, x; dims = 2), "cummin" => x ->
        accumulate(min, x; dims = 2), "cumlogsumexp" => x -> log.(cumsum(exp.(x); dims = 2))]
    check(cumulative(op, false), spaced(r, 3, 5, 2); reference = x -> (f(x),), name = op)
    check(cumulative(op, true), spaced(r, 3, 5, 2); reference = x -> (turned(f)(x),),
        name = "$op reverse")
    check(cumulative(op, false; n = 1), randn(r, 3, 1, 2); reference = x -> (f(x),),
        name = "$op of one")
    check(cumulative(op, true; n = 0), zeros(3, 0, 2); name = "$op of none")
end

vector(op, n) = program("(%0: f64[$n]) { %1: f64[$n] = $op %0 {axis=0, reverse=false} return %1 }")
@testset "zeros in a product" begin
    @test run(jvp(vector("cumprod", 4)), Any[[2.0, 0.0, 3.0, 0.0], ones(4)])[2] == [1, 2, 6, 0]
end
@testset "-inf is an empty sum" begin
    y, ẏ = run(jvp(vector("cumlogsumexp", 4)), Any[[-Inf, -Inf, 0.0, 0.0], ones(4)])
    @test y ≈ [-Inf, -Inf, 0, log(2)] && ẏ ≈ [1, 0, 1, 1]
end
@testset "no overflow" begin
    y, ẏ = run(jvp(vector("cumlogsumexp", 2)), Any[[1000.0, 1000.0], [1.0, 3.0]])
    @test y ≈ [1000, 1000 + log(2)] && ẏ ≈ [1, 2]
end
@test run(vector("cummax", 3), Any[[1.0, NaN, 5.0]])[1] |> v -> isequal(v, [1, NaN, NaN])
@test run(jvp(vector("cummax", 4)), Any[[3.0, NaN, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])[2] ==
      [1, 0, 0, 0]
@test run(jvp(vector("cummax", 3)), Any[[NaN, 1.0, 2.0], [1.0, 2.0, 3.0]])[2] == [1, 0, 0]
@test run(jvp(vector("cummax", 4)), Any[[3.0, 1.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])[2] ==
      [1, 1, 3, 4]

# Running totals have the error of totals by blocks, however many there are and whatever the axis.
# The relative errors of all factors add up in a product, in any order; but one by one they are
# those of sums near 1, a hundred times as large here.
numbers(T, op, n) = fill(op == "cumprod" ? one(T) + eps(T) : T(0.1), n)
exactly(op, x) =
    op == "cumlogsumexp" ? log.(cumsum(exp.(x))) : op == "cumprod" ? cumprod(x) : cumsum(x)
"Runs the Program natively, and by the evaluator."
both_ways(p, x) = JaxprAD.run(JaxprAD.compile(p), p, x)[1], run(p, x)[1]

@testset "$op $of [$n, $columns], reverse = $backwards" for (op, of, T) in (
        ("cumsum", "f32", Float32), ("cumprod", "f32", Float32),
        ("cumlogsumexp", "f32", Float32), ("cumsum", "c64", ComplexF32)),
    (n, columns, backwards) in ((100_000, 1, false), (17, 1, true), (256, 1, false),
        (777, 1, true), (40_000, 3, false), (1057, 2, true))

    shape = columns == 1 ? "$of[$n]" : "$of[$n,$columns]"
    p = program("(%0: $shape) { %1: $shape = $op %0 {axis=0, reverse=$backwards} return %1 }")
    x = repeat(reshape(T.(numbers(real(T), op, n)), 1, n), columns)
    W = T <: Complex ? ComplexF64 : Float64
    expected = exactly(op, W.(x[1, :]))
    @test heap_free(p)
    for y in both_ways(p, Any[columns == 1 ? vec(x) : x])
        y = reshape(y, columns, n)
        @test all(1:columns) do c
            found = backwards ? reverse(y[c, :]) : y[c, :]
            maximum(abs.(found .- expected) ./ abs.(expected)) <
            (op == "cumprod" ? 50 : 10) * eps(real(T))
        end
    end
end

@testset "infinities and NaN in running totals" begin
    n = 100
    p = program("(%0: f32[$n]) { %1: f32[$n] = cumsum %0 {axis=0, reverse=false} return %1 }")
    x = ones(Float32, n)
    x[40], x[70], x[90] = Inf32, floatmax(Float32), NaN32
    expected = cumsum(Float64.(x))
    for y in both_ways(p, Any[x])
        @test isequal(y, Float32.(expected))
    end
end

@testset "in half precision, the totals are those of single precision, rounded" begin
    n = 5000
    p = program("(%0: f16[$n]) { %1: f16[$n] = cumsum %0 {axis=0, reverse=false} return %1 }")
    x = fill(Float16(0.1), n)
    for y in both_ways(p, Any[x])
        @test maximum(abs.(y .- cumsum(Float64.(x))) ./ cumsum(Float64.(x))) < eps(Float16)
    end
end

# Complex numbers are ordered by their real parts, equal ones by their imaginary parts.
extreme(f) = (a, b) -> f((real(a), imag(a)), (real(b), imag(b))) == (real(a), imag(a)) ? a : b
over(op) = op == "cumlogsumexp" ? "reduce_sum" : replace(op, "cum" => "reduce_")
complex_scan(op, T) = program("(%0: $T[2,4]) { %1: $T[2,4] = $op %0 {axis=1, reverse=false}
  %2: $T[4] = $(over(op)) %0 {axes=[0]} return %1 %2 }")
@testset "$op of complex numbers, $T" for (op, f) in ("cummax" => extreme(max),
        "cummin" => extreme(min), "cumlogsumexp" => (a, b) -> log(exp(a) + exp(b))),
    T in ("c64", "c128")

    x = JaxprAD.DTYPE_OF_NAME[Symbol(T)][1+1im 0.5-2im; 1+2im 0.5+1im; 0 -1+0.5im; 2-1im 0.5+0im]
    p = complex_scan(op, T)
    y = run(p, Any[x])
    @test y[1] ≈ accumulate(f, x; dims = 1)
    g = op == "cumlogsumexp" ? (+) : f
    @test y[2] == [g(x[k, 1], x[k, 2]) for k in 1:4]
    @test native_agrees(p, Any[x])
    @test heap_free(p)
end
