# Pytrees as Julia reads and writes them.

using JaxprAD.Functions:
    ResultMismatch, Slot, Spec, each, filled, pick, read_tree, slotted,
    spec_of, tree_text

const TREE = "( f64[] { w f32[2,3] rest ( i32[4] none ) } )"

@testset "text" begin
    t = read_tree(TREE)
    @test t isa Tuple{Spec{Float64,0},NamedTuple{(:w, :rest)}}
    @test t[2].w === Spec{Float32,2}((3, 2))            # memory's order is Python's reversed
    @test t[2].rest === (Spec{Int32,1}((4,)), nothing)
    @test tree_text(t) == TREE
    @test tree_text(read_tree("( )")) == "( )" && read_tree("none") === nothing
    for bad in ("f64", "f64[2] f64[2]", "q7[2]", "f64[a]")
        @test_throws Exception read_tree(bad)
    end
end

@testset "slots" begin
    t = read_tree(TREE)
    template, leaves = slotted(t)
    @test template == (Slot{1}(), (w = Slot{2}(), rest = (Slot{3}(), nothing)))
    @test map(tree_text, leaves) == ("f64[]", "f32[2,3]", "i32[4]")
    @test filled(template, (1.0, "w", [1])) == (1.0, (w = "w", rest = ([1], nothing)))
    inexact, kept = slotted(t, JaxprAD.Functions.isinexact_spec, 5)
    @test inexact == (Slot{5}(), (w = Slot{6}(), rest = (nothing, nothing))) && length(kept) == 2
end

@testset "what a function returned" begin
    @test tree_text(spec_of((a = 1.0, b = (zeros(Float32, 3, 2), nothing)))) ==
          "{ a f64[] b ( f32[3,2] none ) }"
    for bad in ("text", [1, "a"], big(2.0), (1.0, :b))
        @test_throws ResultMismatch spec_of(bad)
    end
end

@testset "tuples of any length are inferred" begin
    x = ntuple(identity, 40)
    @test @inferred(each(v -> 2v, x)) == map(v -> 2v, x)
    @test pick(x, Val((3, 1))) == (3, 1)
end
