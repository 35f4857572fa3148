# Functions of traced numbers, against Julia's.

include("../support/tracing.jl")

const UNARY = [-, abs, sign, exp, exp2, exp10, expm1, sin, cos, tan, sinh, cosh, tanh, asinh, atan,
    cbrt, abs2, inv, sinpi, cospi, float, one, zero, conj, real, x -> x^2, x -> x^-3, x -> x^0,
    x -> x^5, x -> 2^x, x -> ℯ^x, x -> π * x, x -> x / 3, x -> 1 // 2 + x, x -> muladd(x, x, 1),
    x -> sincos(x)[1] * sincos(x)[2], x -> max(x, 0.1), x -> min(0.1, x),
    x -> clamp(x, -0.2, 0.4),
    x -> atan(x, 2), x -> hypot(x, 1), x -> copysign(2.0, x) * x, x -> select(x > 0, x, x^2),
    x -> mod(x, 0.3), x -> rem(x, 0.3), x -> floor(x) + x, x -> ceil(2x) * x, x -> trunc(3x) * x,
    x -> round(3x) * x, x -> sec(x), x -> deg2rad(x), x -> @evalpoly(x, 1, 2, 3),
    x -> round(x; digits = 2) + x, x -> floor(1003x; digits = -1) * x, x -> ldexp(x, 3),
    x -> nextfloat(x), x -> eps(x) + x, x -> (x ≈ 0.5) * x, x -> x isa Real ? x : 0,
    x -> Float64(x) + Float32(1), x -> fma(x, x, 1.0)]
const OF_POSITIVE = [log, log2, log10, log1p, sqrt, x -> x^0.3, x -> x^(1 // 3), x -> log(2, x),
    x -> x^x, acosh ∘ (x -> x + 1)]
const WITHIN_ONE = [asin, acos, atanh]

@testset "functions of one number" begin
    for f in UNARY, x in (0.37, -0.81)
        @test (f; agrees(f, x))
    end
    for f in OF_POSITIVE
        @test (f; agrees(f, 0.37))
    end
    for f in WITHIN_ONE
        @test (f; agrees(f, -0.43))
    end
end

@testset "nearly equal: $x and $y" for (x, y) in ((1.0, 1.0 + 1e-9), (1.0, 1.1), (NaN, NaN),
    (Inf, Inf), (Inf, 1.0), (0.0, 1e-9))
    @test trace(isapprox, x, y)(x, y) == (x ≈ y)
    @test trace(isapprox, [x, 2], [y, 2])([x, 2], [y, 2]) == ([x, 2] ≈ [y, 2])
    @test trace((x, y) -> isapprox(x, y; atol = 0.2), x, y)(x, y) == isapprox(x, y; atol = 0.2)
end

@testset "functions of two numbers" begin
    for f in (+, -, *, /, \, max, min, atan, hypot, mod, rem, (x, y) -> abs(x)^y,
        (x, y) -> select((x < y) & !(x == y), x * y, x),
        (x, y) -> select((x > y) | (x >= 1), x, y), (x, y) -> fld(x, y) * x,
        (x, y) -> fld(x, 0.3) * fld(0.2, y) * x, (x, y) -> cld(x, y) * y, (x, y) -> div(x, y) * y)
        for (x, y) in ((0.7, 0.3), (-0.7, 0.4), (0.2, -0.9))
            @test (f; agrees(f, x, y))
        end
    end
end

@testset "hypot out of the range of squares" begin
    for x in (1e200, 1e-200, 0.0, Inf, -Inf, 3.0), y in (1e200, -1e-200, 0.0, -Inf, 4.0)
        @test trace(hypot, x, y)(x, y) ≈ hypot(x, y)
    end
    @test isnan(trace(hypot, 1.0, 1.0)(NaN, 1.0)) && trace(hypot, 1.0, 1.0)(NaN, Inf) == Inf
    @test trace(x -> hypot(x, 4.0f0, 12), 3.0f0)(3.0f0) === 13.0f0
    @test trace(x -> hypot(4, x), 3)(3) === 5.0
    @test gradient(x -> hypot(x, 4.0), 3.0)[1] ≈ 0.6
    @test gradient(x -> hypot(x, 4e200), 3e200)[1] ≈ 0.6
end

@testset "quotients of integers" begin
    for f in (div, fld, cld, mod, rem), x in (7, -7, 6), y in (3, -3)
        @test trace(v -> f.(v, y), [x, 0])([x, 0]) == [f(x, y), f(0, y)]
    end
end

@testset "element types follow Julia's promotion" begin
    types(f, x...) = eltype(trace(f, x...)(x...))
    for f in (x -> x + 1, x -> 2x, x -> x * π, x -> x / 2, x -> x + 1.0, x -> x^2, x -> x > 0,
        x -> x + true, x -> exp(x), x -> x * 1.0f0), x in (1.0f0, 1.0)
        @test (f; types(f, x) === typeof(f(x)))
    end
    @test types(x -> x .+ 1, [1, 2]) === Int
    @test types(x -> x ./ 2, Int32[1, 2]) === Float64
    @test types(x -> (x .> 1) .+ (x .> 0), [1, 2]) === Int
end

@testset "what is known stays known" begin
    counted = Ref(0)
    f(x) = (zero(x) == 0 && (counted[] += 1); one(x) < 2 ? x : -x)
    @test trace(f, 3.0)(3.0) == 3.0 && counted[] == 1
end
