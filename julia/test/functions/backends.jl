# Calls as functions of one vector, which backends of ADTypes differentiate; and which there are.

include("../support/calls.jl")

using JaxprAD.Functions: Arrays, ByBackend, Description, EngineUnavailable, Pullback,
    Pushforward, ResultMismatch, Runner, available_backends, backend, distribute!, execute!,
    fresh, joined, make_runner, package_of, pick, run!, vector_function
const Functions = JaxprAD.Functions

"A backend whose derivatives are central differences, by the two methods that an extension has."
struct Differences end
function Functions.differentiate!(d::ByBackend{<:Pushforward{C,A},Differences}, results,
    operands::Vararg{AbstractArray}) where {C,A}
    n = length(d.derivative.of.inputs)
    f, h = vector_function(d.derivative), cbrt(eps())
    x, ẋ = joined(pick(operands, Val(A))), joined(operands[n+1:end])
    distribute!(results, (f(x .+ h .* ẋ, operands[1:n]) .- f(x .- h .* ẋ, operands[1:n])) ./ 2h)
end
function Functions.differentiate!(d::ByBackend{<:Pullback{C,A},Differences}, results,
    operands::Vararg{AbstractArray}) where {C,A}
    n = length(d.derivative.of.inputs)
    f, h = vector_function(d.derivative), cbrt(eps())
    x, ȳ = joined(pick(operands, Val(A))), joined(operands[n+1:end])
    moved(k, by) = f([x[i] + by * (i == k) for i in eachindex(x)], operands[1:n])
    distribute!(results,
        [sum(ȳ .* (moved(k, h) .- moved(k, -h))) / 2h for k in eachindex(x)])
end

derivative(of, Kind, active) = ByBackend(Kind(of, active), Differences())
function results_of(what, operands...)
    y = map(fresh, what.outputs)
    execute!(what, y, operands)
    y
end

@testset "all active operands at once, in the order of memory" begin
    rng = MersenneTwister(3)
    for (f, inplace) in ((mixture, false), (mixture!, true)), layout in (Views(), Arrays())
        c = call_of(f, MIXTURE...; layout = layout, inplace = inplace)
        A, s, n = randn(rng, 3, 2), fill(0.7), fill(Int32(4))
        Ȧ, ṡ = randn(rng, 3, 2), fill(randn(rng))
        y = vector_function(Pushforward(c, (1, 2)))([vec(A); s[]], (A, s, n))
        @test y ≈ [0.7 .* vec(A) .^ 2; 0.7 * sum(sin, A)]
        Ḃ, ṫ = results_of(derivative(c, Pushforward, (1, 2)), A, s, n, Ȧ, ṡ)
        @test Ḃ ≈ ṡ[] .* A .^ 2 .+ 1.4 .* A .* Ȧ atol = 1e-8
        @test ṫ[] ≈ ṡ[] * sum(sin, A) + 0.7 * sum(cos.(A) .* Ȧ) atol = 1e-8
        B̄, t̄ = randn(rng, 3, 2), fill(randn(rng))
        s̄, = results_of(derivative(c, Pullback, (2,)), A, s, n, B̄, t̄)
        @test s̄[] ≈ sum(B̄ .* A .^ 2) + t̄[] * sum(sin, A) atol = 1e-7
        Ā, s̄ = results_of(derivative(c, Pullback, (1, 2)), A, s, n, B̄, t̄)
        @test Ā ≈ 1.4 .* A .* B̄ .+ 0.7 .* t̄[] .* cos.(A) atol = 1e-7
    end
end

@testset "a batch, and operands that stay as they are" begin
    c = call_of(x -> x .^ 2, "( f64[2] )", "f64[2]")
    r = Runner(derivative(c, Pushforward, (1,)), 3, [true, true])
    x, ẋ, ẏ = [1.0 3 5; 2 4 6], ones(2, 3), zeros(2, 3)
    GC.@preserve x ẋ ẏ run!(r, map(a -> UInt(pointer(a)), (x, ẋ)), (UInt(pointer(ẏ)),))
    @test ẏ ≈ 2x atol = 1e-8
    @test x == [1.0 3 5; 2 4 6] && ẋ == ones(2, 3)
end

@testset "results that were not promised" begin
    for (f, result) in ((x -> [x; x], "f64[2]"), (x -> (x, x), "f64[2]"), (x -> x, "f64[]"),
        (x -> x, "( f64[2] f64[2] )"), (x -> (a = x,), "{ b f64[2] }"), (x -> nothing, "f64[2]"))
        c = call_of(f, "( f64[2] )", result)
        @test_throws ResultMismatch vector_function(Pushforward(c, (1,)))(ones(2), (ones(2),))
    end
end

@testset "what is missing is named" begin
    @test package_of("AutoMooncakeForward") == "Mooncake" && package_of("AutoZygote") == "Zygote"
    @test all(code -> occursin(r"^Auto\w+\(\)$", code), available_backends())
    code = "AutoNoSuchPackage()"
    failure = try
        backend(code)
    catch e
        e
    end
    @test failure isa EngineUnavailable && occursin(code, sprint(showerror, failure))
    text = """
        name f
        source code
        digest backends
        inplace 0
        inputs auto
        arguments ( f64[] )
        result f64[]
        narrows 0
        steps forward 1
        batch -
        batched m00
        backend $code

        f(x) = x"""
    d = Description(text)
    Functions.home(d)
    @test_throws EngineUnavailable Base.invokelatest(make_runner, d)
end
