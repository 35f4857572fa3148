r = seeded("generators")

check_value("() { %0: f32[2,3] = iota {dtype=f32, shape=[2, 3], dim=1} return %0 }",
    () -> (rowmajor(Float32[0 1 2; 0 1 2]),))
check_value("() { %0: i8[300] = iota {dtype=i8, shape=[300], dim=0} return %0 }",
    () -> ((0:299) .% Int8,))
check_value("() { %0: i64[] = dim_size {dim=7, dtype=i64} return %0 }", () -> (fill(7),))
check_value("() { %0: f32[2,2] = constant {value=[1.0, 2.0, inf, -0.0]} return %0 }",
    () -> (rowmajor(Float32[1 2; Inf -0.0]),))
check_value("() { %0: bool[2] = constant {value=[true, false]} return %0 }", () -> ([true, false],))
check_value("() { %0: c64[1] = constant {value=[1.0, -2.0]} return %0 }",
    () -> (ComplexF32[1-2im],))
check_value("() { %0: u64[2] = constant {value=[1, 18446744073709551615]} return %0 }",
    () -> (UInt64[1, typemax(UInt64)],))
check_value("() { %0: i32[0] = constant {value=[]} return %0 }", () -> (Int32[],))
check("(%0: f64[2]) { %1: f64[2] = constant {value=[3.0, 4.0]}
  %2: f64[2] = mul %0 %1 return %2 }", randn(r, 2); reference = x -> (x .* [3, 4],))

@testset "large constants travel next to the text" begin
    text = "(%0: f64[3]) { %1: f64[3] = constant {ref=\"c0ffee\"}
      %2: f64[3] = mul %0 %1 return %2 }"
    @test_throws JaxprAD.ProgramTypeError run(program(text), Any[ones(3)])
    JaxprAD.CONSTANTS["c0ffee"] = [1.0, 2.0, 3.0]
    check(text, randn(r, 3); reference = x -> (x .* [1, 2, 3],))
    JaxprAD.CONSTANTS["c0ffee"] = [1.0, 2.0]
    @test_throws JaxprAD.ProgramTypeError run(program(text), Any[ones(3)])
    delete!(JaxprAD.CONSTANTS, "c0ffee")
end

@test refuses("() { %0: f32[3] = constant {value=[1.0, 2.0]} return %0 }")
@test refuses("() { %0: f32[1] = constant {value=[1.0], ref=\"ab\"} return %0 }")
@test refuses("() { %0: f32[2] = iota {dtype=f32, shape=[2], dim=1} return %0 }")
@test wellformed(program("() { %0: i64[] = dim_size {dim=<b>, dtype=i64} return %0 }"))
