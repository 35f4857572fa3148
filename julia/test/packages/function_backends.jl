# Derivatives of Julia functions that Python calls, by backends of ADTypes: the one that
# DifferentiationInterface has of its own, and JaxprAD's. Skipped where that package is missing.

include("../support/calls.jl")

using JaxprAD.Functions: ByBackend, Pullback, Pushforward, available_backends, backend, execute!,
    fresh

if VERSION >= v"1.9" && Base.find_package("DifferentiationInterface") !== nothing
    import DifferentiationInterface

    function derivative(code, of, Kind, active, operands...)
        what = ByBackend(Kind(of, active), backend(code))
        y = map(fresh, what.outputs)
        # twice: what the first run has prepared, the second uses
        Base.invokelatest(execute!, what, y, operands)
        Base.invokelatest(execute!, what, y, operands)
        y
    end

    @testset "$code, in place: $inplace" for (code, tolerance) in (
            ("AutoSimpleFiniteDiff(1e-6)", 1e-4), ("AutoJaxprAD()", 1e-12)),
        (f, inplace) in ((mixture, false), (mixture!, true))

        rng = seeded("function backends")
        c = call_of(f, MIXTURE...; inplace = inplace)
        A, s, n = randn(rng, 3, 2), fill(0.7), fill(Int32(4))
        Ȧ, ṡ = randn(rng, 3, 2), fill(randn(rng))
        Ḃ, ṫ = derivative(code, c, Pushforward, (1, 2), A, s, n, Ȧ, ṡ)
        @test Ḃ ≈ ṡ[] .* A .^ 2 .+ 1.4 .* A .* Ȧ atol = tolerance
        @test ṫ[] ≈ ṡ[] * sum(sin, A) + 0.7 * sum(cos.(A) .* Ȧ) atol = tolerance
        B̄, t̄ = randn(rng, 3, 2), fill(randn(rng))
        Ā, s̄ = derivative(code, c, Pullback, (1, 2), A, s, n, B̄, t̄)
        @test Ā ≈ 1.4 .* A .* B̄ .+ 0.7 .* t̄[] .* cos.(A) atol = tolerance
        @test s̄[] ≈ sum(B̄ .* A .^ 2) + t̄[] * sum(sin, A) atol = tolerance
        @test derivative(code, c, Pullback, (2,), A, s, n, B̄, t̄)[1] ≈ s̄ atol = tolerance
    end

    @testset "complex numbers are transposed as JAX does" begin
        c = call_of(z -> z .^ 2, "( c128[2] )", "c128[2]")
        z, ẑ = [0.3 + 1im, -2.0 + 0.5im], [1.0 - 2im, 0.5im]
        @test derivative("AutoJaxprAD()", c, Pushforward, (1,), z, ẑ)[1] ≈ 2z .* ẑ
        @test derivative("AutoJaxprAD()", c, Pullback, (1,), z, ẑ)[1] ≈ 2z .* ẑ
    end

    @testset "which there are" begin
        for code in available_backends()
            @test isdefined(DifferentiationInterface.ADTypes, Symbol(code[1:end-2]))
        end
    end
else
    @info "packages/function_backends: needs DifferentiationInterface"
end
