# Programs with symbolic dimensions, for arrays of some sizes.

include("../support/tracing.jl")
using JaxprAD: at_shapes, typecheck, evaluate

archived(name) = joinpath(@__DIR__, "..", "..", "..", "tests", "archives", "v1", "$name.pybridge")

@testset "a batch of any size" begin
    f = load(archived("jax-sizes"))
    constant = first(e for e in f.program.equations if haskey(e.attrs, :value))
    kernel = reshape(constant[:value], 5, 3)        # the memory of 3 rows of 5
    function reference(x)
        y = tanh.(kernel * [x 2x])
        vec(sum(y; dims = 2)) ./ size(x, 2), (kernel*[x 2x])[:, 1:size(x, 2)÷2]
    end
    for n in (1, 2, 7)
        x = randn(seeded("$n"), 3, n)
        @test all(f(x) .≈ reference(x))
        @test all(jit(f)(x) .≈ reference(x))
        @test agrees(x -> f(x)[1], x; name = "sizes")
    end
    @test_throws ArgumentError f(randn(4, 2))
end

"The shapes of the inputs of a Program with such types, for arrays of these sizes."
function shapes(types, sizes...)
    binders = join(("%$(k - 1): f64$t" for (k, t) in enumerate(types)), ", ")
    p = at_shapes(program("($binders) { return }"), sizes)
    [Tuple(JaxprAD.shape(v)) for v in p.inputs]
end

@testset "dimensions are found" begin
    @test shapes(["[<b>,3]"], (4, 3)) == [(4, 3)]
    @test shapes(["[<2*b + 1>]", "[<b>]"], (9,), (4,)) == [(9,), (4,)]
    # what is found by one is needed by another
    @test shapes(["[<a*b>]", "[<b>]"], (12,), (4,)) == [(12,), (4,)]
    @test shapes(["[<floordiv(b, 2)>]", "[<b>]", "[<b^2>]"], (2,), (5,), (25,)) ==
          [(2,), (5,), (25,)]
    @test shapes(["[<max(a, b)>,<mod(a, 3)>]", "[<a>,<b>]"], (7, 1), (7, 2)) == [(7, 1), (7, 2)]
    @test occursin("is 5 where <b> = 4", message_of(DimensionMismatch,
        () -> shapes(["[<b>]", "[<b>]"], (4,), (5,))))
    @test occursin("where <2*b>", message_of(DimensionMismatch, () -> shapes(["[<2*b>]"], (3,))))
    @test_throws DimensionMismatch shapes(["[<floordiv(b, 2)>]"], (2,))
end

@testset "dimensions in attributes and bodies" begin
    p = program("""(%0: f64[<n>,<b>]) {
          %1: i64[] = dim_size {dim=<2*n + b>, dtype=i64}
          %2: f64[<b>] = broadcast_in_dim 0.0:f64 {shape=[<b>], dims=[]}
          %3: f64[<b>] = scan %2 %0 {length=<n>, reverse=false, consts=0, carry=1,
              unroll=1, body=(%0: f64[<b>], %1: f64[<b>]) {
            %2: f64[<b>] = add %0 %1
            return %2
          }}
          return %3 %1
        }""")
    x = randn(seeded("bodies"), 5, 4)       # shape (4, 5)
    total, count = evaluate(typecheck(at_shapes(p, [(4, 5)])), x)
    @test total ≈ vec(sum(x; dims = 2)) && count[] == 13
end
