# Shapes, orders of dimensions, arrays put together.

include("../support/tracing.jl")

const x = collect(0.1:0.1:0.6)
const A = reshape(x, 2, 3) .^ 2
const T = reshape(collect(0.1:0.1:2.4), 2, 3, 4)

@testset "of a vector: $k" for (k, f) in enumerate([
    x -> reshape(x, 2, 3), x -> reshape(x, 3, :), x -> vec(reshape(x, 2, 3)) .* (1:6), x -> x',
    permutedims, x -> [x; 2x], x -> vcat(x, [1.0, 2.0]), x -> vcat([1.0], x), x -> [x 2x],
    x -> hcat(x, ones(6)), x -> [x[1], 2.0, x[3]], x -> [x[1] x[2]; 1.0 x[3]],
    x -> [x; 1.0; x[2]],
    x -> repeat(x, 2), x -> circshift(x, 2), x -> cat(x, 2x; dims = 2), x -> vcat(x[1], x[2]),
    x -> reduce(vcat, [x, x .^ 2]), x -> reduce(hcat, [x, x .^ 2]),
    x -> [v * w for v in x, w in x[1:2]],
    x -> fill(x[1], 2, 2), x -> zeros(eltype(x), 2) .+ x[1:2], x -> ones(eltype(x), 2, 2) .* x[1],
    x -> collect(Iterators.map(sin, x))])
    VERSION < v"1.6" && k == 24 && continue     # Iterators.map
    @test agrees(f, x)
end

@testset "of matrices and more: $k" for (k, (f, y)) in enumerate([
    (A -> A', A), (A -> LinearAlgebra.transpose(A), A), (A -> permutedims(A) * 2, A),
    (A -> permutedims(A, (2, 1)), A),
    (T -> permutedims(T, (3, 1, 2)), T), (T -> permutedims(T, (2, 3, 1)), T),
    (T -> T[:, 2, :], T),
    (T -> sum(T; dims = (1, 3)), T), (T -> reshape(T, 6, 4), T), (T -> reverse(T; dims = 2), T),
    (A -> [A; A], A), (A -> [A A], A), (A -> [A A; 2A 3A], A), (A -> vcat(A, ones(1, 3)), A),
    (A -> cat(A, A; dims = 3), A), (A -> repeat(A, 2, 3), A), (A -> vec(A), A), (A -> A[:], A),
    (A -> circshift(A, (1, 1)), A), (A -> PermutedDimsArray(A, (2, 1)) .* 1, A)])
    @test agrees(f, y)
end

@testset "memory is Julia's" begin
    p = trace(A -> A .* 2, A).program
    @test JaxprAD.shape(p.inputs[1]) == [3, 2]
    @test isempty([e for e in trace(A -> vec(A)[2:3], A).program.equations
                   if JaxprAD.name(e.op) === :transpose])
end

matrix(v) = reshape(v, 2, 3)
function pooled(x)
    y = similar(x, 2, 3)
    v = reshape(y, 3, 2)
    for j in 1:2, i in 1:3
        v[i, j] = x[i+3j-3]^2
    end
    y
end
function scaled_rows(x)
    y = copy(x)
    for j in 1:3, i in 1:2
        matrix(y)[i, j] *= i
    end
    y
end

@testset "writes to arrays with one memory: $k" for (k, f) in enumerate([
    pooled, scaled_rows, x -> (y = copy(x); matrix(y)[1, :] .= 0; y),
    x -> (y = copy(x); matrix(y)[:, 2] = x[1:2] .^ 2; y),
    x -> (y = matrix(zero(x)); vec(y) .= x; y),
    x -> (y = matrix(zero(x)); vec(y)[2:3] .= x[1:2]; 2y),
    x -> (y = copy(x); v = matrix(y); y[2] = x[1]^2; v .* 2),
    x -> (y = copy(x); fill!(matrix(y), x[1]); y), x -> (y = copy(x); sort!(vec(matrix(y))); y),
    x -> (y = matrix(copy(x)); copyto!(vec(y), 2x); y),
    x -> (y = copy(x); map!(sin, matrix(y), matrix(x)); y),
    x -> (y = similar(x, 2, 1, 3); dropdims(y; dims = 2) .= matrix(x) .^ 2; y),
    x -> (y = copy(x); view(matrix(y), :, 2) .= 1 .* x[5:6]; y),
    x -> (y = copy(x); v = reshape(view(y, 1:4), 2, 2); v[2, 1] = x[1]^2; v .*= 2; y),
    x -> (y = copy(x); v = matrix(y); v .= v ./ sum(v; dims = 1); y .* v[1, 1]),
    x -> (y = matrix(copy(x)); y'[2, 1] = x[1] * x[2]; y),
    x -> (y = matrix(copy(x)); z = y'; y[1, 2] = x[1]^2; z .+ 1),
    x -> (y = matrix(copy(x)); z = LinearAlgebra.transpose(y); z .*= x[1]; z[1, :] .= 0; y),
    x -> (y = matrix(copy(x)); y''[2, 3] = x[1]; vec(y')),
    x -> (A = x[1:4] * x[1:4]'; mul!(A', A * A, copy(A)); A)])
    @test agrees(f, x)
end

@testset "writes to copies: $k" for (k, f) in enumerate([
    x -> (y = copy(x); z = y[:]; z[1] = 0; y .+ z), x -> (y = copy(x); repeat(y, 1)[1] = 0; y),
    x -> (y = copy(x); circshift(y, 0)[1] = 0; y),
    x -> (y = matrix(copy(x)); permutedims(y)[1] = 0; y),
    x -> (y = copy(x); y[1:3] = view(y, 3:-1:1); y),
    x -> (y = copy(x); y[2:6] .= view(y, 1:5); y)])
    @test agrees(f, x)
end

@testset "what cannot be" begin
    failed(f) = message_of(JaxprAD.TracingFailed, () -> trace(f, A))
    @test occursin("DimensionMismatch", failed(A -> reshape(A, 4, 2)))
    @test occursin("put together", failed(A -> [A; ones(1, 2)]))
    outside(A) = jvp(w -> (vec(A)[1] = w; sum(A)), (1.0,), (1.0,))
    @test occursin("pass it to the function",
        message_of(JaxprAD.EscapedTracer, () -> trace(outside, A)))
    wrong(A) = [A; ones(1, 2)]
    @test occursin("shapes.jl:", failed(wrong))
end
