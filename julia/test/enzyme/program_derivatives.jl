# Batches of derivatives: which items go together, and at which addresses. `run` here is no
# derivative, it only keeps what it was given.

using JaxprAD: Batch, Derived, TensorType, batched_port, bytes, lanes_for, run!

@testset "lanes" begin
    @test lanes_for.([0, 1, 3, 4]) == [1, 1, 3, 4]
    @test lanes_for(5) == 3 && lanes_for(30) == 4
    @test all(n -> lanes_for(n) <= 4 && cld(n, lanes_for(n)) == cld(n, 4), 1:100)
end

const SCALAR, TRIPLE = TensorType(Float64, Int[]), TensorType(Float64, [3])

"""
What `run` is given, with one operand, one linear operand and one result, which begin at 0,
10_000 and 20_000."""
function given(W, sizes, directions, operand, linear)
    calls = []
    run(operands, linear, results, pool) =
        push!(calls, (UInt.(operands), map(l -> UInt.(l), linear), map(l -> UInt.(l), results)))
    d = Derived{W}(run, (batched_port(SCALAR, sizes, operand),),
        (batched_port(TRIPLE, sizes, linear),),
        (batched_port(SCALAR, sizes, trues(length(sizes))),), Batch(sizes, directions))
    run!(d, (UInt(0),), (UInt(10_000),), (UInt(20_000),), C_NULL)
    calls
end

@testset "no batch" begin
    @test given(1, Int[], Bool[], Bool[], Bool[]) == [((0,), ((10_000,),), ((20_000,),))]
end

@testset "directions go together, the last ones overlap" begin
    calls = given(3, [5], [true], [false], [true])
    @test [c[1] for c in calls] == [(0,), (0,)]
    @test [c[2][1] for c in calls] == [10_000 .+ 24 .* (0, 1, 2), 10_000 .+ 24 .* (2, 3, 4)]
    @test [c[3][1] for c in calls] == [20_000 .+ 8 .* (0, 1, 2), 20_000 .+ 8 .* (2, 3, 4)]
end

@testset "what they share they all have" begin
    @test given(2, [2], [true], [false], [false])[1][2] == ((10_000, 10_000),)
end

@testset "axes of operands together with axes of directions" begin
    # (4, 2): the first of directions, the second of the operand's, which the
    # linear operand has as well
    calls = given(4, [4, 2], [true, false], [false, true], [true, true])
    @test [c[1] for c in calls] == [(0,), (8,)]
    @test [c[2][1] for c in calls] == [10_000 .+ 48 .* (0, 1, 2, 3), 10_024 .+ 48 .* (0, 1, 2, 3)]
    @test [c[3][1] for c in calls] == [20_000 .+ 16 .* (0, 1, 2, 3), 20_008 .+ 16 .* (0, 1, 2, 3)]
    @test isempty(given(1, [0], [true], [false], [true]))
    @test isempty(given(2, [2, 0], [true, false], [false, true], [true, true]))
end
