r = seeded("sorting")

check("(%0: f64[2,5]) { %1: f64[2,5] = sort %0 {dim=1, stable=true, num_keys=1} return %1 }",
    spaced(r, 5, 2); reference = x -> (sort(x; dims = 1),))
check("(%0: f64[3,2]) { %1: f64[3,2] = sort %0 {dim=0, stable=false, num_keys=1} return %1 }",
    spaced(r, 2, 3); reference = x -> (sort(x; dims = 2),))
check("(%0: f64[6], %1: f64[6]) { %2: f64[6],
  %3: f64[6] = sort %0 %1 {dim=0, stable=true, num_keys=1} return %2 %3 }", spaced(r, 6),
    randn(r,
        6);
    reference = (x, y) -> (sort(x), y[sortperm(x)]))
check_value("(%0: i32[4], %1: f64[4], %2: i32[4]) { %3: i32[4], %4: f64[4],
  %5: i32[4] = sort %0 %1 %2 {dim=0, stable=true, num_keys=2} return %3 %4 %5 }",
    (a, b, c) -> (Int32[1, 1, 2, 2], [-1.0, 2.0, 0.0, 5.0], Int32[2, 0, 3, 1]), Int32[1, 2, 1, 2],
    [2.0, 5.0, -1.0, 0.0], Int32[0, 1, 2, 3])
order = "(%0: f64[5], %1: i32[5]) { %2: f64[5],
  %3: i32[5] = sort %0 %1 {dim=0, stable=true, num_keys=1} return %3 }"
check_value(order, (x, i) -> (Int32[4, 1, 2, 0, 3],), [NaN, 0.0, -0.0, -NaN, -Inf],
    Int32[0, 1, 2, 3, 4])
@testset "complex numbers go by real, then imaginary part" begin
    p = program("(%0: c128[3]) { %1: c128[3] = sort %0 {dim=0, stable=true, num_keys=1} return
      %1 }")
    @test run(p, Any[[1.0 + 2im, 0.0 + 9im, 1.0 - 1im]])[1] == [0 + 9im, 1 - 1im, 1 + 2im]
end
@test refuses("(%0: f64[2], %1: f64[3]) { %2: f64[2],
  %3: f64[3] = sort %0 %1 {dim=0, stable=true, num_keys=1} return %2 %3 }")
@test refuses("(%0: f64[2]) { %2: f64[2] = sort %0 {dim=0, stable=true, num_keys=2} return %2 }")

top(x, y, k, axis) = "(%0: $x) { %1: $y,
  %2: $(replace(y, r"^\w+" => "i32")) = top_k %0 {k=$k, axis=$axis} return %1 %2 }"
check(top("f64[2,5]", "f64[2,3]", 3, 1), spaced(r, 5, 2); name = "top_k",
    reference = x -> (sort(x; dims = 1, rev = true)[1:3, :],
        Int32.(mapslices(v -> sortperm(v; rev = true)[1:3] .- 1, x; dims = 1))))
check(top("f64[4,2]", "f64[1,2]", 1, 0), spaced(r, 2, 4);
    reference = x -> (maximum(x; dims = 2), Int32.(map(i -> i[2] - 1, argmax(x; dims = 2)))),
    name = "top_k first axis")
check(top("f64[4]", "f64[0]", 0, 0), randn(r, 4); name = "top_k none")
check_value(top("f64[6]", "f64[6]", 6, 0),
    x ->
        ([NaN, Inf, 0.0, 0.0, -0.0, -NaN], Int32[0, 5, 2, 4, 1, 3]),
    [NaN, -0.0, 0.0, -NaN, 0.0, Inf])
check_value(top("u8[4]", "u8[3]", 3, 0), x -> (UInt8[200, 7, 7], Int32[1, 0, 3]),
    UInt8[7, 200, 0, 7])
check_value(top("bf16[3]", "bf16[2]", 2, 0), x -> (JaxprAD.BFloat16[2, 1], Int32[2, 0]),
    JaxprAD.BFloat16[1, -3, 2])
@test refuses(top("f64[4]", "f64[5]", 5, 0))
@test refuses(top("c64[4]", "c64[2]", 2, 0))
