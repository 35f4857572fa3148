# Factorizations and what is solved by them. The Program's matrix is the transpose of Julia's.

"What a function such as `lu` makes of a traced matrix: parts by their names, in Julia's order."
struct TracedFactorization{F<:Function,P<:NamedTuple} <: Factorization{TracedReal}
    made_by::F
    parts::P
end
const TracedLU = TracedFactorization{typeof(lu)}
const TracedQR = TracedFactorization{typeof(qr)}
const TracedSVD = TracedFactorization{typeof(svd)}
Base.getproperty(f::TracedFactorization, name::Symbol) =
    name === :parts ? getfield(f, :parts) : getfield(f, :parts)[name]
Base.iterate(f::TracedFactorization, state...) = iterate(getfield(f, :parts), state...)

"The results of a primitive of matrices."
decomposed(op::Symbol, x::TracedMatrix; attrs...) =
    map(traced_array, emit_here(primitive(op), Atom[atom_here(x)], as_attributes(values(attrs))))
require_square(x) =
    size(x, 1) == size(x, 2) ||
    throw(DimensionMismatch("a matrix of size $(size(x)) is not square"))
check_square_matrix(x) = (require_square(x); float_matrix(x))
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
for W in TRIANGULAR
    @eval Base.inv(t::$W{<:TracedNumber}) = $W(t \ one_matrix(t))
    @eval LinearAlgebra.det(t::$W{<:TracedNumber}) = prod(diag(traced(t)))
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
    lower = traced(UnitLowerTriangular(f[:, 1:k]))
    TracedFactorization(lu, (L = lower, U = triu(f[1:k, :]), p = p))
end
lu_solution(l, u, p, b) =
    triangular_solution(u, triangular_solution(l, rows(b, p); lower = true, unit = true);
        lower = false)
"The same with both triangles in one matrix."
lu_solution(f, p, b) = lu_solution(f, f, p, b)
"That for Aᵀ x = b."
function lu_transposed_solution(f, p, b)
    y = triangular_solution(f, b; lower = false, transposed = true)
    z = triangular_solution(f, y; lower = true, unit = true, transposed = true)
    rows(z, sortperm(p))
end
rows(b::TracedVector, p) = b[p]
rows(b::TracedMatrix, p) = b[p, :]

"A x = b, or the least squares where A is not square."
solution(a, b) = size(a, 1) == size(a, 2) ? square_solution(a, b) : qr(traced(a)) \ b

"A x = b: its derivatives solve systems with A again, whose triangles are kept."
function square_solution(a, b)
    a, b = float_matrix(a), traced(b)
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
Base.inv(a::MatrixOfTraced) = check_square_matrix(a) \ one_matrix(float_matrix(a))

# ---- from the right: b / a is the transpose of aᵀ \ bᵀ

right_solution(b, a) = permutedims(turned_over(a) \ permutedims(traced(b)))
turned_over(a) = permutedims(traced(a))
turned_over(a::UpperTriangular) = LowerTriangular(permutedims(traced(parent(a))))
turned_over(a::LowerTriangular) = UpperTriangular(permutedims(traced(parent(a))))
turned_over(a::UnitUpperTriangular) = UnitLowerTriangular(permutedims(traced(parent(a))))
turned_over(a::UnitLowerTriangular) = UnitUpperTriangular(permutedims(traced(parent(a))))
turned_over(a::Diagonal) = a
Base.:/(b::MatrixOfTraced, a::AbstractMatrix) = right_solution(b, a)
Base.:/(b::AbstractMatrix, a::MatrixOfTraced) = right_solution(b, a)
Base.:/(b::MatrixOfTraced, a::MatrixOfTraced) = right_solution(b, a)
for W in WRAPPED
    W in (Adjoint, Transpose) && continue
    @eval Base.:/(b::MatrixOfTraced, a::$W) = right_solution(b, a)
    @eval Base.:/(b::AbstractMatrix, a::$W{<:TracedNumber}) = right_solution(b, a)
    @eval Base.:/(b::MatrixOfTraced, a::$W{<:TracedNumber}) = right_solution(b, a)
end
for V in (VectorOfTraced, AbstractVector{<:Number}), W in (Adjoint, Transpose)
    A = V === VectorOfTraced ? AbstractMatrix : MatrixOfTraced
    @eval Base.:/(b::$W{<:Number,<:$V}, a::$A) =
        LinearAlgebra.transpose(turned_over(a) \ vec(traced(b)))
end

"The diagonal of U, and whether rows were exchanged an odd number of times."
function lu_diagonal(a::MatrixOfTraced)
    # the transpose has the same determinant, and is what the Program's matrix is
    f, pivots, _ = decomposed(:lu, check_square_matrix(a))
    diag(f), isodd(count(Int.(pivots) .+ 1 .!= (1:size(a, 1))))
end
# A permutation is odd where an odd number of its pairs stands in the wrong order.
lu_diagonal(f::TracedLU) = diag(f.U),
    isodd(count((f.p .> permutedims(f.p)) .& where_band(>, size(f.U), 0)))
for A in (MatrixOfTraced, TracedLU)
    @eval function LinearAlgebra.det(a::$A)
        d, odd = lu_diagonal(a)
        select(odd, -prod(d), prod(d))
    end
    @eval function LinearAlgebra.logabsdet(a::$A)
        d, odd = lu_diagonal(a)
        s = prod(sign.(d))
        sum(log.(abs.(d))), select(odd, -s, s)
    end
    @eval LinearAlgebra.logdet(a::$A) = logabsdet(a)[1]
end

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
Base.inv(c::TracedCholesky) = c \ one_matrix(c.factors)
LinearAlgebra.logdet(c::TracedCholesky) = 2 * sum(log.(diag(c.factors)))
LinearAlgebra.det(c::TracedCholesky) = abs2(prod(diag(c.factors)))

# What is known of matrices is so of symmetric ones.
Base.inv(a::TracedSymmetric) = Symmetric(inv(traced(a)))
for f in (:det, :logdet, :logabsdet, :lu, :qr, :svd, :svdvals, :opnorm)
    @eval LinearAlgebra.$f(a::TracedSymmetric) = $f(traced(a))
end

# ---- qr, svd, eigenvalues

function LinearAlgebra.qr(a::MatrixOfTraced)
    q, r = decomposed(:qr, permutedims(float_matrix(a)); pivoting = false, full_matrices = false)
    TracedFactorization(qr, (Q = permutedims(q), R = permutedims(r)))
end
# A = U S Vᵀ is Aᵀ = V S Uᵀ: the Program's factors are Julia's, in the other order.
function LinearAlgebra.svd(a::MatrixOfTraced)
    s, vt, u = decomposed(:svd, float_matrix(a); full_matrices = false, compute_uv = true)
    TracedFactorization(svd, (U = u, S = s, V = adjoint(vt), Vt = vt))
end
LinearAlgebra.svdvals(a::MatrixOfTraced) =
    decomposed(:svd, float_matrix(a); full_matrices = false, compute_uv = false)[1]
function LinearAlgebra.eigen(a::TracedSymmetric)
    v, w = decomposed(:eigh, check_square_matrix(traced(a)); lower = true, sort_eigenvalues = true)
    Eigen(w, permutedims(v))
end
LinearAlgebra.eigvals(a::TracedSymmetric) = eigen(a).values
LinearAlgebra.eigvecs(a::TracedSymmetric) = eigen(a).vectors


# ---- solved by factorizations

Base.:\(f::TracedFactorization, b::AbstractVector) = solved_by(f, traced(b))
Base.:\(f::TracedFactorization, b::AbstractMatrix) = solved_by(f, traced(b))
solved_by(f::TracedLU, b) = lu_solution(f.L, f.U, f.p, b)
"The least squares; of several solutions the one of the least norm, by the triangle of Rᵀ."
function solved_by(f::TracedQR, b)
    y, (m, n) = adjoint(f.Q) * b, size(f.R)
    m == n && return triangular_solution(f.R, y; lower = false)
    q, r = qr(traced(adjoint(f.R)))
    q * triangular_solution(traced(adjoint(r)), y; lower = true)
end
"Singular values that rounding alone keeps from zero count as zero, as LinearAlgebra has it."
solved_by(f::TracedSVD, b) =
    f.V * (reciprocals(f.S, eps(dtype(f.S))) .* (adjoint(f.U) * b))
"Of singular values; 0 of those that are at most `rtol` times the largest."
function reciprocals(s, rtol)
    kept = s .> rtol * maximum(s)
    select.(kept, 1 ./ select.(kept, s, 1), 0)
end
Base.inv(f::TracedFactorization) = f \ one_matrix(f.U)

# Results in the place of right sides.
for F in (TracedFactorization, TracedCholesky, LinearAlgebra.Cholesky, LinearAlgebra.LU),
    (V, B) in ((VectorOfTraced, AbstractVector), (MatrixOfTraced, AbstractMatrix))

    @eval LinearAlgebra.ldiv!(f::$F, b::$V) = assign!(b, f \ b)
    @eval LinearAlgebra.ldiv!(y::$V, f::$F, b::$B) = assign!(y, f \ b)
end
for W in (TRIANGULAR..., Diagonal)
    for V in (VectorOfTraced, MatrixOfTraced)
        @eval LinearAlgebra.ldiv!(a::$W, b::$V) = assign!(b, a \ b)
    end
    @eval LinearAlgebra.rdiv!(b::MatrixOfTraced, a::$W) = assign!(b, b / a)
end

# ---- tridiagonal systems

"The first number of the diagonal below is not read, nor the last one of that above."
function tridiagonal_solution(a, b)
    b, zero_ = traced(b), [zero(eltype(a))]
    S = promote_type(eltype(float_matrix(b)), traced_type(float(plain_type(eltype(a)))))
    of_type(x) = atom_here(as_eltype(S, traced(x)))
    columns = of_type(permutedims(reshape(b, size(b, 1), size(b, 2))))
    lower, middle, upper = diagonals(a)
    y = emit_here(:tridiagonal_solve, of_type([zero_; lower]), of_type(middle),
        of_type([upper; zero_]), columns)
    reshape(permutedims(traced_array(y)), size(b))
end
diagonals(a::Tridiagonal) = a.dl, a.d, a.du
diagonals(a::SymTridiagonal) = a.ev[1:size(a, 1)-1], a.dv, a.ev[1:size(a, 1)-1]
for W in (Tridiagonal, SymTridiagonal)
    for V in (AbstractVector, AbstractMatrix, StridedVecOrMat, VectorOfTraced, MatrixOfTraced)
        @eval Base.:\(a::$W{<:TracedNumber}, b::$V) = tridiagonal_solution(a, b)
    end
    for V in (VectorOfTraced, MatrixOfTraced)
        @eval Base.:\(a::$W, b::$V) = tridiagonal_solution(a, b)
    end
end
