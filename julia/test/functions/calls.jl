# Calls of users' functions on memory in XLA's layout, their errors, and their own derivative rules.

include("../support/calls.jl")

using JaxprAD.Functions: Arrays, Description, FunctionNotFound, InputMutated, Pullback,
    Pushforward, ReadOnlyArray, ResultMismatch, Runner,
    by_enzyme, execute!, jvp_call, make_runner, run_numbered!, vjp_call

"The results for operands, both as they lie in memory."
function called(c, operands...; results = map(JaxprAD.Functions.fresh, c.outputs))
    execute!(c, results, map(asarray, operands))
    results
end

@testset "the index order is Python's" begin
    memory = reshape(collect(1.0:6.0), 3, 2)            # Python's [[1, 2, 3], [4, 5, 6]]
    for layout in (Views(), Arrays())
        c = call_of(A -> (size(A) == (2, 3) || error("the wrong size"); A[1, :]), "( f64[2,3] )",
            "f64[3]"; layout = layout)
        @test called(c, memory)[1] == [1, 2, 3]
        c = call_of((out, A) -> (out .= 2 .* A; nothing), "( f64[2,3] )", "f64[2,3]";
            layout = layout, inplace = true)
        @test called(c, memory)[1] == 2memory
    end
    c = call_of(A -> A[1, 2, 1], "( f64[1,2,3] )", "f64[]")
    @test called(c, reshape(collect(1.0:6.0), 3, 2, 1))[1] == fill(4.0)
end

@testset "trees in and out" begin
    c = call_of((m, k) -> (y = m.w .* k, n = (k,)), "( { w f64[2] } i32[] )",
        "{ y f64[2] n ( i32[] ) }")
    y, n = called(c, [1.0, 2.0], Int32(3))
    @test y == [3, 6] && n == fill(Int32(3))
end

@testset "results that were not promised" begin
    for (f, result) in ((x -> [x; x], "f64[2]"), (x -> Float32.(x), "f64[2]"),
        (x -> (x, x), "f64[2]"), (x -> "text", "f64[2]"), (x -> x, "( f64[2] f64[2] )"),
        (x -> 1.0,
            "f64[2]"), (x -> (a = x,), "{ b f64[2] }"))
        @test_throws ResultMismatch called(call_of(f, "( f64[2] )", result), [1.0, 2.0])
    end
    @test called(call_of(x -> x, "( f64[2] )", "f32[2]"; narrows = true), [1.0, 2.0])[1] ==
          Float32[1, 2]
end

@testset "arguments are only read" begin
    x = [1.0, 2.0, 3.0]
    scaled(x) = (ccall(:memset, Ptr{Cvoid}, (Ptr{Float64}, Cint, Csize_t), x, 0, 24); sum(x))
    for f in (x -> (x[1] = 7.0; sum(x)), x -> sum(sort!(x; rev = true)),
        x -> (view(x, 2:3) .= 0; sum(x)), scaled)
        @test_throws InputMutated called(call_of(f, "( f64[3] )", "f64[]"), x)
        @test x == [1, 2, 3]
        @test called(call_of(f, "( f64[3] )", "f64[]"; layout = Arrays()), x) isa Tuple
        @test x == [1, 2, 3]
    end
end

@testset "rules of the user's" begin
    f_jvp((x, k), (ẋ, k̇)) = (k̇ === nothing || error("integers have no tangent");
    k .* ẋ)
    f_vjp((x, k), ȳ) = (k .* ȳ, nothing)
    arguments, result = read_tree("( f64[2] i32[] )"), read_tree("f64[2]")
    @test called(jvp_call(f_jvp, arguments, result, Views()), [1.0, 2.0], Int32(3),
        [1.0, 10.0])[1] == [3, 30]
    @test called(vjp_call(f_vjp, arguments, result, Views()), [1.0, 2.0], Int32(3),
        [1.0, 10.0])[1] == [3, 30]
end

@testset "types of derivatives" begin
    c = call_of((x, k) -> x, "( f64[2] i32[] )", "f64[2]")
    forward, backward = Pushforward(c, (1,)), Pullback(c, (1,))
    @test map(string, forward.inputs) == ("f64[2]", "i32[]", "f64[2]") &&
          map(string, forward.outputs) == ("f64[2]",)
    @test map(string, backward.inputs) == ("f64[2]", "i32[]", "f64[2]") &&
          map(string, backward.outputs) == ("f64[2]",)
end

describing(name, code; arguments = "( f64[2] )", result = "f64[2]", batch = "-", batched = "m0") =
    Description(
        "name $name\nsource code\ndigest $(hash(code))\narguments $arguments\nresult " *
        "$result\ninputs auto\ninplace 0\nnarrows 0\n" *
        "batch $batch\nbatched $batched\nsteps \n\n$code"
    )

@testset "requests" begin
    code = "module Inner\nf(x) = 2 .* x\nend\nglobal_(x) = x\nplain(x::Vector{Float64}) = x .+ 1"
    x, y = [1.0, 2.0], zeros(2)
    ran(d) =
        (number = Base.invokelatest(make_runner, d);
        GC.@preserve x y run_numbered!(number, [UInt(pointer(x))], [UInt(pointer(y))]);
        y)
    prepared(d) = (JaxprAD.Functions.home(d); d)
    @test Base.invokelatest(ran, prepared(describing("Inner.f", code))) == [2, 4]
    @test Base.invokelatest(ran, prepared(describing("plain", code))) == [2, 3]
    @test x == [1, 2]
    @test_throws FunctionNotFound Base.invokelatest(ran, prepared(describing("Inner.g", code)))
    @test_throws FunctionNotFound JaxprAD.Functions.home("package", "NoSuchPackage", "", "")
end

@testset "a batch" begin
    x, y = [1.0 3.0; 2.0 4.0], zeros(2, 2)
    d = describing("twice", "twice(x) = 2 .* x"; batch = "2", batched = "m1")
    JaxprAD.Functions.home(d)
    number = Base.invokelatest(make_runner, d)
    GC.@preserve x y Base.invokelatest(run_numbered!, number, [UInt(pointer(x))],
        [UInt(pointer(y))])
    @test y == 2x
end

@testset "errors of what is differentiated stay what they are" begin
    @test by_enzyme(() -> 3) == 3
    @test_throws BoundsError by_enzyme(() -> [1][2])
    @test_throws JaxprAD.Functions.EnzymeFailed by_enzyme(() -> [1][2];
        others = JaxprAD.Functions.EnzymeFailed)
    @test_throws InputMutated by_enzyme(() -> throw(InputMutated("no"));
        others = JaxprAD.Functions.EnzymeFailed)
end
