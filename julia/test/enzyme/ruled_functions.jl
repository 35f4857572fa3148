# Functions with JaxprAD's derivatives in code that Enzyme differentiates. Enzyme.jl is not there on
# Debian's Julia, nor are extensions.

using JaxprAD: NotDifferentiable, ruled_jvp, ruled_vjp
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
    using Enzyme: Active, BatchDuplicated, Const, Duplicated, Forward, Reverse, autodiff

    "A loop that calls `f`, which gives a number of type T, on scaled numbers."
    function looped(f, x, a, ::Type{T}) where {T}
        total = zero(a)
        for k in 1:3
            total += k * f(x, a / k)::T
        end
        total^2
    end
    "A loop that overwrites an array with the results of `f`, arrays of type T."
    function relaxed(f, x, ::Type{T}) where {T}
        y = copy(x)
        for _ in 1:3
            y .= y .- 0.1 .* (f(y)::T)
        end
        sum(abs2, y)
    end
    energy(x, a) = sum(x .^ 4) * a + sum(sin.(a .* x))
    force(x) = 4 .* x .^ 3 .+ cos.(x)
    made(f, x...) =
        (trace(f, x...), jit(f), (p = joinpath(mktempdir(), "f.pybridge"); save(p, trace(f, x...));
            load(p)))

    @testset "reverse mode" begin
        expected = gradient((x, a) -> looped(energy, x, a, Real), x, 1.3)
        for f in made(energy, x, 1.3)
            x̄ = zero(x)
            ā = autodiff(Reverse, looped, Active, Const(f), Duplicated(x, x̄), Active(1.3),
                Const(Float64))[1][3]
            @test x̄ ≈ expected[1] && ā ≈ expected[2]
            x̄ = zero(x)
            autodiff(Reverse, looped, Active, Const(f), Duplicated(x, x̄), Const(1.3),
                Const(Float64))
            @test x̄ ≈ expected[1]
        end
        expected = gradient(x -> relaxed(force, x, AbstractVector), x)
        for f in made(force, x)
            x̄ = zero(x)
            autodiff(Reverse, relaxed, Active, Const(f), Duplicated(x, x̄),
                Const(Vector{Float64}))
            @test x̄ ≈ expected
        end
    end

    @testset "forward mode" begin
        pushed = jvp((x, a) -> looped(energy, x, a, Real), (x, 1.3), (v, 0.4))[2]
        for f in made(energy, x, 1.3)
            found = autodiff(Forward, looped, Duplicated, Const(f), Duplicated(x, v),
                Duplicated(1.3, 0.4), Const(Float64))
            @test found[1] ≈ pushed
        end
        pushed = jvp(x -> relaxed(force, x, AbstractVector), (x,), (v,))[2]
        for f in made(force, x)
            found = autodiff(Forward, relaxed, Duplicated, Const(f), Duplicated(x, v),
                Const(Vector{Float64}))
            @test found[1] ≈ pushed
        end
    end

    @testset "several arguments and results, also of tuples" begin
        p = (w = randn(rng, 4), scale = randn(rng, 4))
        model(p, x) = (tanh.(p.w .* x), sum(p.scale .* x .^ 2))
        function weighed(f, w, scale, x)
            y, z = f((w = w, scale = scale), x)::Tuple{Vector{Float64},Float64}
            z * sum(abs2, y)
        end
        plain(w, scale, x) = (y = model((w = w, scale = scale), x); y[2] * sum(abs2, y[1]))
        expected = gradient(plain, p.w, p.scale, x)
        for f in made(model, p, x)
            shadows = map(zero, (p.w, p.scale, x))
            autodiff(Reverse, weighed, Active, Const(f),
                map(Duplicated, (p.w, p.scale, x), shadows)...)
            @test all(shadows .≈ expected)
        end
    end

    @testset "batches are refused" begin
        f = trace(force, x)
        @test_throws NotDifferentiable autodiff(Forward, relaxed, BatchDuplicated, Const(f),
            BatchDuplicated(x, (v, 2v)), Const(Vector{Float64}))
    end
end
