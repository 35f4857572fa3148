# triangular_solve: X with op(A) X = B (left_side) or X op(A) = B, where op transposes (transpose_a)
# and conjugates (conjugate_a) the lower or upper triangle of A. Linear in B.

@primitive TriangularSolve triangular_solve(left_side, lower, transpose_a, conjugate_a,
    unit_diagonal)

function infer(op::TriangularSolve, types, attrs)
    a, b = types
    check_square(op, a)
    check_matrices(op, b)
    same_dtypes(op, types)
    batch_shape(a) == batch_shape(b) &&
        a.shape[end] == b.shape[attrs[:left_side] ? end - 1 : end] ||
        infer_error(op, "$(type_text(a)) and $(type_text(b)) do not fit")
    [b]
end

function evaluate(::TriangularSolve, x, attrs, types)
    side, triangle, unit = attrs[:left_side] ? 'L' : 'R', attrs[:lower] ? 'L' :
                                   'U', attrs[:unit_diagonal] ? 'U' : 'N'
    each_matrix(types, x...) do a, b
        a = attrs[:conjugate_a] ? conj(a) : a
        (BLAS.trsm(side, triangle, attrs[:transpose_a] ? 'T' : 'N', unit, one(eltype(a)), a, b),)
    end
end

# Ẋ = op(A)⁻¹ (Ḃ - op(Ȧ) X), Ȧ being the part of A's tangent that is read. (Giles 2008, An extended
# collection of matrix derivative results.)
function jvp(op::TriangularSolve, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    ẋ[1] === nothing ||
        (ẋ = [ẋ[1], add_maybe(b, ẋ[2], (-action(Traced(b, ẋ[1]), Traced(b, y[1]), eqn)).atom)])
    y, MaybeAtom[emit!(b, op, Atom[x[1], ẋ[2]], eqn.attrs)[1]]
end

"op(A) X, or X op(A); the diagonal that is not read counts as zero."
function action(a::Traced, x::Traced, eqn)
    k = eqn[:unit_diagonal] ? 1 : 0
    a = eqn[:lower] ? lower_triangle(a, -k) : upper_triangle(a, k)
    eqn[:transpose_a] && (a = transposed(a))
    eqn[:conjugate_a] && (a = conjugated(a))
    eqn[:left_side] ? matmul(a, x) : matmul(x, a)
end

transpose(op::TriangularSolve, b, eqn, ȳ, x) =
    [
        nothing,
        emit!(b, op, Atom[x[1], ȳ[1]],
            merge(eqn.attrs, Attributes(:transpose_a => !eqn[:transpose_a])))[1]
    ]

"""
B times the inverse of a triangle of A; `options` as the primitive's attributes,
false unless given."""
solve(a::Traced, b::Traced; left_side = false, lower = false, transpose_a = false,
    conjugate_a = false) =
    apply(:triangular_solve, a, b; left_side = left_side, lower = lower, transpose_a = transpose_a,
        conjugate_a = conjugate_a && iscomplex(dtype(a)), unit_diagonal = false)
