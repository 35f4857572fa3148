# cholesky: the lower triangular L with L Lᴴ = A, zero above its diagonal. Only A's lower triangle is read; where A is not positive
# definite, L's triangle is NaN.

@primitive Cholesky cholesky

function infer(op::Cholesky, types, attrs)
    check_square(op, types[1])
    types
end

evaluate(::Cholesky, x, attrs, types) = each_matrix(types, x[1]) do a
    l, failed = LAPACK.potrf!('L', a)
    (tril(failed == 0 ? l : fill!(l, NaN)),)
end

# L̇ = L φ(L⁻¹ Ȧ L⁻ᴴ), φ being the lower triangle with half the diagonal, for Hermitian Ȧ (Murray 2016, Differentiation of the Cholesky
# decomposition).
function jvp(::Cholesky, b, eqn, x, ẋ)
    l = apply(:cholesky, Traced(b, x[1]))
    p = solve(l, solve(l, Traced(b, ẋ[1]); lower = true, transpose_a = true, conjugate_a = true); left_side = true, lower = true)
    φ = where_(positions(p, :eq), p / 2, lower_triangle(p))
    [l.atom], MaybeAtom[matmul(l, φ).atom]
end
