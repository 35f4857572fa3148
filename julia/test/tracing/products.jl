# Products, norms, diagonals, triangles.

include("../support/tracing.jl")

const A = randn(seeded("A"), 4, 4)
const B = randn(seeded("B"), 4, 3)
const b = randn(seeded("b"), 4)

@testset "of a matrix: $k" for (k, f) in enumerate([
    M -> M * B, M -> M * b, M -> M' * b, M -> b' * M, M -> B' * M, M -> M * M, M -> M' * M,
    M -> M * M', M -> A * M, M -> Diagonal(b) * M, M -> M * Diagonal(b),
    M -> UpperTriangular(A) * M,
    M -> Symmetric(M) * b, M -> UpperTriangular(M) * b, M -> LowerTriangular(M)' * b,
    M -> b' * M * b,
    M -> dot(b, M, b), M -> dot(M[1, :], A, b), M -> dot(b, Symmetric(M), b), M -> opnorm(M),
    M -> opnorm(M, 1), M -> opnorm(M, Inf), M -> cond(M), M -> cond(M, 1), tr,
    diag, M -> diag(M, 1), M -> triu(M) * b, M -> tril(M, -1), M -> M + I,
    M -> M - 2I, M -> I - M, norm, M -> norm(M, 1), M -> dot(M, M), M -> kron(M, B), M -> M^2,
    M -> M[:, 1:2] * B[1:2, :],
    M -> view(M, :, 1:3) * B', M -> @views(M[:, 2]' * M[:, 3]), M -> M[:, 1] * b',
    M -> M[:, 1] .* b',
    M -> Diagonal(M[:, 1]) * b, M -> diagm(M[:, 1]),
    M -> (C = similar(M, 4, 3); mul!(C, M, B); C),
    M -> (c = zeros(eltype(M), 4); mul!(c, M, b); mul!(c, M, b, 2.0, 3.0); c),
    M -> (C = M + I; rmul!(C, 3.0); lmul!(2.0, C); C), M -> [M[1, 1], M[2, 2]]' * B[1:2, :],
    M -> B[1:2, :]' * [M[1, 1], M[2, 2]], M -> A[1:2, 1:2] * [M[1, 1], 1.0],
    M -> M * LinearAlgebra.transpose(b)'])
    @test agrees(f, A)
end

@testset "of a vector: $k" for (k, f) in enumerate([
    v -> dot(v, b), v -> v' * v, v -> v' * A * v, v -> A * v, v -> A' * v, v -> v * v',
    v -> b * v',
    v -> v * b', v -> dot(v, A, b), v -> dot(b, A, v), v -> dot(v, Diagonal(v), v),
    v -> dot(v, UpperTriangular(A), v), norm, v -> norm(v, 1), v -> norm(v, Inf),
    v -> norm(v, 3), normalize,
    v -> Symmetric(A) * v, v -> Diagonal(v) * B, v -> v' * B, v -> sum(A * v),
    v -> dot(v, v[1:4]),
    v -> LinearAlgebra.transpose(v) * v, v -> B' * v, v -> Tridiagonal(b[1:3], b, b[2:4]) * v])
    @test agrees(f, b)
end

@testset "second derivatives" begin
    @test second_agrees(M -> sum(abs2, M * M' * B), A)
    @test second_agrees(v -> norm(A * v)^3, b)
end

@testset "shapes that do not fit" begin
    wrong(v) = B' * v[1:3]
    message = message_of(JaxprAD.TracingFailed, () -> trace(wrong, b))
    @test occursin("DimensionMismatch", message) && occursin("products.jl:", message)
end
