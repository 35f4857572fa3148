# Functions with JaxprAD's derivatives in code that Enzyme differentiates. Enzyme.jl is not there on
# Debian's Julia, nor are extensions.

using JaxprAD: ruled_jvp, ruled_vjp
include("../support/tracing.jl")

rng = seeded("ruled")
x, v = rand(rng, 4) .+ 0.5, randn(rng, 4)
cubes(x, a) = (sum(x .^ 3) * a, a .* tanh.(x))

@testset "rules take compiled derivatives of what is compiled" begin
    ȳ, ẋ = (0.7, randn(rng, 4)), (v, 0.3)
    expected, pushed = vjp(cubes, x, 2.0)[2](ȳ), jvp(cubes, (x, 2.0), ẋ)
    j = jit(cubes)
    for f in (j, trace(cubes, x, 2.0), j)
        y, pull = ruled_vjp(f, (x, 2.0))
        @test all(y .≈ cubes(x, 2.0)) && all(pull(ȳ) .≈ expected)
        @test all(map((a, b) -> all(a .≈ b), ruled_jvp(f, (x, 2.0), ẋ), pushed))
    end
    @test length(j.derivatives) == 2
end

if VERSION >= v"1.9" && Base.find_package("Enzyme") !== nothing
    using Enzyme: Active, BatchDuplicated, Const, Duplicated, Enzyme, Forward, Reverse, autodiff

    "A loop that calls `f` on scaled arrays."
    function looped(f, x, a)
        total = 0.0
        for k in 1:3
            total += k * f(x, a / k)::Float64
        end
        total^2
    end
    "A loop that overwrites an array with the results of `f`."
    function relaxed(f, x)
        y = copy(x)
        for _ in 1:3
            y .= y .- 0.1 .* (f(y)::Vector{Float64})
        end
        sum(abs2, y)
    end
    energy(x, a) = sum(x .^ 4) * a + sum(sin.(a .* x))
    force(x) = 4 .* x .^ 3 .+ cos.(x)
    made(f, x...) =
        (trace(f, x...), jit(f), (p = joinpath(mktempdir(), "f.pybridge"); save(p, trace(f, x...));
            load(p)))

    @testset "reverse mode" begin
        expected = gradient((x, a) -> looped(energy, x, a), x, 1.3)
        for f in made(energy, x, 1.3)
            x̄ = zero(x)
            ā = autodiff(Reverse, looped, Active, Const(f), Duplicated(x, x̄), Active(1.3))[1][3]
            @test x̄ ≈ expected[1] && ā ≈ expected[2]
            x̄ = zero(x)
            autodiff(Reverse, looped, Active, Const(f), Duplicated(x, x̄), Const(1.3))
            @test x̄ ≈ expected[1]
        end
        expected = gradient(x -> relaxed(force, x), x)
        for f in made(force, x)
            x̄ = zero(x)
            autodiff(Reverse, relaxed, Active, Const(f), Duplicated(x, x̄))
            @test x̄ ≈ expected
        end
    end

    @testset "forward mode, also of a batch" begin
        pushed = jvp((x, a) -> looped(energy, x, a), (x, 1.3), (v, 0.4))[2]
        for f in made(energy, x, 1.3)
            found = autodiff(Forward, looped, Duplicated, Const(f), Duplicated(x, v),
                Duplicated(1.3, 0.4))
            @test found[1] ≈ pushed
        end
        expected = jvp(x -> relaxed(force, x), (x,), (v,))[2]
        for f in made(force, x)
            found = autodiff(Forward, relaxed, BatchDuplicated, Const(f),
                BatchDuplicated(x, (v, 2v)))[1]
            @test all(values(found) .≈ (expected, 2expected))
        end
    end
end
