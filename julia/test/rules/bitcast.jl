bits(x, y, dtype) = "(%0: $x) { %1: $y = bitcast_convert_type %0 {dtype=$dtype} return %1 }"
check_value(bits("f32[3]", "i32[3]", "i32"), x -> (reinterpret(Int32, x) |> collect,),
    Float32[1, -2, NaN])
check_value(bits("u64[2]", "f64[2]", "f64"), x -> ([1.5, -0.0],),
    reinterpret(UInt64, [1.5, -0.0]) |> collect)
check_value(bits("u32[2]", "u8[2,4]", "u8"), x -> (rowmajor(UInt8[4 3 2 1; 8 7 6 5]),),
    UInt32[0x01020304, 0x05060708])
check_value(bits("u8[2,4]", "u32[2]", "u32"), x -> (UInt32[0x01020304, 0x05060708],),
    rowmajor(UInt8[4 3 2 1; 8 7 6 5]))
check_value(bits("i32[]", "bf16[2]", "bf16"), x -> (JaxprAD.BFloat16[0, 1],),
    fill(Int32(0x3f800000)))
check_value(bits("bool[2]", "bool[2]", "bool"), x -> ([true, false],), [true, false])
@testset "no tangent" begin
    p = program("(%0: f64[2]) { %1: u64[2] = bitcast_convert_type %0 {dtype=u64}
      %2: f64[2] = bitcast_convert_type %1 {dtype=f64} %3: f64[2] = mul %0 %2 return %3 }")
    @test run(vjp(p), Any[[3.0, 4.0], [1.0, 2.0]])[1] == [3, 8]
end
@test refuses(bits("u8[2,3]", "u32[2]", "u32"))
@test refuses(bits("bool[4]", "u8[4]", "u8"))
@test refuses(bits("c64[4]", "f64[4]", "f64"))
