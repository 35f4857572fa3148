# Straight-line code that repeats itself.

using JaxprAD: Builder, Var, TensorType, emit, reroll_loops, count_equations

"""
A Program of a random block repeated over carried values, elements of arrays along some axis
forwards or backwards, constants, and numbers that may be others in each trip."""
function repeated(r, trips)
    types = [TensorType(Float64, JaxprAD.Dim[]), TensorType(Float64, JaxprAD.Dim[2]),
        TensorType(Float64, JaxprAD.Dim[3trips+5, 2]),
        TensorType(Float64, JaxprAD.Dim[2, 2trips])]
    recipe = [(rand(r, 1:6), rand(r, 1:10), rand(r, 1:10)) for _ in 1:rand(r, 4:9)]
    backwards, gap, kept = rand(r, Bool), rand(r, 1:3), rand(r, Bool)
    number = rand(r, [t -> 0.5, t -> 1 / (t + 2), t -> t % 9 == 4 ? -0.0 : 0.25])
    JaxprAD.build("loop", types) do b, v
        scalar, vector, tall, wide = v
        returned = JaxprAD.Atom[]
        older = vector
        for t in 0:trips-1
            i, j = (backwards ? trips - 1 - t : t) * gap, backwards ? 2trips - 1 - t : t
            row = emit(b, :reshape,
                emit(b, :slice, tall; start = [i, 0], limit = [i + 1, 2],
                    strides = [1, 1]); shape = [2])
            left, right = (emit(b, :broadcast_in_dim,
                emit(b, :reshape,
                    emit(b, :slice, tall; start = [i, k], limit = [i + 1, k + 1],
                        strides = [1, 1]); shape = Int[]); shape = [2], dims = Int[])
             for k in 0:1)
            column = emit(b, :squeeze,
                emit(b, :slice, wide; start = [0, j], limit = [2, j + 1],
                    strides = [1, 1]); dims = [1])
            values = JaxprAD.Atom[vector, older, row, column, emit(b, :sub, left, right),
                emit(b, :broadcast_in_dim, scalar; shape = [2], dims = Int[])]
            for (op, x, y) in recipe
                a, c = values[mod1(x, end)], values[mod1(y, end)]
                push!(
                    values,
                    op == 1 ? emit(b, :add, a, c) :
                    op == 2 ? emit(b, :sub, a, c) :
                    op == 3 ? emit(b, :mul, a, c) :
                    op == 4 ? emit(b, :sin, a) :
                    op == 5 ? emit(b, :tanh, a) :
                    emit(b, :mul, JaxprAD.Literal(number(t)), a)
                )
            end
            older, vector = vector, emit(b, :tanh, emit(b, :add, values[end], vector))
            kept && t % 7 == 3 && push!(returned, values[end-1])
        end
        vcat(returned, older, vector)
    end
end

@testset "unrolled loops are rolled, and nothing changes" begin
    r = MersenneTwister(11)
    for k in 1:40
        p = repeated(r, rand(r, 60:90))
        q = JaxprAD.typecheck(reroll_loops(p))
        x = Any[fill(randn(r)), randn(r, 2), randn(r, reverse(Tuple(p.inputs[3].type.shape))...),
            randn(r, reverse(Tuple(p.inputs[4].type.shape))...)]
        @test 5count_equations(q) <= 2count_equations(p)
        @test count(e -> e.op isa JaxprAD.Scan, q.equations) == 1
        @test isequal(run(p, x), run(q, x))
        k <= 3 && @test native_agrees(q, x)
        k <= 3 &&
            @test relative_error(run(JaxprAD.vjp(q), vcat(x, run(p, x))),
                run(JaxprAD.vjp(p), vcat(x, run(p, x)))) < 1e-10
    end
end

"""
The unrolled loop x *= p² - p³ - p over the elements p, with something done to the
trips' equations."""
function product(n, change = (b, t, p) -> p)
    JaxprAD.build("product", [TensorType(Float64, JaxprAD.Dim[n])]) do b, v
        x = emit(b, :add, emit(b, :reduce_sum, v[1]; axes = [0]), JaxprAD.Literal(1.0))
        for t in 0:n-1
            p = emit(b, :squeeze,
                emit(b, :slice, v[1]; start = [t], limit = [t + 1], strides = [1]); dims = [0])
            p = change(b, t, p)
            x = emit(b, :mul, x,
                emit(b, :sub,
                    emit(b, :sub, emit(b, :integer_pow, p; y = 2),
                        emit(b, :integer_pow, p; y = 3)), p))
        end
        [x]
    end
end
scans(p) = [e[:length] for e in p.equations if e.op isa JaxprAD.Scan]

@testset "what differs is not rolled" begin
    @test scans(reroll_loops(product(200))) == [199]
    # too short
    @test isempty(scans(reroll_loops(product(50))))
    twice(b, t, p) = t == 120 ? emit(b, :neg, p) : p
    # one odd trip between two loops
    @test scans(reroll_loops(product(240, twice))) == [119, 118]
    powers(b, t, p) = emit(b, :integer_pow, p; y = t + 2)
    # another attribute each time
    @test isempty(scans(reroll_loops(product(200, powers))))
    x = Any[randn(MersenneTwister(1), 240).+1]
    @test isequal(run(product(240, twice), x), run(reroll_loops(product(240, twice)), x))
end

@testset "numbers of each trip" begin
    numbers(b, t, p) = emit(b, :mul, JaxprAD.Literal(1 / (t + 1)), p)
    p, x = product(200, numbers), Any[randn(MersenneTwister(1), 200)]
    q = reroll_loops(p)
    @test scans(q) == [199] && isequal(run(p, x), run(q, x)) && native_agrees(q, x)
    # a loop around stages that differ in their numbers is the loop, not the stages
    stages = [0.1, 0.2, 0.3]
    staged(b, t, p) = emit(b, :mul, JaxprAD.Literal(stages[t%3+1]), p)
    @test scans(reroll_loops(product(300, staged))) == [99]
    # by an index in Julia, of every type
    smooth(y, i) = 0.5 * sin(y + 0.01 * i) + 1 / i
    for T in (Float64, Float32, ComplexF64)
        f(x) = foldl(smooth, 1:400; init = x)
        t = trace(f, T(0.3))
        @test count_equations(t.program) < 30 && t(T(0.3)) ≈ f(T(0.3))
    end
    last_number(x) = foldl((y, i) -> smooth(y, i) + (i == 400), 1:400; init = x)
    @test trace(last_number, 0.3)(0.3) == last_number(0.3)
    slope = jit(x -> gradient(y -> foldl(smooth, 1:400; init = y), x))
    @test slope(0.3) ≈ prod(0.5 * cos(y + 0.01 * i) for (i, y) in
        zip(1:400, accumulate(smooth, 1:399; init = 0.3) |> ys -> vcat(0.3, ys)))
    # numbers that no constant can hold stay as they are
    huge = JaxprAD.build("huge", [TensorType(UInt64, JaxprAD.Dim[])]) do b, v
        [foldl((y, k) -> emit(b, :add, y, JaxprAD.Literal(typemax(UInt64) - UInt64(k))), 1:600;
            init = v[1])]
    end
    @test isempty(scans(reroll_loops(huge)))
end

@testset "elements of two rows, of which only the place along the other axis differs" begin
    differences(x) = foldl((s, k) -> s * x[1, k] - x[2, k], 1:size(x, 2); init = x[1, 1])
    x = randn(MersenneTwister(2), 2, 100)
    t = trace(differences, x)
    @test length(scans(t.program)) == 1 && t(x) == differences(x)
    @test jit(differences)(x) ≈ differences(x)
end

@testset "loops in loops, of up to 250 trips" begin
    function sweeps(x, b)
        x = copy(x)
        for _ in 1:12, i in 2:length(x)-1
            x[i] = (x[i-1] + x[i+1] + b[i]) / 2
        end
        sum(abs2, x)
    end
    r = MersenneTwister(4)
    # The first sweep is a loop of its own where it is long, since it reads the array.
    for (n, loops) in ((20, 1), (40, 1), (240, 2), (400, 2))
        x, b = randn(r, n), randn(r, n)
        t = trace(sweeps, x, b)
        @test length(scans(t.program)) == loops
        @test t(x, b) ≈ sweeps(x, b)
    end
end

@testset "the work is linear in the Program, rolled or not" begin
    irregular(n) =
        JaxprAD.build("f",
            [TensorType(Float64, JaxprAD.Dim[]), TensorType(Float64, JaxprAD.Dim[])]) do b, v
            r, values = MersenneTwister(3), JaxprAD.Atom[v...]
            for _ in 1:n
                push!(
                    values,
                    emit(b, :add, rand(r, values[max(1, end - 20):end]),
                        rand(r, values[max(1, end - 20):end]))
                )
            end
            values[end:end]
        end
    seconds(p) = least_seconds(() -> reroll_loops(p))
    for make in (product, irregular)
        small, large = make(2000), make(8000)
        seconds(small)
        @test seconds(large) < 8 * seconds(small) + 0.05
    end
end
