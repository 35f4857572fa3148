# Factorizations and what is solved by them. The Program's matrix is the transpose of Julia's.

"A factorization of a traced matrix: its parts by their names, in Julia's order."
struct TracedFactorization{P<:NamedTuple} <: Factorization{TracedReal}
    parts::P
end
Base.getproperty(f::TracedFactorization, name::Symbol) =
    name === :parts ? getfield(f, :parts) : getfield(f, :parts)[name]
Base.iterate(f::TracedFactorization, state...) = iterate(getfield(f, :parts), state...)

"The results of a primitive of matrices."
decomposed(op::Symbol, x::TracedMatrix; attrs...) =
    map(traced_array, emit_here(primitive(op), Atom[atom_here(x)], as_attributes(values(attrs))))
function check_square_matrix(x)
    size(x, 1) == size(x, 2) ||
        throw(DimensionMismatch("a matrix of size $(size(x)) is not square"))
    float_matrix(x)
end
float_matrix(x) = (y = traced(x); as_eltype(traced_type(float(dtype(y))), y))

# ---- triangular systems

"""
op(T) x = b for a triangular T, of which one triangle is read. Julia's x of size (n, k) is the
Program's X of shape (k, n), with X op(T)ᵀ = B."""
function triangular_solution(t::TracedMatrix, b::TracedArray; lower, unit = false,
    transposed = false)
    size(t, 1) == size(b, 1) || throw(
        DimensionMismatch("a system of size $(size(t)) with a right side of size $(size(b))"))
    S = promote_type(eltype(float_matrix(t)), eltype(b))
    columns = reshape(as_eltype(S, b), size(b, 1), size(b, 2))
    y = emit_here(:triangular_solve, atom_here(as_eltype(S, t)), atom_here(columns);
        left_side = false, lower = !lower, transpose_a = transposed, conjugate_a = false,
        unit_diagonal = unit)
    reshape(traced_array(y), size(b))
end
for (W, lower, unit) in ((UpperTriangular, false, false), (LowerTriangular, true, false),
    (UnitUpperTriangular, false, true), (UnitLowerTriangular, true, true))
    solution = :(triangular_solution(traced(parent(t)), traced(b); lower = $lower, unit = $unit))
    @eval Base.:\(t::$W{<:TracedNumber}, b::AbstractVector) = $solution
    @eval Base.:\(t::$W{<:TracedNumber}, b::AbstractMatrix) = $solution
    for V in (VectorOfTraced, MatrixOfTraced)
        @eval Base.:\(t::$W, b::$V) = $solution
        @eval Base.:\(t::$W{<:TracedNumber}, b::$V) = $solution
    end
end
Base.:\(d::Diagonal, b::VectorOfTraced) = b ./ d.diag
Base.:\(d::Diagonal, b::MatrixOfTraced) = b ./ d.diag

# ---- lu

"""
The triangles of L U = A[p, :] in one matrix, the pivots and p. Indices count from 1."""
function lu_parts(a)
    f, pivots, order = decomposed(:lu, permutedims(float_matrix(a)))
    permutedims(f), Int.(pivots) .+ 1, Int.(order) .+ 1
end
function LinearAlgebra.lu(a::MatrixOfTraced)
    f, _, p = lu_parts(a)
    k = minimum(size(a))
    TracedFactorization((L = traced(UnitLowerTriangular(f[:, 1:k])), U = triu(f[1:k, :]), p = p))
end
lu_solution(f, p, b) =
    triangular_solution(f, triangular_solution(f, rows(b, p); lower = true, unit = true);
        lower = false)
"The same for Aᵀ x = b."
function lu_transposed_solution(f, p, b)
    y = triangular_solution(f, b; lower = false, transposed = true)
    z = triangular_solution(f, y; lower = true, unit = true, transposed = true)
    rows(z, sortperm(p))
end
rows(b::TracedVector, p) = b[p]
rows(b::TracedMatrix, p) = b[p, :]

"A x = b: its derivatives solve systems with A again, whose triangles are kept."
function solution(a, b)
    a, b = check_square_matrix(a), traced(b)
    size(a, 1) == size(b, 1) || throw(
        DimensionMismatch("a system of size $(size(a)) with a right side of size $(size(b))"))
    S = promote_type(eltype(a), eltype(float_matrix(b)))
    a, b = as_eltype(S, a), as_eltype(S, b)
    f, _, p = lu_parts(a)
    part(g, x...) = trace(g, x...).program
    atoms = Atom[atom_here(x) for x in (a, a, f, p, f, p, b)]
    only_array(emit_here(primitive(:custom_linear_solve), atoms,
        Attributes(:consts => [1, 1, 2, 2], :matvec => part(*, a, b),
            :vecmat => part((m, x) -> permutedims(m) * x, a, b),
            :solve => part(lu_solution, f, p, b),
            :transpose_solve => part(lu_transposed_solution, f, p, b))))
end
only_array(atoms) = traced_array(only_one(atoms))

for V in (VectorOfTraced, MatrixOfTraced)
    @eval Base.:\(a::MatrixOfTraced, b::$V) = solution(a, b)
    @eval Base.:\(a::AbstractMatrix, b::$V) = solution(a, b)
    for W in (Symmetric, Hermitian, Adjoint, Transpose)
        @eval Base.:\(a::$W, b::$V) = solution(a, b)
    end
end
Base.:\(a::MatrixOfTraced, b::AbstractVector) = solution(a, b)
Base.:\(a::MatrixOfTraced, b::AbstractMatrix) = solution(a, b)
for W in (Symmetric, Hermitian)
    @eval Base.:\(a::$W{<:TracedNumber}, b::AbstractVector) = solution(a, b)
    @eval Base.:\(a::$W{<:TracedNumber}, b::AbstractMatrix) = solution(a, b)
    for V in (VectorOfTraced, MatrixOfTraced)
        @eval Base.:\(a::$W{<:TracedNumber}, b::$V) = solution(a, b)
    end
end
Base.:/(b::MatrixOfTraced, a::AbstractMatrix) =
    permutedims(permutedims(traced(a)) \ permutedims(traced(b)))
Base.inv(a::MatrixOfTraced) = a \ Matrix{dtype(float_matrix(a))}(I, size(a)...)

"The diagonal of U, and whether rows were exchanged an odd number of times."
function lu_diagonal(a)
    # the transpose has the same determinant, and is what the Program's matrix is
    f, pivots, _ = decomposed(:lu, check_square_matrix(a))
    diag(f), isodd_count(Int.(pivots) .+ 1 .!= (1:size(a, 1)))
end
isodd_count(changed) = mod(count(changed), 2) == 1
function LinearAlgebra.det(a::MatrixOfTraced)
    d, odd = lu_diagonal(a)
    select(odd, -prod(d), prod(d))
end
function LinearAlgebra.logabsdet(a::MatrixOfTraced)
    d, odd = lu_diagonal(a)
    s = prod(sign.(d))
    sum(log.(abs.(d))), select(odd, -s, s)
end
LinearAlgebra.logdet(a::MatrixOfTraced) = logabsdet(a)[1]

# ---- cholesky

const TracedSymmetric = Union{Symmetric{<:TracedNumber},Hermitian{<:TracedNumber}}
"The upper factor: the Program's L, of the transpose, is Julia's U."
upper_factor(a) = traced_array(emit_here(:cholesky, atom_here(check_square_matrix(a))))
LinearAlgebra.cholesky(a::MatrixOfTraced; check = true) =
    LinearAlgebra.Cholesky(upper_factor(a), 'U', 0)
LinearAlgebra.cholesky(a::TracedSymmetric; check = true) = cholesky(traced(a))
const TracedCholesky = LinearAlgebra.Cholesky{<:TracedNumber}
cholesky_solution(c, b) = triangular_solution(c.factors,
    triangular_solution(c.factors, traced(b); lower = false, transposed = true); lower = false)
Base.:\(c::TracedCholesky, b::AbstractVector) = cholesky_solution(c, b)
Base.:\(c::TracedCholesky, b::AbstractMatrix) = cholesky_solution(c, b)
for V in (VectorOfTraced, MatrixOfTraced)
    @eval Base.:\(c::TracedCholesky, b::$V) = cholesky_solution(c, b)
    @eval Base.:\(c::LinearAlgebra.Cholesky, b::$V) = known_solution(c, b)
    @eval Base.:\(f::LinearAlgebra.LU, b::$V) = known_solution(f, b)
end
# of factorizations that are not traced
function known_solution(c::LinearAlgebra.Cholesky, b)
    upper = c.uplo == 'U' ? Matrix(c.factors) : Matrix(adjoint(c.factors))
    UpperTriangular(upper) \ (LowerTriangular(Matrix(adjoint(upper))) \ b)
end
function known_solution(f::LinearAlgebra.LU, b)
    lower, upper, p = f
    UpperTriangular(upper) \ (UnitLowerTriangular(lower) \ rows(traced(b), p))
end
LinearAlgebra.logdet(c::TracedCholesky) = 2 * sum(log.(diag(c.factors)))
LinearAlgebra.det(c::TracedCholesky) = abs2(prod(diag(c.factors)))

# ---- qr, svd, eigenvalues

function LinearAlgebra.qr(a::MatrixOfTraced)
    q, r = decomposed(:qr, permutedims(float_matrix(a)); pivoting = false, full_matrices = false)
    TracedFactorization((Q = permutedims(q), R = permutedims(r)))
end
# A = U S Vᵀ is Aᵀ = V S Uᵀ: the Program's factors are Julia's, in the other order.
function LinearAlgebra.svd(a::MatrixOfTraced)
    s, vt, u = decomposed(:svd, float_matrix(a); full_matrices = false, compute_uv = true)
    TracedFactorization((U = u, S = s, V = adjoint(vt), Vt = vt))
end
LinearAlgebra.svdvals(a::MatrixOfTraced) =
    decomposed(:svd, float_matrix(a); full_matrices = false, compute_uv = false)[1]
function LinearAlgebra.eigen(a::TracedSymmetric)
    v, w = decomposed(:eigh, check_square_matrix(traced(a)); lower = true, sort_eigenvalues = true)
    Eigen(w, permutedims(v))
end
LinearAlgebra.eigvals(a::TracedSymmetric) = eigen(a).values
LinearAlgebra.eigvecs(a::TracedSymmetric) = eigen(a).vectors
LinearAlgebra.eigen(a::MatrixOfTraced) = throw(
    TracingFailed("eigen of a traced matrix is known for `Symmetric(A)` and `Hermitian(A)` only",
        user_line(), nothing))
