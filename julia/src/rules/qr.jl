# qr: Q with orthonormal columns and upper triangular R with Q R = A, by Householder reflections: Q is all of them (full_matrices) or as
# many columns as R needs. R's diagonal may have any sign, as in LAPACK.

@primitive OrthogonalTriangular qr(full_matrices)

function infer(op::OrthogonalTriangular, types, attrs)
    x = types[1]
    check_matrices(op, x)
    m, n = x.shape[end-1:end]
    m isa Int && n isa Int || attrs[:full_matrices] || infer_error(op, "takes matrices of known size only, got $(type_text(x))")
    k = attrs[:full_matrices] ? m : min(m, n)
    [TensorType(x.dtype, Dim[batch_shape(x)..., m, k]), TensorType(x.dtype, Dim[batch_shape(x)..., k, n])]
end

function evaluate(::OrthogonalTriangular, x, attrs, types)
    m, k = Int.(types[1].shape[end-1:end])
    each_matrix(types, x[1]) do a
        isempty(a) && return Matrix{eltype(a)}(I, m, k), zeros(eltype(a), k, size(a, 2))
        reflections, scales = LAPACK.geqrf!(a)
        q = zeros(eltype(a), m, k)
        columns = min(k, size(a, 2))
        q[:, 1:columns] = reflections[:, 1:columns]
        LAPACK.orgqr!(q, scales), triu(reflections[1:k, :])
    end
end

# For square or tall A with the thin Q: with D = Qᴴ Ȧ R⁻¹ and Ω its strictly lower part less that part's adjoint, plus i Im diag D, which is the
# antihermitian part that keeps Ṙ triangular with real diagonal: Q̇ = Ȧ R⁻¹ + Q (Ω - D), Ṙ = (D - Ω) R (Townsend, Differentiating the QR
# decomposition). For wide A = [A₁ A₂], Q R₁ = A₁ is square, and R₂ = Qᴴ A₂.
function jvp(op::OrthogonalTriangular, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    q, r, a, ȧ = (Traced(b, v) for v in (y..., x[1], ẋ[1]))
    m, n = shape(a)[end-1:end]
    if m isa Int && n isa Int && m < n
        q̇, ṙ₁ = thin_qr_tangent(q, part(r, -1, 0, m), part(ȧ, -1, 0, m))
        ṙ₂ = matmul(adjointed(q̇), part(a, -1, m, n)) + matmul(adjointed(q), part(ȧ, -1, m, n))
        return y, MaybeAtom[q̇.atom, apply(:concatenate, ṙ₁, ṙ₂; dim = ndims(a) - 1).atom]
    end
    eqn[:full_matrices] && m != n &&
        throw(UnsupportedPrimitive("qr", "has no derivative for the full Q of tall matrices; use full_matrices=False", eqn.source))
    y, MaybeAtom[v.atom for v in thin_qr_tangent(q, r, ȧ)]
end

function thin_qr_tangent(q, r, ȧ)
    ȧr⁻¹ = solve(r, ȧ)
    d = matmul(adjointed(q), ȧr⁻¹)
    below = lower_triangle(d, -1)
    Ω = below - adjointed(below)
    iscomplex(dtype(d)) && (Ω += where_(positions(d, :eq), d - astype(real(d), dtype(d)), 0))
    matmul(q, Ω - d) + ȧr⁻¹, matmul(d - Ω, r)
end
