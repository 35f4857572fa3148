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
@test run(jvp(vector("cummax", 4)), Any[[3.0, 1.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])[2] ==
      [1, 1, 3, 4]
