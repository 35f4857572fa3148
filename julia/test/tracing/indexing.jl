# Reading and writing elements, slices, views; places that are traced.

include("../support/tracing.jl")

const x = [0.3, -0.7, 1.2, 0.4]
const A = [0.1 0.5 -0.2; 0.9 -1.1 0.4]

@testset "reading a vector: $k" for (k, f) in enumerate([
    x -> x[2] * x[4], x -> x[2:3], x -> x[[4, 1, 1]], x -> x[end:-1:1], x -> x[1:2:end],
    x -> x[:],
    x -> x[[true, false, true, true]], x -> view(x, 2:4)[2] * x[1], x -> @view(x[2:3]) .^ 2,
    x -> x[[1 2; 3 4]], x -> first(x) + last(x), x -> x[CartesianIndex(2)],
    x -> sum(x[k] * k for k in 1:4),
    x -> reverse(x), x -> x[begin+1:end], x -> collect(x), x -> x[1:0], x -> x[sortperm(x)[1]],
    x -> x[[argmax(x), 1]]])
    @test agrees(f, x)
end

@testset "reading a matrix: $k" for (k, f) in enumerate([
    A -> A[2, 3], A -> A[1, :], A -> A[:, 2], A -> A[:, [3, 1]], A -> A[[2], [3, 1]], A -> A[5],
    A -> A[2:2, :], A -> A[:, end:-1:1], A -> A[:, 1:2:3], A -> view(A, :, 2) .* 2,
    A -> sum(@views A[:, k]' * A[:, k] for k in 1:3), A -> A[:], A -> A[CartesianIndex(1, 2)],
    A -> A[2:4], A -> [sum(c) for c in eachcol(A)], A -> [sum(abs2, r) for r in eachrow(A)],
    A -> selectdim(A, 1, 2) .+ 1, A -> A[[1 2; 2 1], 1], A -> A[1:1, 1]])
    @test agrees(f, A)
end

@testset "writing: $k" for (k, f) in enumerate([
    x -> (y = copy(x); y[2] = x[1]^2; y), x -> (x[2] = 3; x .* 2), x -> (x[2:3] = x[1:2]; x),
    x -> (x[2:3] .= 5.0; x), x -> (x[[4, 1]] = x[[1, 2]] .^ 2; x), x -> (x[1:2:3] .+= x[2]; x),
    x -> (y = zeros(eltype(x), 4); for i in 1:4; y[i] = x[i]^2 + (i > 1 ? y[i-1] : 0); end; y),
    x -> (y = zeros(eltype(x), 2, 4); for i in 1:4; y[:, i] = [x[i], 1]; end; y[1, 2] = x[1]; y),
    x -> (y = zeros(eltype(x), 2, 4); y[1, :] = x; y[2, 2:3] .= x[1]; y[end, end] = 7; y),
    x -> (y = zeros(eltype(x), 2, 2); y[:] = x; y[3] += x[1]; y), x -> (x .= x .* x[1]; x),
    x -> (x[1] += 2; x[1] *= x[2]; x), x -> (y = Array{eltype(x)}(undef, 2); y[1] = x[2];
    y[2] = 1.0; y),
    x -> (v = view(x, 2:3); v[1] = x[4]; v .*= 2; x),
    x -> (y = similar(x, 2, 2); y .= 0; y[:, 1] .= x[1]; y[:, 2] = x[3:4]; y[1, 1] = 2; y .* y)])
    @test agrees((x) -> f(copy(x)), x)
end

@testset "traced places" begin
    places = [3, 1, 4]
    t = trace((x, k) -> x[k] .* 2, x, places)
    @test t(x, places) == 2x[places]
    f(x, k) = [x[k[1]], x[k[2]]^2]
    @test trace(f, x, places)(x, places) == f(x, places)
    g(A, k) = A[k[1], 2] + A[2, k[2]] + sum(A[:, k[2]])
    @test trace(g, A, [1, 3])(A, [1, 3]) ≈ g(A, [1, 3])
    h(x, k) = (y = copy(x); y[k[1]] = 10x[1]; y[k] .+= 1; y)
    @test trace(h, x, places)(x, places) ≈ h(x, places)
    w(A, k) = (B = copy(A); B[k[1], :] .= 1; B[2, k[2]] = A[1, 1]; B[:, k] = A[:, [1, 2]]; B)
    @test trace(w, A, [1, 3])(A, [1, 3]) == w(A, [1, 3])
    # data that are not traced, at places that are
    weights = collect(1.0:4.0)
    @test trace(k -> sum(weights[k]) + weights[k[2]], places)(places) == sum(weights[places]) + 1
    @test agrees(x -> x[Int(floor(abs(x[2]) * 3)) + 1] * x[1], x)
    # in functions of elements each its own
    @test trace(k -> ((k) -> weights[k]^2).(k), places)(places) == weights[places] .^ 2
end

@testset "what cannot be" begin
    failed(f) = message_of(JaxprAD.TracingFailed, () -> trace(f, x))
    @test occursin("BoundsError", failed(x -> x[5]))
    @test occursin("BoundsError", failed(x -> x[0:2]))
    outside(x) = x[5]
    @test occursin("indexing.jl:", failed(outside))
    @test occursin("size is not known", failed(x -> x[x .> 0]))
    @test occursin("DimensionMismatch", failed(x -> (x[1:2] = x; x)))
    @test occursin("similar(x)", message_of(JaxprAD.TracedConversion,
        () -> trace(x -> (y = zeros(4); y[1] = x[1]; y), x)))
end

"Fills an array by rows, each from the one before."
function rows(x, n)
    path = zeros(eltype(x), n, length(x))
    path[1, :] = x
    for k in 2:n
        path[k, :] .= path[k-1, :] .+ 0.1 .* [path[k-1, 2], -path[k-1, 1]]
        path[k, 2:2] .*= 0.9
    end
    path
end
"Fills blocks of a matrix, also by what is computed of others."
function blocks(x)
    y = zeros(eltype(x), 4, 5)
    y[1:2, 2:4] = [x[1] x[2] x[1]; x[2] x[1] x[2]]
    y[4, 1:2] = x
    y[2:2, 1:2] .= x' .* y[1:1, 2:3]
    y
end
@testset "loops over rows of a few elements are loops" begin
    @test agrees(blocks, [1.0, 0.5])
    @test_throws JaxprAD.TracingFailed trace(x -> (x[1:2, :] = [1.0, 2.0, 3.0, 4.0]; x), ones(3, 2))
    x = [1.0, 0.5]
    @test agrees(x -> rows(x, 6), x) && agrees(x -> rows(x, 40)[[3, 39], :], x)
    lengths = [JaxprAD.count_equations(trace(rows, x, n).program) for n in (100, 200)]
    @test lengths[1] == lengths[2] < 120
end
