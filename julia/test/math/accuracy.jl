# Number functions against MPFR: within the documented bounds over all arguments,
# special ones included.

include("../support/ulps.jl")

@testset "$name" for (name, _, _, _, single, double) in FUNCTIONS
    for (T, bound) in ((Float32, single), (Float64, double))
        error, place = worst(name, T, 1500)
        @test (name, T, place, error) == (name, T, place, min(error, bound))
    end
end

@testset "the measure itself" begin
    @test ulps(1.0f0, big(1.0)) == 0 && ulps(nextfloat(1.0f0), big(1.0)) == 1 &&
          ulps(1.0, big(1.0) + eps() / 2) == 0.5
    @test ulps(-0.0, big(0.0)) == Inf == ulps(NaN, big(1.0)) == ulps(1.0, big(NaN)) ==
          ulps(1.0, big(Inf))
    @test ulps(Inf32, big(floatmax(Float32))) == 1 && ulps(floatmax(Float32), big(1e39)) == 1
end

@testset "the near functions are the full ones, up to their limit" begin
    rng = MersenneTwister(1)
    for T in (Float32, Float64), f in (NM.sin, NM.cos, NM.tan)
        g, limit = NM.near(f, T)
        @test all(x -> isequal(g(x), f(x)), [limit; -limit; spread(rng, T, 2000, (0, limit / 2))])
        @test !isequal(g(T(1e30)), f(T(1e30)))      # and there is need for both
    end
    for T in (Float32, Float64)
        g, limit = NM.near(NM.exp, Complex{T})
        parts = [limit; -limit; T(0); T(-Inf); T(NaN); spread(rng, T, 2000, (0, limit / 2))]
        z = filter(z -> NM.extent(z) <= limit || isnan(real(z)),
            complex.(shuffle(rng, parts), shuffle(rng, parts)))
        # LLVM may fuse products with sums in one and not in the other: Julia 1.12 does.
        same(a, b) = isequal(a, b) || abs(a - b) <= 2eps(T) * abs(b)
        @test length(z) > 1900 && all(z -> same(g(z), NM.exp(z)), z)
        @test !isequal(g(complex(T(1), T(1e30))), NM.exp(complex(T(1), T(1e30))))
    end
    @test NM.near(NM.exp, Float32) === nothing
end

@testset "remainders are exact" begin
    rng = MersenneTwister(2)
    for T in (Float32, Float64)
        numbers = filter(x -> isfinite(x) && !iszero(x),
            [reinterpret(T, rand(rng, T === Float32 ? UInt32 : UInt64)) for _ in 1:10_000])
        @test all(((a, b),) -> isequal(NM.rem(a, b), rem(a, b)), zip(numbers, reverse(numbers)))
    end
    for T in (Float32, Float64)
        near, limit = NM.near(NM.rem, T)
        special = T[0, -0.0, 1, 3, nextfloat(T(3)), Inf, NaN, floatmax(T), floatmin(T), eps(T(0))]
        ordinary = spread(rng, T, 2000, (eps(T)^2, inv(eps(T))))
        whole = T[n * b for n in 1:50 for b in T[0.1, 0.3, 7, 1e-30]]
        pairs = vcat(vec([(s * a, b) for a in special, b in special, s in (1, -1)]),
            collect(zip(ordinary, reverse(ordinary))), [(a, b) for a in whole for b in whole[1:4]],
            [(limit * b, b) for b in T[0.3, 5]])
        small = filter(x -> NM.extent(x...) <= limit, pairs)
        @test length(small) > 2000 && all(x -> isequal(near(x...), rem(x...)), small)
        @test !isequal(near(T(1e30), T(0.3)), rem(T(1e30), T(0.3)))
    end
    @test isnan(NM.rem(1.0, 0.0)) && isnan(NM.rem(Inf, 1.0)) && isnan(NM.rem(1.0, NaN)) &&
          isnan(NM.rem(NaN, 1.0)) && NM.rem(-1.5, Inf) == -1.5
    @test isequal(NM.rem(-4.0, 2.0), -0.0) && NM.rem(floatmax(), 5.0e-324) == 0
end

@testset "integer powers" begin
    for n in (-7, -1, 0, 1, 2, 5, 30)
        @test NM.integer_pow(1.0625, Val(n)) ≈ 1.0625^n &&
              NM.integer_pow(0.5 + 0.25im, Val(n)) ≈ (0.5 + 0.25im)^n
    end
    @test NM.integer_pow(Int32(3), Val(5)) === Int32(243)
end

@testset "complex $name" for (name, reference) in (
    :exp => exp, :exp2 => exp2, :expm1 => expm1, :log => log, :log2 => log2, :log1p => log1p,
    :sin => sin, :cos => cos, :tan => tan, :asin => asin,
    :acos => acos, :atan => atan, :sinh => sinh, :cosh => cosh, :tanh => tanh, :asinh => asinh,
    :acosh => acosh, :atanh => atanh,
    :sqrt => sqrt, :rsqrt => z -> 1 / sqrt(z), :logistic => z -> 1 / (1 + exp(-z)),
    :magnitude => abs, :inverse => inv,
    :one_minus_square => z -> (1 - z) * (1 + z))
    rng, f = MersenneTwister(3), getfield(NM, name)
    for T in (Float32, Float64)
        points = [randn(rng, Complex{T}) * T(10)^rand(rng, -4:1) for _ in 1:300]
        # Base's complex functions of BigFloat are not all there on older Julia; in Float64 its
        # own errors count too.
        @test all(
            z -> abs(f(z) - reference(ComplexF64(z))) <=
                 8eps(T) * abs(reference(ComplexF64(z))), points)
    end
end

@testset "log Γ" begin
    rng = MersenneTwister(4)
    for (low, high) in ((1e-3, 0.5), (0.5, 3), (3, 9), (9, 1000))
        @test all(
            ulps(NM.lgamma(x), log(exact_gamma(big(x)))) <= 6
            for x in low .+ (high - low) .* rand(rng, 300)
        )
    end
    @test all(
        abs(NM.lgamma(x) - Float64(log(abs(exact_gamma(big(x)))))) <= 1e-13
        for x in -10 .* rand(rng, 300)
    )
    @test NM.lgamma(Inf) == Inf == NM.lgamma(-3.0) && isnan(NM.lgamma(NaN)) &&
          NM.lgamma(1e305) ≈ 1e305 * (log(1e305) - 1)
    @test all(NM.lgamma(-x) ≈ -log(x) for x in (1e-300, floatmin(), 1e-20, 2e-20))
end
