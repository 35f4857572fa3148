# eigh: eigenvectors V, as columns, and eigenvalues w, ascending, of Hermitian matrices, of which
# one triangle is read, and the real part of the diagonal. V is fixed up to phases, and where
# eigenvalues coincide up to more than that.

@primitive HermitianEigen eigh(lower, sort_eigenvalues)

function infer(op::HermitianEigen, types, attrs)
    check_square(op, types[1])
    [types[1], TensorType(real_dtype(types[1].dtype), types[1].shape[1:end-1])]
end

evaluate(::HermitianEigen, x, attrs, types) =
    each_matrix(types, x[1]) do a
        all(isfinite, a) || return fill!(a, NaN), fill(NaN, size(a, 1))
        w, v = eigen(Hermitian(a, attrs[:lower] ? :L : :U))
        v, w
    end

# V̇ = V (F ∘ Vᴴ Ȧ V) with Fᵢⱼ = 1 / (wⱼ - wᵢ) off the diagonal and 0 on it, ẇ = diag Vᴴ Ȧ V (Giles
# 2008, 3.1), Ȧ being the Hermitian matrix that the tangent of the triangle that is read says. Equal
# eigenvalues make F infinite, as in JAX; the eigenvalues' own derivatives stay finite.
function jvp(op::HermitianEigen, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    v, w, ȧ = (Traced(b, y[1]), astype(Traced(b, y[2]), dtype(x[1])),
        hermitian(Traced(b, ẋ[1]), eqn[:lower]))
    δ = identity_like(v)
    F = 1 / (δ + as_rows(w, v) - as_columns(w, v)) - δ
    p = matmul(matmul(adjointed(v), ȧ), v)
    y, MaybeAtom[matmul(v, F * p).atom, diagonal(real_part(p)).atom]
end
real_part(x::Traced) = iscomplex(dtype(x)) ? real(x) : x
