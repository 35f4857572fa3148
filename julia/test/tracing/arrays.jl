# What an array of traced numbers is, whichever type of Julia's holds them.

include("../support/tracing.jl")

const x = [0.3, -0.7, 1.2]

@testset "arrays of traced numbers: $k" for (k, f) in enumerate([
    x -> [x[1], x[2]] .* 2, x -> sum([v for v in x]), x -> zero(x) .+ x, x -> copy(x),
    x -> (y = similar(x); y .= 2; y .* x), x -> fill(x[1], 3) .* x, x -> map(identity, [x[1], 1.0]),
    x -> reshape([x[1], 2.0, x[2], x[3]], 2, 2) * [1.0, 2.0], x -> ones(eltype(x), 3) .* x,
    x -> Diagonal(x) * ones(3), x -> collect(x'), x -> (y = copy(x); y[1] = 2; x .+ y),
    x -> copyto!(similar(x), x), x -> vec([x[1] x[2]]), x -> deepcopy(x) .* 2])
    @test agrees(f, x)
end

@testset "element types" begin
    t = trace(x -> (eltype(x) <: Real ? 2 : 3) .* x, Float32[1, 2])
    @test t(Float32[1, 2]) isa Vector{Float32}
    @test trace(x -> x, [1, 2])([3, 4]) == [3, 4]
    @test trace(x -> x .& [true, false], [true, true])([true, true]) == [true, false]
    @test trace(z -> abs2.(z) .+ real.(z), [1.0 + 2im])([1.0 + 2im]) ≈ [6.0]
end
