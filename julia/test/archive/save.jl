# What Julia has traced, in files and back.

include("../support/tracing.jl")
using JaxprAD: ArchiveError

function saved(t)
    mktempdir() do folder
        path = joinpath(folder, "f.pybridge")
        save(path, t)
        load(path)
    end
end
refused(t) = message_of(ArchiveError, () -> saved(t))

struct Model{T,W}
    rate::T
    weights::W
end

@testset "arguments and results of any structure" begin
    A = randn(seeded("A"), 9, 9)        # larger than what stands in the text
    f(m, x) = (x = A * x .* m.rate, parts = (sum(m.weights), [x, 2x]), n = 3, none = nothing)
    m, x = Model(2.0, [1.0, 2.0]), randn(seeded("x"), 9)
    g = saved(trace(f, m, x))
    y, expected = g(m, x), f(m, x)
    @test keys(y) == (:n, :none, :parts, :x)
    @test y.x ≈ expected.x && y.parts[1] == 3 && y.parts[2] == [x, 2x]
    @test y.n === 3 && y.none === nothing
    @test g((weights = [1.0, 2.0], rate = 2.0), x).x ≈ y.x
    @test gradient(m -> sum(g(m, x).x), m) isa Model
    # the array is a constant: changes come too late
    traced = trace(x -> A * x, x)
    A[1] += 1
    @test saved(traced)(x) ≈ expected.x ./ 2
end

@testset "in another order than that of keys" begin
    g = saved(trace(p -> (z = p.z, a = 2p.b, m = p.a), (z = 1.0, b = [2.0], a = 3.0)))
    @test g((a = 3.0, b = [2.0], z = 1.0)) == (a = [4.0], m = 3.0, z = 1.0)
    @test startswith(string(g), "pybridge 1\nprogram f(%0: f64[], %1: f64[1], %2: f64[]) {")
    numbered = Dict(1 => 1.0, 3 => 3.0, 2 => 2.0)
    h = saved(trace(d -> Dict(2 => d[1], 10 => d[3], -1 => d[2]), numbered))
    @test h(Dict(3 => 3.0, 2 => 2.0, 1 => 1.0)) == Dict(2 => 1.0, 10 => 3.0, -1 => 2.0)
end

@testset "names of arguments" begin
    names(f, x...) = map(p -> p.name, saved(trace(f, x...)).signature.parameters)
    @test names((rate, x) -> rate * x, 1.0, [2.0]) == ["rate", "x"]
    @test names((_, x) -> x, 1.0, 2.0) == names((x...) -> x[1], 1.0, 2.0) == ["x1", "x2"]
    @test names(+, 1.0, 2.0) == ["x1", "x2"]
    g = saved(trace((rate, x) -> rate * x, 1.0, [2.0]))
    @test g(2.0; x = [3.0]) == [6.0]
    @test occursin("takes rate, x; it got 1 by position",
        message_of(ArgumentError, () -> g(2.0)))
end

@testset "known values" begin
    g = saved(trace((x, n, how) -> how === :sum ? x^n : x, 2.0, 3, :sum))
    @test g(2.0, 3, :sum) == g(2.0, 3, "sum") == 8
    @test occursin("argument n is 4, and was 3", message_of(ArgumentError, () -> g(2.0, 4, :sum)))
    @test saved(trace(x -> (x, true), 2.0))(2.0) === (2.0, true)
    @test occursin("close over it", refused(trace((f, x) -> f(x), sin, 1.0)))
    @test occursin("words for keys", refused(trace(d -> d[1.5], Dict(1.5 => 1.0))))
end

@testset "loops, branches and derivatives" begin
    function f(x, a)
        y = while_loop(s -> s[1] < 10, s -> (2s[1], s[2] .* a), (a, x))[2]
        last, path = scan((s, v) -> (sin(s) * v, s), a, y)
        JaxprAD.cond(last > 0, z -> sum(z), z -> -sum(z .^ 2), path)
    end
    x, a = randn(seeded("loops"), 5), 1.5
    g = saved(trace(f, x, a))
    @test g(x, a) ≈ f(x, a)
    @test jvp(g, (x, a), (x, 1.0))[2] ≈ jvp(f, (x, a), (x, 1.0))[2]
    slope = jit((x, a) -> gradient(g, x, a))
    @test all(slope(x, a) .≈ jit((x, a) -> gradient(f, x, a))(x, a))
    h = saved(trace((x, a) -> hvp(x -> sum(x .^ 3) * a, x, x), x, a))
    @test h(x, a) ≈ 6a .* x .^ 2
    @test gradient(a -> sum(h(x, a)), a) ≈ 6sum(x .^ 2)
end

@testset "structures that nest too deep" begin
    nested(depth) = foldl((x, _) -> (x,), 1:depth; init = 2.0)
    @test saved(trace(x -> x, nested(99)))(nested(99)) == nested(99)
    @test occursin("100 deep", refused(trace(x -> x, nested(100))))
end

@testset "a function within another" begin
    inner = nothing
    trace(x -> (inner = trace(y -> x * y, 1.0); x), 2.0)
    @test occursin("within another", refused(inner))
end

@testset "as text, and what a loaded function is to others" begin
    g = saved(trace(x -> x, 1.0))
    @test occursin("f64[]", string(g)) && g isa Function
    # known, not an argument with leaves
    @test trace((f, x) -> f(x), g, 2.0)(g, 3.0) == 3
    # a broadcast calls its function once for all elements
    @test g.([1.0, 2.0]) == [1, 2]
    @test gradient(x -> sum(vmap(g)([x, 2x])), 1.0) == 3
    @test occursin("`vmap(f)(x)`", message_of(JaxprAD.TracingFailed,
        () -> gradient(x -> sum(g.(x)), [1.0, 2.0])))
end
