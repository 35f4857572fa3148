# Log densities for samplers. LogDensityProblems is not there on Debian's Julia, nor are extensions.

include("../support/tracing.jl")

using JaxprAD: LogDensity

const INSTALLED = VERSION >= v"1.9" && Base.find_package("LogDensityProblems") !== nothing

rng = seeded("log densities")
x, A = randn(rng, 5), randn(rng, 5, 5)
gaussian(x) = -sum(abs2, A * x) / 2

@testset "the compiled functions" begin
    ℓ = LogDensity(gaussian, 5)
    @test ℓ.value(x) ≈ gaussian(x) && ℓ.gradient(x)[2] ≈ -A' * (A * x)
    @test ℓ.hessian(x)[3] ≈ -A' * A
end

if INSTALLED
    using LogDensityProblems

    @testset "the interface" begin
        ℓ = LogDensity(gaussian, 5)
        @test LogDensityProblems.capabilities(ℓ) == LogDensityProblems.LogDensityOrder(2)
        @test LogDensityProblems.dimension(ℓ) == 5
        @test LogDensityProblems.logdensity(ℓ, x) ≈ gaussian(x)
        value, slope = LogDensityProblems.logdensity_and_gradient(ℓ, view(x, 1:5))
        @test value ≈ gaussian(x) && slope ≈ -A' * (A * x)
        _, _, curvature = LogDensityProblems.logdensity_gradient_and_hessian(ℓ, [1, 2, 3, 4, 5])
        @test curvature ≈ -A' * A
        @test_throws DimensionMismatch LogDensityProblems.logdensity(ℓ, [1.0])
        # its own check of finite values and sizes
        @test isempty(LogDensityProblems.stresstest(LogDensityProblems.logdensity_and_gradient, ℓ;
            N = 20))
    end
end
