# Generated functions where JaxprAD was not precompiled, as in a system image that is built without
# its cache: there a generator does not see functions that are defined after it.

const GENERATED = """
    include($(repr(joinpath(@__DIR__, "..", "..", "support", "harness.jl"))))
    slide = "window=[2, 3], strides=[1, 2], low=[1, 1], high=[0, 1], base_dilation=[1, 1],
      window_dilation=[1, 1]"
    @assert native_agrees("(%0: f32[4,5]) {
      %1: f32[4,3] = reduce_window_max %0 {\$slide} return %1 }", randn(Float32, 5, 4))
    @assert native_agrees("(%0: f64[4,5], %1: f64[4,3]) {
      %2: f64[4,5] = select_and_scatter_add %1 %0 {select=ge, window=[2, 3], strides=[1, 2], low=[1,
      1], high=[0, 1]} return %2 }",
                 randn(5, 4), randn(3, 4))
    @assert native_agrees("(%0: f64[7,9], %1: f64[9]) {
      %2: f64[7] = dot_general %0 %1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[],
      rhs_batch=[], dtype=f64, precision=none} return %2 }", randn(9, 7), randn(9))
    @assert native_agrees("(%0: f64[9,7], %1: f64[9]) {
      %2: f64[7] = dot_general %0 %1 {lhs_contract=[0], rhs_contract=[0], lhs_batch=[],
      rhs_batch=[], dtype=f64, precision=none} return %2 }", randn(7, 9), randn(9))
    @assert native_agrees("(%0: f64[7,9], %1: f64[9,5]) {
      %2: f64[7,5] = dot_general %0 %1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[],
      rhs_batch=[], dtype=f64, precision=none} return %2 }", randn(9, 7), randn(5, 9))
    @assert native_agrees("(%0: f64[7]) { %1: f64[7] = integer_pow %0 {y=5} return %1 }", randn(7))
"""

@testset "generators see what they need" begin
    package = joinpath(@__DIR__, "..", "..", "..")
    code = string("push!(LOAD_PATH, ", repr(package), ")\n", GENERATED)
    command = `$(Base.julia_cmd()) --startup-file=no --compiled-modules=no -e $code`
    @test success(pipeline(command; stderr = stderr))
end
