# Broadcasts, fused dots and map.

include("../support/tracing.jl")

const x = [0.3, -0.7, 1.2]
const A = [0.1 0.5 -0.2; 0.9 -1.1 0.4]
scaled(u, v) = u > 0 ? 1 : v        # of numbers that are known
leaky(u) = select(u > 0, u, 0.1u)

@testset "broadcast: $k" for (k, f) in enumerate([
    x -> sin.(x) .* 2 .+ x .^ 2, x -> x .+ x', x -> A .* x', x -> A' .* x, x -> x .* 3.0,
    x -> leaky.(x), x -> @.(exp(-x^2) / (1 + x)), x -> x ./ sum(x), x -> 2x - x / 3, x -> -x + x,
    x -> ifelse.(x .> 0, x, 0.0), x -> map((a, b) -> a * b, x, x), x -> map(sin, x),
    x -> x .* (1, 2, 3), x -> x .* (2,), x -> evalpoly.(x, ((1, 2, 3),)),
    x -> UpperTriangular(x * x') .* 2, x -> max.(x, 0),
    x -> clamp.(x, -0.5, 0.5), x -> broadcast(*, x, x[1]),
    x -> x .* Float32[1, 2, 3], x -> (1:3) .* x, x -> x[1] .* [1.0, 2.0], x -> [1.0, 2.0] * x[2],
    x -> sin.(x[1]), x -> Ref(2.0) .* x, x -> reshape(x, 1, 3) .+ x .+ reshape(x, 1, 1, 3),
    x -> x .* true, x -> abs2.(x) .|> sqrt, x -> [v^2 for v in x], x -> sum(v^2 for v in x)])
    @test agrees(f, x)
end

@testset "a function of elements is called once, whatever the size" begin
    calls = Ref(0)
    f(u) = (calls[] += 1; u^2)
    trace(x -> f.(x), zeros(1000))
    @test calls[] == 1
end

@testset "in place" begin
    function steps(x)
        y = similar(x)
        y .= 2 .* x
        y .+= x .^ 2
        y[2:3] .*= 3
        @views y[1:2] .-= x[2:3]
        fill!(view(y, 3:3), x[1])
        z = copy(y)
        z .= 0.5
        y .+ z .* x
    end
    @test agrees(steps, x)
    before = copy(x)
    trace(x -> (x .= 0; x), x)(x)
    @test x == before
end

@testset "what cannot be" begin
    # a function of its own: `@test` takes the lines out of its expression
    wrong(x) = x .+ ones(4)
    message = message_of(JaxprAD.TracingFailed, () -> trace(wrong, x))
    @test occursin("DimensionMismatch", message) && occursin("broadcasting.jl:", message)
    @test occursin("numbers only",
        message_of(JaxprAD.TracingFailed, () -> trace(x -> tuple.(x, x), x)))
    tuples(x) = evalpoly.(x, ((1, 2), (3, 4), (5, 6)))
    @test occursin("Ref(value)", message_of(JaxprAD.TracingFailed, () -> trace(tuples, x)))
    plain = zeros(3)
    @test occursin("similar(x)",
        message_of(JaxprAD.TracedConversion, () -> trace(x -> (plain .= x), x)))
end
