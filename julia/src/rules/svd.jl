# svd: singular values s, descending, and with compute_uv orthonormal columns U and rows Vᴴ with U
# diag(s) Vᴴ = A; square U and Vᴴ with full_matrices. U and V are fixed up to common phases.

@primitive SingularValues svd(full_matrices, compute_uv)

function infer(op::SingularValues, types, attrs)
    x = types[1]
    check_matrices(op, x)
    m, n = x.shape[end-1:end]
    m isa Int && n isa Int ||
        infer_error(op, "takes matrices of known size only, got $(type_text(x))")
    batch, k, full = batch_shape(x), min(m, n), attrs[:full_matrices]
    s = TensorType(real_dtype(x.dtype), Dim[batch..., k])
    attrs[:compute_uv] || return [s]
    [s, TensorType(x.dtype, Dim[batch..., m, full ? m : k]),
        TensorType(x.dtype, Dim[batch..., full ? n : k, n])]
end

evaluate(::SingularValues, x, attrs, types) =
    each_matrix(types, x[1]) do a
        m, n = size(a)
        full, k = attrs[:full_matrices], min(m, n)
        rows, columns = full ? (m, n) : (k, k)
        isempty(a) && return (zeros(real(eltype(a)), 0), Matrix{eltype(a)}(I, m, rows),
            Matrix{eltype(a)}(I, columns, n))
        all(isfinite, a) || return (fill(NaN, k), fill!(similar(a, m, rows), NaN),
            fill!(similar(a, columns, n), NaN))
        u, s, vᴴ = LAPACK.gesdd!(attrs[:compute_uv] ? (full ? 'A' : 'S') : 'N', a)
        s, u, vᴴ
    end

# With P = Uᴴ Ȧ V and Fᵢⱼ = 1 / (sⱼ² - sᵢ²) off the diagonal, 0 on it: ṡ = Re diag P, U̇ = U (F ∘ (P
# S + S Pᴴ) + ½ diag((P - Pᴴ) / s)), V̇ = V (F ∘ (S P + Pᴴ S)), plus what leaves the span: (1 - U
# Uᴴ) Ȧ V / s for tall A, (1 - V Vᴴ) Ȧᴴ U / s for wide (Giles 2008, 3.2; the diagonal, nonzero for
# complex A only, is in Wan and Zhang 2019). A zero s gives no diagonal term; equal ones make F
# infinite, as in JAX.
function jvp(op::SingularValues, b, eqn, x, ẋ)
    m, n = shape(x[1])[end-1:end]
    eqn[:compute_uv] && eqn[:full_matrices] && m != n &&
        throw(
            UnsupportedPrimitive("svd",
                "has no derivative for full_matrices; use full_matrices=False", eqn.source)
        )
    y = emits(b, :svd, x; full_matrices = false, compute_uv = true)
    (σ, u, vᴴ), ȧ = (Traced(b, v) for v in y), Traced(b, ẋ[1])
    v, T = adjointed(vᴴ), dtype(ȧ)
    p = matmul(matmul(adjointed(u), ȧ), v)
    ṡ = diagonal(real_part(p))
    eqn[:compute_uv] || return y[1:1], MaybeAtom[ṡ.atom]

    sᵢ, sⱼ = as_columns(σ, p), as_rows(σ, p)
    δ = astype(positions(p, :eq), dtype(σ))
    F = astype(1 / ((sⱼ + sᵢ) * (sⱼ - sᵢ) + δ) - δ, T)
    zero_s = astype(compare(:eq, sⱼ, 0), dtype(σ))
    s⁻¹ = where_(positions(p, :eq), 1 / (sⱼ + zero_s) - zero_s, 0)
    ps, sp = p * astype(sⱼ, T), astype(sᵢ, T) * p
    u̇ = matmul(u, F * (ps + adjointed(ps)) + (p - adjointed(p)) / 2 * astype(s⁻¹, T))
    v̇ = matmul(v, F * (sp + adjointed(sp)))
    outside(w, z) = (z - matmul(w, matmul(adjointed(w), z))) / as_rows(astype(σ, T), z)
    m > n && (u̇ += outside(u, matmul(ȧ, v)))
    n > m && (v̇ += outside(v, matmul(adjointed(ȧ), u)))
    y, MaybeAtom[ṡ.atom, u̇.atom, adjointed(v̇).atom]
end
