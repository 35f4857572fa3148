# cholesky: the lower triangular L with L Lᴴ = A, zero above its diagonal. Only A's lower triangle
# is read, and the real part of its diagonal; where A is not positive definite, L's triangle is NaN.

@primitive Cholesky cholesky

function infer(op::Cholesky, types, attrs)
    check_square(op, types[1])
    types
end

# LAPACK stops at a pivot that is NaN; some versions of OpenBLAS go on, with zeros in its column.
evaluate(::Cholesky, x, attrs, types) =
    each_matrix(types, x[1]) do a
        hasnan(a) = any(isnan, tril(a, -1)) || any(isnan, real.(diag(a)))
        l, failed = hasnan(a) ? (a, 1) : LAPACK.potrf!('L', a)
        (tril(failed == 0 && !hasnan(l) ? l : fill!(l, NaN)),)
    end

# The operand X is read as the Hermitian A = tril(X, -1) + tril(X, -1)ᴴ + Re diag X: so a tangent Ẋ,
# of which nothing need be symmetric, means Ȧ = tril(Ẋ, -1) + tril(Ẋ, -1)ᴴ + Re diag Ẋ.
# Differentiating L Lᴴ = A and multiplying by L⁻¹ and L⁻ᴴ gives L⁻¹ L̇ + (L⁻¹ L̇)ᴴ = L⁻¹ Ȧ L⁻ᴴ,
# whose first summand is lower triangular with a real diagonal: it is φ(L⁻¹ Ȧ L⁻ᴴ), φ being the
# lower triangle with half the diagonal (Murray 2016, Differentiation of the Cholesky
# decomposition). Cotangents of what is not read are zero, by transposition.
function jvp(::Cholesky, b, eqn, x, ẋ)
    l, ȧ = apply(:cholesky, Traced(b, x[1])), hermitian(Traced(b, ẋ[1]), true)
    p = solve(l, solve(l, ȧ; lower = true, transpose_a = true, conjugate_a = true);
        left_side = true, lower = true)
    φ = where_(positions(p, :eq), p / 2, lower_triangle(p))
    [l.atom], MaybeAtom[matmul(l, φ).atom]
end
