# The backend of DifferentiationInterface, by that package's own scenarios where there is
# DifferentiationInterfaceTest. Neither is there on Debian's Julia, nor are extensions.

using LinearAlgebra: Diagonal
using JaxprAD: AutoJaxprAD, PackageNotLoaded

const INSTALLED = VERSION >= v"1.9" && Base.find_package("DifferentiationInterface") !== nothing

INSTALLED || @testset "what to load is said" begin
    @test_throws PackageNotLoaded AutoJaxprAD()
    @test occursin("using DifferentiationInterface", sprint(showerror,
        try
            AutoJaxprAD()
        catch e
            e
        end))
end

if INSTALLED
    using DifferentiationInterface
    const DI = DifferentiationInterface
    const BACKEND = AutoJaxprAD()
    rng = seeded("differentiation interface")
    x, v = randn(rng, 6), randn(rng, 6)
    f(x) = sum(sin.(x) .* x .^ 2)
    f′(x) = cos.(x) .* x .^ 2 .+ 2 .* x .* sin.(x)

    @testset "operators, prepared and not" begin
        @test DI.value_and_gradient(f, BACKEND, x)[1] ≈ f(x)
        prep = prepare_gradient(f, BACKEND, x)
        @test DI.gradient(f, prep, BACKEND, 2x) ≈ f′(2x)
        g = similar(x)
        @test DI.gradient!(f, g, prep, BACKEND, 3x) === g && g ≈ f′(3x)
        h = DI.hessian(f, BACKEND, x)
        @test h ≈ JaxprAD.hessian(f, x)
        @test only(DI.hvp(f, BACKEND, x, (v,))) ≈ h * v
        @test DI.jacobian(x -> sin.(x), BACKEND, x) ≈ Diagonal(cos.(x))
        @test DI.second_derivative(sin, BACKEND, 0.7) ≈ -sin(0.7)
    end

    @testset "constants, caches and functions in place" begin
        scaled(x, a) = a * f(x)
        prep = prepare_gradient(scaled, BACKEND, x, Constant(2.0))
        @test DI.gradient(scaled, prep, BACKEND, x, Constant(5.0)) ≈ 5f′(x)
        times(x, n) = sum(x .^ n)
        prep = prepare_gradient(times, BACKEND, x, Constant(2))
        @test DI.gradient(times, prep, BACKEND, x, Constant(3)) ≈ 3x .^ 2
        stored(x, c) = (c .= x .^ 2; sum(c .* x))
        @test DI.gradient(stored, BACKEND, x, Cache(zero(x))) ≈ 3x .^ 2
        squares!(y, x) = (y .= x .^ 2; nothing)
        y = zero(x)
        @test only(DI.value_and_pushforward(squares!, y, BACKEND, x, (v,))[2]) ≈ 2 .* x .* v
        @test y == x .^ 2
    end

    @testset "another closure than the one prepared for" begin
        power(n) = x -> sum(x .^ n)
        prep = prepare_gradient(power(2), BACKEND, x)
        @test DI.gradient(power(3), prep, BACKEND, x) ≈ 3x .^ 2
    end
end

if INSTALLED && Base.find_package("DifferentiationInterfaceTest") !== nothing
    using DifferentiationInterfaceTest
    const DIT = DifferentiationInterfaceTest
    # Not its closures that write to themselves: what a function changes besides its arguments is
    # not seen by a trace. All else once: each call without a preparation compiles.
    test_differentiation(BACKEND,
        DIT.default_scenarios(; include_batchified = false, include_constantified = true,
            include_cachified = true); logging = get(ENV, "CI", "") == "")
    test_differentiation(BACKEND, DIT.complex_scenarios(); rtol = 1e-6)
elseif INSTALLED
    @info "DifferentiationInterfaceTest is not installed: its scenarios are not run"
end
