# The harness tested: a primitive whose rule is wrong must fail every check that could see it.

using JaxprAD: @unary, apply, PRIMITIVES

if !haskey(PRIMITIVES, :wrong_sin)
    @unary(:wrong_sin, sin; tangents = ((t, y, x) -> 3 * (t * cos(x)),))
    @unary(:shifted_sin, sin; tangents = ((t, y, x) -> t * cos(x) + 1,))
    @unary(:wrong_cos, cos; tangents = ((t, y, x) -> -3 * (t * sin(x)),))
    @unary(:wrong_twice, sin; tangents = ((t, y, x) -> t * apply(:wrong_cos, x),))
    @unary(:wrong_neg, -; tangents = ((t, y, x) -> apply(:wrong_neg, t),),
        transpose = (ȳ, x) -> (3 * -ȳ,))
    @unary(:wrong_neg_tangent, -; tangents = ((t, y, x) -> -3 * t,), transpose = (ȳ, x) -> (-ȳ,))
end

@testset "the tester" begin
    x = randn(seeded("the tester"), 5)
    on(op) = Case("(%0: f64[5]) { %1: f64[5] = $op %0 return %1 }", x)
    @test all(agrees(on("sin")) for agrees in CHECKS)
    @test value_agrees(on("sin"), x -> (sin.(x),))
    @test !value_agrees(on("sin"), x -> (3sin.(x),))
    @test !value_agrees(on("sin"), x -> (sin.(x) .+ 1e-12,))
    for agrees in (jvp_agrees, taylor_agrees, transpose_agrees, vjp_agrees)
        @test !agrees(on("wrong_sin"))
    end
    @test jvp_agrees(on("wrong_twice")) && !second_order_agrees(on("wrong_twice"))
    @test !jvp_is_linear(on("shifted_sin"))
    for agrees in (transpose_agrees, vjp_agrees)
        @test !agrees(on("wrong_neg"))
    end
    for agrees in (jvp_agrees, taylor_agrees)
        @test !agrees(on("wrong_neg_tangent"))
    end
    @test refuses("(%0: f64[5]) { %1: f64[4] = sin %0 return %1 }")
end
