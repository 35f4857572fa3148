# Rules of ChainRulesCore, taken and given. The package is not there on Debian's Julia, nor are
# extensions.

using JaxprAD: PackageNotLoaded, with_chain_rule

const INSTALLED = VERSION >= v"1.9" && Base.find_package("ChainRulesCore") !== nothing

INSTALLED || @testset "what to load is said" begin
    @test_throws PackageNotLoaded with_chain_rule(sin)
end

if INSTALLED
    using ChainRulesCore: ChainRulesCore, NoTangent, Tangent, ZeroTangent, frule, rrule, unthunk
    include("../support/tracing.jl")

    # Functions with wrong rules show that the rules are what is taken.
    by_frule(x, a) = a .* x .^ 2
    ChainRulesCore.frule((_, ẋ, ȧ), ::typeof(by_frule), x, a) =
        (by_frule(x, a), 10 .* a .* x .* ẋ .+ ȧ .* x .^ 2)
    by_rrule(x, n) = sum(x .^ n)
    ChainRulesCore.rrule(::typeof(by_rrule), x, n) =
        (by_rrule(x, n), ȳ -> (NoTangent(), 10 .* n .* ȳ .* x, NoTangent()))
    structured(p, x) = sum(p.w .* x) + p.b
    function ChainRulesCore.rrule(::typeof(structured), p, x)
        pull(ȳ) = (NoTangent(), Tangent{typeof(p)}(; w = 3ȳ .* x),
            ChainRulesCore.Thunk(() -> ȳ .* p.w))
        structured(p, x), pull
    end

    rng = seeded("chain rules")
    x, v = rand(rng, 4) .+ 0.5, randn(rng, 4)

    @testset "an frule is a custom_jvp" begin
        f = with_chain_rule(by_frule)
        @test gradient((x, a) -> sum(f(x, a)), x, 2.0)[1] ≈ 20x
        @test gradient((x, a) -> sum(f(x, a)), x, 2.0)[2] ≈ sum(x .^ 2)
        @test jvp(x -> f(x, 2.0), (x,), (v,))[2] ≈ 20 .* x .* v
        @test f(x, 2.0) == by_frule(x, 2.0)
    end

    @testset "an rrule is a custom_vjp" begin
        f = with_chain_rule(by_rrule)
        @test gradient(x -> f(x, 3), x) ≈ 30x
        @test jit(x -> gradient(x -> f(x, 3), x))(x) ≈ 30x
        g = with_chain_rule(structured)
        p = (w = v, b = 0.4)
        p̄, x̄ = gradient(g, p, x)
        @test p̄.w ≈ 3x && p̄.b == 0 && x̄ ≈ v
    end

    @testset "where there is no rule" begin
        @test_throws JaxprAD.NotDifferentiable gradient(x -> with_chain_rule(x -> sum(x))(x), x)
    end

    @testset "traced, loaded and compiled functions have rules" begin
        plain(p, x) = (sum(tanh.(p.w .* x)) + p.b, x .^ 2)
        p = (w = v, b = 0.4)
        ȳ = (0.7, randn(rng, 4))
        expected = vjp(plain, p, x)[2](ȳ)
        path = joinpath(mktempdir(), "f.pybridge")
        save(path, trace(plain, p, x))
        for f in (trace(plain, p, x), jit(plain), load(path))
            y, pull = rrule(f, p, x)
            @test y[1] ≈ plain(p, x)[1] && y[2] ≈ plain(p, x)[2]
            _, p̄, x̄ = pull(Tangent{typeof(y)}(ȳ...))
            @test unthunk(p̄.w) ≈ expected[1].w && p̄.b ≈ expected[1].b && x̄ ≈ expected[2]
            _, p̄, x̄ = pull(Tangent{typeof(y)}(ȳ[1], ZeroTangent()))
            @test x̄ ≈ vjp(plain, p, x)[2]((ȳ[1], zeros(4)))[2]
            ṗ = (w = randn(rng, 4), b = 0.3)
            y, ẏ = frule((NoTangent(), Tangent{typeof(p)}(; ṗ...), v), f, p, x)
            given = jvp(plain, (p, x), (ṗ, v))[2]
            @test ẏ[1] ≈ given[1] && ẏ[2] ≈ given[2]
        end
        j = jit(x -> sum(x .^ 3))
        @test rrule(j, x)[2](1.0)[2] ≈ 3x .^ 2 && rrule(j, 2x)[2](1.0)[2] ≈ 12x .^ 2
    end
end
