# Degrees, multiples of π and sinc, against Julia's and against series.

include("../support/tracing.jl")

@testset "angles: $f" for f in (deg2rad, rad2deg, sind, cosd, tand, sinpi, cospi, sinc,
    x -> rem2pi(x, RoundNearest), mod2pi, x -> rem2pi(x, RoundUp), x -> rem2pi(x, RoundToZero),
    x -> asind(x / 1000), x -> atand(x))
    for x in (0.37, -0.81, 12.9, -100.3, 440.7)
        @test agrees(f, x)
    end
end

@testset "whole numbers of quarter turns are exact, however many" begin
    for k in -9:9
        @test trace(sind, 1.0)(90.0k) == sind(90k) && trace(cosd, 1.0)(90.0k) == cosd(90k)
        @test trace(sinpi, 1.0)(k / 2) == sinpi(k / 2) && trace(cospi, 1.0)(k / 2) == cospi(k / 2)
    end
    @test trace(sinpi, 1.0)(1e10 + 0.25) ≈ sqrt(0.5)
    @test trace(cosd, 1.0f0)(3.6f8 + 64) ≈ cosd(64.0f0)
    @test trace(sind, 30)(30) ≈ 0.5
end

@testset "the remainder of large angles" begin
    for x in (1e6, -1e9, 1e15)
        @test trace(x -> rem2pi(x, RoundNearest), x)(x) ≈ rem2pi(x, RoundNearest)
        @test trace(mod2pi, x)(x) ≈ mod2pi(x)
    end
end

# Near 0 Julia's quotients cancel; the series of sin(πx)/(πx) has no such error.
sinc_sum(x, order) = sum(
    big(-1)^k * big(π)^2k * prod(big.(2k-order+1:2k)) *
    big(x)^max(2k - order, 0) / factorial(big(2k + 1)) for k in cld(order, 2):40)
@testset "sinc and its derivatives at $x" for x in (0.0, 1e-9, 1e-3, 0.1, 0.318, 0.319, 0.5, -0.7)
    first_, second = x -> gradient(sinc, x), x -> gradient(x -> gradient(sinc, x), x)
    @test trace(sinc, x)(x) ≈ Float64(sinc_sum(x, 0)) rtol = 1e-15
    @test first_(x) ≈ Float64(sinc_sum(x, 1)) rtol = 1e-13
    @test second(x) ≈ Float64(sinc_sum(x, 2)) rtol = 1e-12
    @test trace(cosc, x)(x) ≈ Float64(sinc_sum(x, 1)) rtol = 1e-14
    @test gradient(cosc, x) ≈ Float64(sinc_sum(x, 2)) rtol = 1e-13
end
@testset "sinc far out" begin
    @test trace(sinc, 1.0)(Inf) == 0 && trace(cosc, 1.0)(-Inf) == 0
    @test gradient(x -> sum(sinc.(x)), [1e200, 1e-200, 3.0]) ≈ [0, 0, cospi(3.0) / 3] atol = 1e-15
end
