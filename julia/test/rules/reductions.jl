r = seeded("reductions")
x = spaced(r, 4, 3, 2)
reduction(op, axes, y; x = "f64[2,3,4]") = "(%0: $x) { %1: $y = $op %0 {axes=$axes} return %1 }"

for (op, f) in ["reduce_sum" => sum, "reduce_prod" => prod, "reduce_max" => maximum,
    "reduce_min" => minimum]
    for (axes, y, dims) in [([1], "f64[2,4]", 2), ([0, 2], "f64[3]", (1, 3)),
        ([0, 1, 2], "f64[]", (1, 2, 3))]
        check(reduction(op, axes, y), x;
            reference = x -> (dropdims(f(x; dims = dims); dims = dims),), name = "$op over $axes")
    end
    check(reduction(op, "[]", "f64[2,3,4]"), x; reference = x -> (x,), name = "$op over nothing")
end

@testset "zeros in a product" begin
    check(reduction("reduce_prod", [0], "f64[]"; x = "f64[4]"), [2.0, 0.0, 3.0, 5.0]; name = "one")
    @test run(vjp(program(reduction("reduce_prod", [0], "f64[]"; x = "f64[4]"))),
        Any[[2.0, 0.0, 3.0, 0.0], fill(1.0)])[1] == zeros(4)
end
@testset "ties share the tangent of an extremum" begin
    p = vjp(program(reduction("reduce_max", [0], "f64[]"; x = "f64[4]")))
    @test run(p, Any[[1.0, 3.0, 3.0, 2.0], fill(1.0)])[1] == [0, 0.5, 0.5, 0]
end

check_value(reduction("reduce_sum", [0], "f64[2]"; x = "f64[0,2]"), x -> (zeros(2),), zeros(2, 0))
check_value(reduction("reduce_max", [0], "f64[2]"; x = "f64[0,2]"), x -> (fill(-Inf, 2),),
    zeros(2, 0))
check_value(reduction("reduce_min", [0], "i8[]"; x = "i8[0]"), x -> (fill(Int8(127)),), Int8[])
check_value(reduction("reduce_sum", [0], "i8[]"; x = "i8[3]"), x -> (fill(Int8(44)),),
    Int8[100, 100, 100])
check_value(reduction("reduce_max", [0], "f32[]"; x = "f32[3]"), x -> (fill(NaN32),),
    Float32[1, NaN, 3])
check_value(reduction("reduce_min", [0], "f32[]"; x = "f32[3]"), x -> (fill(NaN32),),
    Float32[1, NaN, 3])
check_value(reduction("reduce_sum", [0], "f16[]"; x = "f16[4096]"), x -> (fill(Float16(4096)),),
    ones(Float16, 4096))
check_value(reduction("reduce_sum", [0], "bf16[]"; x = "bf16[1024]"),
    x -> (fill(JaxprAD.BFloat16(1024)),), fill(JaxprAD.BFloat16(1.0f0), 1024))
check_value(reduction("reduce_and", [0], "bool[2]"; x = "bool[2,2]"), x -> ([false, true],),
    [true false; true true])
check_value(reduction("reduce_or", [0], "u8[]"; x = "u8[3]"), x -> (fill(0x0f),), UInt8[1, 6, 8])
check_value(reduction("reduce_xor", [0], "u8[]"; x = "u8[3]"), x -> (fill(0x07),), UInt8[1, 2, 4])
@test refuses(reduction("reduce_or", [0], "f64[]"; x = "f64[3]"))
@test refuses(reduction("reduce_sum", [0], "bool[]"; x = "bool[3]"))

arg(op; x = "f64[2,3]", y = "i32[2]", axis = 1) = "(%0: $x) {
  %1: $y = $op %0 {axis=$axis, dtype=i32} return %1 }"
check_value(arg("argmax"), x -> (Int32[1, 1],), rowmajor([1.0 5.0 5.0; 2.0 NaN 9.0]))
check_value(arg("argmin"), x -> (Int32[1, 2],), rowmajor([1.0 0.0 -0.0; 7.0 2.0 NaN]))
check_value(arg("argmax"; x = "bool[2,3]", y = "i32[3]", axis = 0), x -> (Int32[0, 1, 0],),
    rowmajor([true false true; true true false]))
@test refuses(arg("argmax"; x = "f64[2,0]"))
@test wellformed(vjp(program("(%0: f64[2,3]) { %1: i32[2] = argmax %0 {axis=1, dtype=i32}
  %2: f64[2,3] = add %0 %0 return %1 %2 }")))
