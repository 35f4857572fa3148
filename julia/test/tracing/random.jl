# Random numbers in traced functions.

include("../support/tracing.jl")

const x = [0.3, -0.7, 1.2]
noisy(x) = x .* randn(3)
noisy_sum(x) = sum(noisy(x))
seeded_noise(x) = x .* randn(MersenneTwister(1), 3)
refused(f, arguments...) = message_of(JaxprAD.TracingFailed, () -> f(arguments...))

@testset "what would be the same at each call is refused: $k" for (k, f) in enumerate([
    noisy, x -> x .* rand(), x -> rand() < 0.5 ? x : 2x, x -> shuffle(x), x -> x .* rand.(),
    x -> x[rand(1:3)] + 1, x -> gradient(v -> sum(noisy(v)), x), x -> (r = rand(); x),
    x -> x .* randn.(), x -> (rand(2000); x)])
    for way in (trace, (f, x) -> jit(f)(x), (f, x) -> trace(x -> gradient(sum ∘ f, x), x))
        message = refused(way, f, x)
        @test occursin("the same at each call", message)
        @test occursin("MersenneTwister(1)", message)
    end
end

@testset "the line" begin
    line = @__LINE__() + 2
    function f(x)
        y = x .* rand()
        sum(y)
    end
    @test occursin("random.jl:$line", refused(trace, f, x))
end

@testset "generators of the user's" begin
    r = MersenneTwister(2)
    @test occursin("at each call", refused(trace, x -> x .* rand(r), x))
    @test occursin("at each call", refused(trace, (x, r) -> x .* rand(r, 3), x, r))
    @test agrees(seeded_noise, x)
    @test trace((x, r) -> 2x, x, r)(x, r) == 2x
    @test gradient((x, r) -> sum(x .* randn(r, 3)), x, MersenneTwister(1))[1] ==
          randn(MersenneTwister(1), 3)
end

@testset "a transform that runs what it traces draws at each call" begin
    Random.seed!(5)
    a, b = gradient(noisy_sum, x), gradient(noisy_sum, x)
    Random.seed!(5)
    @test a != b && a == randn(3) && b == randn(3)
    y, pullback = vjp(noisy, x)
    @test pullback(ones(3))[1] ≈ y ./ x
    @test hvp(x -> sum(x .^ 2) * rand(), x, x) isa Vector
    # but the body of a loop and a function of elements run once
    @test occursin("at each call",
        refused(gradient, x -> scan((s, v) -> (s + v * rand(), s), 0.0, x)[1], x))
    @test occursin("of a broadcast", refused(gradient, x -> sum(map(v -> v * rand(), x)), x))
    @test occursin("at each call", refused(gradient, x -> sum(vmap(v -> v * rand())(x)), x))
end
