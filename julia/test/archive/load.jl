# Programs that JAX has traced, in Julia: the files of tests/archives, with JAX's numbers.

include("../support/tracing.jl")
using JaxprAD: ArchiveError

archived(name, version = 1) =
    joinpath(@__DIR__, "..", "..", "..", "tests", "archives", "v$version", "$name.pybridge")

close_to(a, b; rtol = 1e-12) = isapprox(a, b; rtol = rtol, atol = 1e-13)
close_to(a::NamedTuple, b::NamedTuple) =
    keys(a) == keys(b) && all(close_to(x, y) for (x, y) in zip(a, b))
close_to(a::Vector{Any}, b::Vector{Any}) =
    length(a) == length(b) && all(close_to(x, y) for (x, y) in zip(a, b))

@testset "values and derivatives of any order are JAX's" begin
    f, r = load(archived("jax-loss")), load(archived("jax-loss-reference"))()
    @test size(r.x) == (3, 4) && f isa Function
    for g in (f, jit(f))
        @test close_to(g(r.x), r.value)
        @test close_to(gradient(g, r.x), r.gradient)
        @test close_to(hvp(g, r.x, r.v), r.hvp; rtol = 1e-11)
    end
    @test close_to(jit(x -> gradient(f, x))(r.x), r.gradient)
    @test close_to(jit((x, v) -> hvp(f, x, v))(r.x, r.v), r.hvp; rtol = 1e-11)
    third(x) = jvp(z -> hvp(f, z, r.v), (x,), (r.w,))[2]
    @test close_to(third(r.x), r.third; rtol = 1e-10)
    @test close_to(jit(third)(r.x), r.third; rtol = 1e-10)
    @test close_to(vjp(f, r.x)[2](2.0)[1], 2r.gradient)
    @test close_to(sum(linearize(f, r.x)[2](r.v)), sum(r.gradient .* r.v))
    @test agrees(x -> f(x)^2, r.x; name = "loss")
    @test vmap(f)(cat(r.x, 2r.x; dims = 3)) ≈ [f(r.x), f(2r.x)]
    # a derivative that was made in Python
    @test close_to(load(archived("jax-vjp"))(r.x, 1.0)[1], r.gradient)
end

@testset "derivatives from Python have their names" begin
    r, hvp = load(archived("jax-loss-reference"))(), load(archived("jax-hvp", 2))
    for found in (hvp(r.x, 1, r.v), hvp(r.x; x_dot = r.v, ct = 1))
        @test close_to(found[1][1], r.gradient) && close_to(found[2][1], r.hvp; rtol = 1e-11)
    end
    @test occursin("{\n  # %0 x, %1 ct, %2 x_dot\n", string(hvp))
    @test endswith(string(hvp), "  # x_bar, x_bar_dot\n}\n")
    m, f = load(archived("jax-model-reference"))(), load(archived("jax-model-jvp", 2))
    y, ẏ = f(m.p, m.x, m.v; scale = m.scale, scale_dot = 0)
    @test close_to(y, m.value) && close_to(ẏ, m.tangent)
    @test occursin("takes p, x, scale=, x_dot, scale_dot=; it got 3 by position",
        message_of(ArgumentError, () -> f(m.p, m.x, m.v)))
    w, x = load(archived("jax-windowed-vjp", 2)), collect(range(-1, 1; length = 4))
    window = (low = -0.5, high = 0.5)
    value, (w̄, none) = w(window, x, (low = 1.0, high = (window, x)))
    @test value.low ≈ sum(clamp.(x, -0.5, 0.5)) atol = 1e-15
    @test w̄ == (low = 0.5, high = nothing) && none === nothing
    @test occursin("  # %0 w.low, %1 w.high, %2 x, ", string(w))
end

@testset "arguments and results are grouped as in Python" begin
    f, r = load(archived("jax-model")), load(archived("jax-model-reference"))()
    as_dictionary = Dict("bias" => r.p.bias, "gain" => r.p.gain)
    reordered = (gain = Tuple(r.p.gain), bias = r.p.bias)
    for p in (r.p, as_dictionary, reordered, Dict(:bias => r.p.bias, :gain => r.p.gain))
        @test close_to(f(p, r.x; scale = r.scale), r.value)
    end
    y, ẏ = jvp(x -> f(r.p, x; scale = r.scale), (r.x,), (r.v,))
    @test close_to(y, r.value) && close_to(ẏ, r.tangent)
    @test close_to(jit((p, x) -> f(p, x; scale = 0.75))(r.p, r.x), r.value)
    # numbers become those of the declared type
    @test f(r.p, r.x; scale = 1) == f(r.p, r.x; scale = 1.0f0) == f(r.p, r.x; scale = 1.0)
    # the derivative by parameters has their structure; by `gain`, what it is multiplied by
    total(p) = sum(f(p, r.x; scale = 1).y)
    p̄ = gradient(total, reordered)
    @test keys(p̄) == (:gain, :bias) && p̄.gain[1] ≈ total(r.p) / r.p.gain[1] && p̄.gain[2] == 0
    d̄ = gradient(total, as_dictionary)
    @test d̄["bias"] ≈ p̄.bias && d̄["gain"][1] ≈ p̄.gain[1]
end

@testset "arguments that do not fit" begin
    f, r = load(archived("jax-model")), load(archived("jax-model-reference"))()
    message(arguments...; keywords...) =
        message_of(ArgumentError, () -> f(arguments...; keywords...))
    @test occursin("takes x0, x1, scale=; it got 1 by position", message(r.p))
    @test occursin("it got 2 by position and x1, scale by name",
        message(r.p, r.x; x1 = r.x, scale = 1))
    @test occursin("it got 3 by position", message(r.p, r.x, 1))
    @test occursin("it got 2 by position and rate by name", message(r.p, r.x; rate = 1))
    @test f(x1 = r.x, x0 = r.p, scale = 1) == f(r.p, r.x; scale = 1)
    @test occursin("argument x0 is a", message(1, r.x; scale = 1)) &&
          occursin("the keys bias, gain", message(1, r.x; scale = 1))
    @test occursin("argument x0[\"gain\"] is a",
        message((bias = r.p.bias, gain = [1.0]), r.x; scale = 1))
    @test occursin("argument x1 is an array of size (2, 3) and element type Float64 where an " *
                   "array of size (3, 2)", message(r.p, permutedims(r.x); scale = 1))
    @test occursin("element type Float32 where", message(r.p, Float32.(r.x); scale = 1))
    @test occursin("argument scale is the number 1.0 + 2.0im where a Float64",
        message(r.p, r.x; scale = 1.0 + 2im))
    @test occursin("argument x1 is the number", message(r.p, 2.0; scale = 1))
    w = load(archived("jax-windowed"))
    @test occursin("a pybridge.tests.Window with the fields low, high",
        message_of(ArgumentError, () -> w((low = 1.0,), zeros(4))))
end

struct Window{T}
    low::T
    high::T
end

@testset "objects are structs or named tuples with their fields" begin
    f, x = load(archived("jax-windowed")), collect(range(-1, 1; length = 4))
    for w in (Window(-0.5, 0.5), (high = 0.5, low = -0.5), (-0.5, 0.5))
        y = f(w, x)
        @test y.low ≈ sum(clamp.(x, -0.5, 0.5)) atol = 1e-15
        @test y.high[1] == (low = -0.5, high = 0.5) && y.high[2] == 2x
    end
    w̄ = gradient(w -> f(w, x).low, Window(-0.5, 0.5))
    @test w̄ isa Window && w̄.low == 1 && w̄.high == 1
end

@testset "every bit of every type" begin
    patterned(T, k) = T === Bool ? UInt8.(k .% 3 .== 0) : UInt8.(k .* 37 .% 256)
    for name in ("jax-dtypes", "julia-dtypes")
        found = Dict(eltype(x) => x for x in values(load(archived(name))()))
        @test Set(keys(found)) == Set(values(JaxprAD.DTYPE_OF_NAME))
        for (T, x) in found
            @test size(x) == (11, 7)
            @test collect(reinterpret(UInt8, vec(x))) == patterned(T, 0:77*sizeof(T)-1)
        end
    end
end

@testset "what Julia wrote" begin
    table = reshape(sin.(1:120), 12, 10)
    f, y = load(archived("julia-energy")), collect(range(-1, 1; length = 10))
    o = (rate = 1.5, damping = 0.25)
    function steps(o, x)
        for _ in 1:3
            x = x .+ 0.1 .* (o.rate .* reverse(x) .- o.damping .* x .^ 3)
        end
        table * x
    end
    result = f(o, y, 3)
    z, s, path = steps(o, y), 1.0, Float64[]
    for v in z
        push!(path, s)
        s += sin(v) * s / 2
    end
    @test result.energy ≈ sum(abs2, z) + s && result.path ≈ path
    @test result.note === nothing && result.steps == 3
    @test occursin("was 3 when", message_of(ArgumentError, () -> f(o, y, 4)))
    @test agrees((r, x) -> f((rate = r, damping = 0.1), x, 3).energy, 1.2, y; name = "energy")
    tree, matrix = load(archived("julia-tree")), [4.0 5; 6 7]
    @test tree((a = (3.0, matrix), b = [1.0, 2.0])) == ([1.0, 2.0], [3.0, (c = matrix,)])
end

@testset "results may be written to" begin
    f = load(archived("julia-dtypes"))
    first(f()) .= false
    @test any(first(f()))
end

@testset "as text" begin
    f = load(archived("jax-loss"))
    @test startswith(string(f), "pybridge 1\nprogram loss(%0: f64[4,3]) {\n  # %0 x0\n")
    @test occursin(r"\n  return %\d+  # result\n}\n$", string(f))
    @test sprint(show, MIME("text/plain"), f) == string(f)
end
