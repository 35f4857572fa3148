# Systems, determinants and factorizations.

include("../support/tracing.jl")

const A = randn(seeded("A"), 4, 4)
const B = randn(seeded("B"), 4, 3)
const b = randn(seeded("b"), 4)
positive(M) = M * M' + 4I
closer(f, x) = agrees(f, x; tolerance = 1e-6)

@testset "systems: $k" for (k, f) in enumerate([
    M -> M \ b, M -> M \ B, M -> B' / M, inv, M -> A \ M, M -> M' \ b, M -> Symmetric(M) \ b,
    M -> UpperTriangular(M) \ b, M -> LowerTriangular(M) \ B, M -> UnitLowerTriangular(M) \ b,
    M -> UpperTriangular(A) \ M, M -> Diagonal(b) \ M, M -> cholesky(positive(M)) \ b,
    M -> cholesky(positive(A)) \ M, M -> lu(A) \ M, M -> b' * (positive(M) \ b),
    M -> lu(M) \ b, M -> lu(M) \ B, M -> qr(M) \ b, M -> svd(M) \ B, M -> inv(lu(M)),
    M -> inv(cholesky(Symmetric(positive(M)))), M -> Matrix(inv(Symmetric(positive(M)))),
    M -> Matrix(inv(UpperTriangular(M))), M -> Matrix(inv(UnitLowerTriangular(M))),
    M -> M / UpperTriangular(A), M -> A / LowerTriangular(M), M -> A / Symmetric(M), M -> b' / M,
    M -> M[1, :]' / A, M -> M / Diagonal(b), M -> Tridiagonal(M[1:3, 1], M[:, 2], M[2:4, 3]) \ b,
    M -> SymTridiagonal(M[:, 2], M[2:4, 3]) \ B,
    M -> Tridiagonal(A[1:3, 1], A[:, 2], A[2:4, 3]) \ M])
    @test closer(f, A)
end

@testset "least squares: $k" for (k, f) in enumerate([
    M -> M[:, 1:3] \ b, M -> M[1:3, :] \ b[1:3], M -> M[:, 1:2] \ B, M -> A[:, 1:3] \ M,
    M -> qr(M[:, 1:2]) \ b, M -> svd(M[:, 1:3]) \ b, M -> svd(M[1:3, :]) \ M[1:3, :]])
    @test closer(f, A)
end

@testset "results in the place of right sides: $k" for (k, f) in enumerate([
    M -> ldiv!(lu(M), copy(b) .+ 0 .* M[:, 1]), M -> ldiv!(lu(A), copy(M)),
    M -> ldiv!(similar(M[:, 1]), cholesky(positive(M)), b),
    M -> ldiv!(cholesky(positive(A)), copy(M)),
    M -> ldiv!(UpperTriangular(M), copy(M)), M -> rdiv!(copy(M), LowerTriangular(A)),
    M -> normalize!(M[:, 2])])
    @test closer(f, A)
end

@testset "determinants: $k" for (k, f) in enumerate([
    det, M -> logdet(positive(M)), M -> logabsdet(M)[1], M -> logabsdet(M)[2],
    M -> logdet(cholesky(positive(M))), M -> det(cholesky(positive(M))), M -> det(M[1:3, 1:3]),
    M -> det(lu(M)), M -> det(lu(M[[2, 1, 3, 4], :])), M -> logabsdet(lu(M))[1],
    M -> det(Symmetric(M)), M -> logdet(Symmetric(positive(M))), M -> det(UpperTriangular(M)),
    M -> det(UnitLowerTriangular(M))])
    @test closer(f, A)
end

same_up_to_signs(f) = M -> abs.(f(M))
@testset "factors: $k" for (k, f) in enumerate([
    M -> Matrix(cholesky(positive(M)).U), M -> Matrix(cholesky(positive(M)).L),
    M -> cholesky(Symmetric(positive(M))).U * b, M -> lu(M).L * 2, M -> lu(M).U,
    M -> lu(M).p .* 1.0,
    M -> ((L, U, p) = lu(M); L * U - M[p, :]), same_up_to_signs(M -> qr(M).R),
    same_up_to_signs(M -> Matrix(qr(M).Q)), M -> svd(M).S, svdvals,
    M -> (F = svd(M); F.U * Diagonal(F.S) * F.Vt), M -> svd(M[:, 1:3]).S,
    M -> (F = svd(M); F.V * Diagonal(F.S) * F.U'),
    M -> eigen(Symmetric(positive(M))).values, M -> eigvals(Symmetric(M + M')),
    M -> (F = eigen(Symmetric(M + M')); F.vectors * Diagonal(F.values) * F.vectors'),
    same_up_to_signs(M -> eigvecs(Symmetric(M + M')))])
    @test closer(f, A)
end

@testset "second derivatives" begin
    @test second_agrees(M -> sum(positive(M) \ b), A; tolerance = 1e-5)
    @test second_agrees(M -> logdet(positive(M)), A; tolerance = 1e-5)
end

@testset "what cannot be" begin
    failed(f) = message_of(JaxprAD.TracingFailed, () -> trace(f, A))
    @test occursin("not square", failed(M -> inv(M[:, 1:2])))
    @test occursin("schur of a traced matrix", failed(schur))
    @test occursin("lyap of a traced matrix", failed(M -> lyap(M, A)))
    message = failed(M -> LinearAlgebra.bunchkaufman(Symmetric(M)))
    @test occursin("bunchkaufman", message) && occursin("a traced Float64 array of", message)
    @test occursin("Symmetric", failed(eigen))
end
