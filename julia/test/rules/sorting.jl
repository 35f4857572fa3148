r = seeded("sorting")

check("(%0: f64[2,5]) { %1: f64[2,5] = sort %0 {dim=1, stable=true, num_keys=1} return %1 }", spaced(r, 5, 2); reference = x -> (sort(x; dims = 1),))
check("(%0: f64[3,2]) { %1: f64[3,2] = sort %0 {dim=0, stable=false, num_keys=1} return %1 }", spaced(r, 2, 3); reference = x -> (sort(x; dims = 2),))
check("(%0: f64[6], %1: f64[6]) { %2: f64[6], %3: f64[6] = sort %0 %1 {dim=0, stable=true, num_keys=1} return %2 %3 }", spaced(r, 6), randn(r, 6);
      reference = (x, y) -> (sort(x), y[sortperm(x)]))
check_value("(%0: i32[4], %1: f64[4], %2: i32[4]) { %3: i32[4], %4: f64[4], %5: i32[4] = sort %0 %1 %2 {dim=0, stable=true, num_keys=2} return %3 %4 %5 }",
            (a, b, c) -> (Int32[1, 1, 2, 2], [-1.0, 2.0, 0.0, 5.0], Int32[2, 0, 3, 1]), Int32[1, 2, 1, 2], [2.0, 5.0, -1.0, 0.0], Int32[0, 1, 2, 3])
order = "(%0: f64[5], %1: i32[5]) { %2: f64[5], %3: i32[5] = sort %0 %1 {dim=0, stable=true, num_keys=1} return %3 }"
check_value(order, (x, i) -> (Int32[4, 1, 2, 0, 3],), [NaN, 0.0, -0.0, -NaN, -Inf], Int32[0, 1, 2, 3, 4])
@testset "complex numbers go by real, then imaginary part" begin
    p = program("(%0: c128[3]) { %1: c128[3] = sort %0 {dim=0, stable=true, num_keys=1} return %1 }")
    @test run(p, Any[[1.0 + 2im, 0.0 + 9im, 1.0 - 1im]])[1] == [0 + 9im, 1 - 1im, 1 + 2im]
end
@test refuses("(%0: f64[2], %1: f64[3]) { %2: f64[2], %3: f64[3] = sort %0 %1 {dim=0, stable=true, num_keys=1} return %2 %3 }")
@test refuses("(%0: f64[2]) { %2: f64[2] = sort %0 {dim=0, stable=true, num_keys=2} return %2 }")
