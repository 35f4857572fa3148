@testset "what is cheap is recomputed, not kept" begin
    l = linearize(program("(%0: f64[3], %1: f64[100,3]) {
      %2: f64[100,3] = broadcast_in_dim %0 {shape=[100, 3], dims=[1]}
      %3: f64[100,3] = mul %2 %1 return %3 }"))
    # %1 itself, not the broadcast
    @test map(a -> JaxprAD.shape(a), l.known.outputs[2:end]) |>
          shapes -> count(==([100, 3]), shapes) == 1
end
@testset "results without tangents" begin
    l = linearize(program("(%0: f64[], %1: f64[]) { %2: f64[] = sin %0 %3: f64[] = floor %1
      %4: i32[] = convert_element_type %1 {dtype=i32} return %2 %3 %4 %1 }"))
    @test l.hastangent == [true, false, false, true]
end
@testset "inactive inputs" begin
    p = program("(%0: f64[], %1: f64[]) { %2: f64[] = mul %0 %1 return %2 }")
    @test length(linearize(p, Bool[1, 0]).linear.inputs) == 2
    @test run(vjp(p, Bool[0, 1]), [fill(3.0), fill(4.0), fill(1.0)]) == [fill(3.0)]
    @test_throws JaxprAD.ProgramTypeError vjp(p, Bool[1])
    @test_throws JaxprAD.NotDifferentiable jvp(program("(%0: i32[]) { return %0 }"), Bool[1])
end
@testset "a result that is an input, a literal, or twice the same" begin
    p = program("(%0: f64[]) { return %0 1.5:f64 %0 }")
    @test run(jvp(p), [fill(2.0), fill(1.0)]) ==
          [fill(2.0), fill(1.5), fill(2.0), fill(1.0), fill(0.0), fill(1.0)]
    @test run(vjp(p), [fill(2.0), fill(1.0), fill(10.0), fill(100.0)]) == [fill(101.0)]
    @test run(vjp(p; value = true), [fill(2.0), fill(1.0), fill(10.0), fill(100.0)]) ==
          [fill(2.0), fill(1.5), fill(2.0), fill(101.0)]
end
@testset "transpose takes the cotangents that there are" begin
    p = program("(%0: f64[], %1: f64[]) { %2: f64[] = mul %0 %1 %3: f64[] = neg %1 return %2 %3 }")
    t = JaxprAD.transpose(p, Bool[0, 1], Bool[1, 0])
    @test run(t, [fill(3.0), fill(2.0)]) == [fill(6.0)]
    @test run(JaxprAD.transpose(p, Bool[0, 1], Bool[0, 0]), [fill(3.0)]) == [fill(0.0)]
    @test_throws JaxprAD.UnsupportedPrimitive JaxprAD.transpose(program("(%0: f64[]) {
      %1: f64[] = sin %0 return %1 }"), Bool[1])
end

# Loops, and branches, nested in one another.
nested_scans(depth) =
    depth == 0 ? "%1: f64[] = sin %0 return %1" :
    "%1: f64[] = scan %0 {length=1, reverse=false, consts=0, carry=1, unroll=1, " *
    "body=(%0: f64[]) { $(nested_scans(depth - 1)) }} return %1"
nested_conds(depth) =
    depth == 0 ? "%2: f64[] = sin %1 return %2" :
    "%2: f64[] = cond %0 %0 %1 {branches=[(%0: i32[], %1: f64[]) { $(nested_conds(depth - 1)) }, " *
    "(%0: i32[], %1: f64[]) { return %1 }]} return %2"
@testset "no time is exponential in the depth of nesting" begin
    p = program("(%0: f64[]) { $(nested_scans(20)) }")
    @test run(vjp(p), [fill(0.5), fill(2.0)])[1][] ≈ 2cos(0.5)
    @test least_seconds(() -> vjp(p)) < 2
    q = program("(%0: i32[], %1: f64[]) { $(nested_conds(20)) }")
    @test run(vjp(q), [fill(Int32(0)), fill(0.5), fill(2.0)])[1][] ≈ 2cos(0.5)
    @test least_seconds(() -> vjp(q)) < 2
end
