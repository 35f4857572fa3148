# Functions of JAX in Julia. It takes PythonCall with a Python that has pybridge, which Debian's
# Julia cannot have.

using JaxprAD: JaxFunction, PackageNotLoaded, TracingFailed

const INSTALLED = VERSION >= v"1.9" && Base.find_package("PythonCall") !== nothing

INSTALLED || @testset "what to load is said" begin
    @test_throws PackageNotLoaded JaxFunction(sin)
end

if INSTALLED
    using PythonCall: PyException, pyexec
    include("../support/tracing.jl")

    const CODE = """
        import jax
        import jax.numpy as jnp

        def product(a, b):
            return jnp.sin(a @ b), jnp.sum(a, axis=0)

        def loss(p, x, n):
            h = jnp.tanh(p["w"] @ x + p["b"])
            return {"loss": jnp.mean(h ** n), "hidden": h, "count": jnp.sum(h > 0), "none": None}

        def identity(x):
            return x, x

        def fails(x):
            raise ValueError("no such thing")

        def simulate(x, steps):
            return jax.lax.fori_loop(0, steps, lambda k, x: x + 0.1 * jnp.sin(x), x)
        """
    const PYTHON = pyexec(
        @NamedTuple{product, loss, identity, fails, simulate}, CODE, Main)
    const product, loss = JaxFunction(PYTHON.product), JaxFunction(PYTHON.loss)

    rng = seeded("functions of JAX")
    a, b = randn(rng, 4, 3), randn(rng, 5, 4)      # in Python of shapes (3, 4) and (4, 5)
    # The order of indices is the other way round in Python.
    plain_product(a, b) = (sin.(b * a), vec(sum(a; dims = 2)))
    p, x = (w = randn(rng, 3, 2), b = randn(rng, 2)), randn(rng, 3)
    plain_loss(p, x, n) = (h = tanh.(vec(x' * p.w) .+ p.b);
    (count = count(h .> 0), hidden = h, loss = sum(h .^ n) / 2, none = nothing))

    @testset "values" begin
        for (y, z) in zip(product(a, b), plain_product(a, b))
            @test y ≈ z && y isa Array
        end
        y, z = loss(p, x, 2), plain_loss(p, x, 2)
        @test y.loss ≈ z.loss && y.hidden ≈ z.hidden && y.count == z.count && y.none === nothing
        @test loss(p, x, 3).loss ≈ plain_loss(p, x, 3).loss
        @test loss(Dict("w" => p.w, "b" => p.b), x, 2).loss ≈ z.loss
        narrow = product(Float32.(a), Float32.(b))[1]
        @test eltype(narrow) === Float32 && narrow ≈ plain_product(a, b)[1]
    end

    @testset "a result may be written to, and is none of the arguments" begin
        x = collect(1.0:500.0)
        y, z = JaxFunction(PYTHON.identity)(x)
        y .= 0
        @test x == z == 1:500
    end

    @noinline function held_results(count)
        kept = [product(a .* k, b)[1] for k in 1:count]
        GC.gc()
        foreach(_ -> product(a, b), 1:count)
        all(kept[k] ≈ plain_product(a .* k, b)[1] for k in 1:count)
    end
    @testset "results live as long as they are held" begin
        owners = Base.get_extension(JaxprAD, :JaxprADPythonCallExt).OWNERS
        @test held_results(200)
        foreach(_ -> GC.gc(), 1:3)
        @test length(owners) < 50
    end

    @testset "derivatives by XLA" begin
        ȧ, ḃ = randn(rng, 4, 3), randn(rng, 5, 4)
        @test all(jvp(product, (a, b), (ȧ, ḃ))[2] .≈ jvp(plain_product, (a, b), (ȧ, ḃ))[2])
        ȳ = (randn(rng, 5, 3), randn(rng, 4))
        first_a = copy(a)
        y, pull = vjp(product, first_a, b)
        first_a .= 0; y[1] .= 0         # what the pullback needs is its own
        @test all(pull(ȳ) .≈ vjp(plain_product, a, b)[2](ȳ))
        @test all(pull(2 .* ȳ) .≈ vjp(plain_product, a, b)[2](2 .* ȳ))
        found = gradient(p -> loss(p, x, 2).loss, p)
        expected = gradient(p -> plain_loss(p, x, 2).loss, p)
        @test found.w ≈ expected.w && found.b ≈ expected.b
        y, pull = vjp(loss, p, x, 2)
        p̄, x̄, none = pull((count = nothing, hidden = zeros(2), loss = 1.0, none = nothing))
        @test p̄.w ≈ expected.w && none == 2        # known arguments are as they were
    end

    @testset "in a trace it is a Program" begin
        f(p) = loss(p, x, 2).loss^2
        g(p) = plain_loss(p, x, 2).loss^2
        found, expected = jit(p -> gradient(f, p))(p), gradient(g, p)
        @test found.w ≈ expected.w && found.b ≈ expected.b
        h(w) = loss((w = w, b = p.b), x, 2).loss
        v = randn(rng, 3, 2)
        @test hvp(h, p.w, v) ≈ hvp(w -> plain_loss((w = w, b = p.b), x, 2).loss, p.w, v)
        step = JaxFunction(PYTHON.simulate)
        plain(x) = (for _ in 1:20; x = x .+ 0.1 .* sin.(x); end; x)
        @test jacobian(x -> step(x, 20), x) ≈ jacobian(plain, x)
        @test vmap(x -> step(x, 20))([x 2x]) ≈ [plain(x) plain(2x)]
        @test_throws TracingFailed trace(v -> (z -> step(z, 2)).(v), x)
    end

    @testset "exceptions of Python" begin
        @test_throws PyException JaxFunction(PYTHON.fails)(x)
    end

    if Base.find_package("ChainRulesCore") !== nothing
        using ChainRulesCore: ChainRulesCore, NoTangent, Tangent

        @testset "rules for ChainRulesCore" begin
            y, pull = ChainRulesCore.rrule(product, a, b)
            ȳ = (randn(rng, 5, 3), randn(rng, 4))
            _, ā, b̄ = pull(Tangent{typeof(y)}(ȳ...))
            @test all((ā, b̄) .≈ vjp(plain_product, a, b)[2](ȳ))
            y, ẏ = ChainRulesCore.frule((NoTangent(), a, b), product, a, b)
            @test ẏ[1] ≈ jvp(plain_product, (a, b), (a, b))[2][1]
        end
    end

    if Base.find_package("Enzyme") !== nothing
        using Enzyme: Active, Const, Duplicated, Forward, Reverse, autodiff

        function distance(step, x, target)
            y = copy(x)
            for _ in 1:2
                y .= step(y, 20)::Vector{Float64}
            end
            sum(abs2, y .- target)
        end

        @testset "rules for Enzyme" begin
            step = JaxFunction(PYTHON.simulate)
            target, v = randn(rng, 3), randn(rng, 3)
            plain(x) = sum(abs2, step(step(x, 20), 20) .- target)
            x̄ = zero(x)
            autodiff(Reverse, distance, Active, Const(step), Duplicated(x, x̄), Const(target))
            @test x̄ ≈ gradient(plain, x)
            found = autodiff(Forward, distance, Duplicated, Const(step), Duplicated(x, v),
                Const(target))
            @test found[1] ≈ jvp(plain, (x,), (v,))[2]
        end
    end
end
