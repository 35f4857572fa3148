# qr: Q with orthonormal columns and upper triangular R with Q R = A, by Householder reflections: Q
# is all of them (full_matrices) or as many columns as R needs. R's diagonal may have any sign, as
# in LAPACK. With pivoting Q R is A with its columns in the order of a third result (from 0), in
# which R's diagonal falls.

@primitive OrthogonalTriangular qr(pivoting, full_matrices)

function infer(op::OrthogonalTriangular, types, attrs)
    x = types[1]
    check_matrices(op, x)
    m, n = x.shape[end-1:end]
    m isa Int && n isa Int || attrs[:full_matrices] ||
        infer_error(op, "takes matrices of known size only, got $(type_text(x))")
    batch, k = batch_shape(x), attrs[:full_matrices] ? m : min(m, n)
    q, r = TensorType(x.dtype, Dim[batch..., m, k]), TensorType(x.dtype, Dim[batch..., k, n])
    attrs[:pivoting] ? [q, r, TensorType(Int32, Dim[batch..., n])] : [q, r]
end

function evaluate(::OrthogonalTriangular, x, attrs, types)
    m, k = Int.(types[1].shape[end-1:end])
    each_matrix(types, x[1]) do a
        n = size(a, 2)
        isempty(a) && return Matrix{eltype(a)}(I, m, k), zeros(eltype(a), k, n), zeros(Int32, n)
        reflections, scales, order =
            attrs[:pivoting] ? LAPACK.geqp3!(a) :
            (LAPACK.geqrf!(a)..., 1:n)
        q = zeros(eltype(a), m, k)
        columns = min(k, n)
        q[:, 1:columns] = reflections[:, 1:columns]
        LAPACK.orgqr!(q, scales), triu(reflections[1:k, :]), order .- 1
    end
end

# For square or tall A with the thin Q: with D = Qᴴ Ȧ R⁻¹ and Ω its strictly lower part less that
# part's adjoint, plus i Im diag D, which is the antihermitian part that keeps Ṙ triangular with
# real diagonal: Q̇ = Ȧ R⁻¹ + Q (Ω - D), Ṙ = (D - Ω) R (Townsend, Differentiating the QR
# decomposition). For wide A = [A₁ A₂], Q R₁ = A₁ is square, and R₂ = Qᴴ A₂. Pivots are locally
# constant: A is taken in their order.
function jvp(op::OrthogonalTriangular, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    q, r, a, ȧ = (Traced(b, v) for v in (y[1], y[2], x[1], ẋ[1]))
    if eqn[:pivoting]
        a, ȧ = (transposed(rows_of(transposed(v), Traced(b, y[3]))) for v in (a, ȧ))
    end
    y, MaybeAtom[(v.atom for v in qr_tangents(q, r, a, ȧ, eqn))..., (nothing for _ in y[3:end])...]
end

function qr_tangents(q, r, a, ȧ, eqn)
    m, n = shape(a)[end-1:end]
    m === n && return thin_qr_tangent(q, r, ȧ)
    m isa Int && n isa Int ||
        throw(
            UnsupportedPrimitive("qr", "has derivatives for matrices of known size only",
                eqn.source)
        )
    if m < n
        q̇, ṙ₁ = thin_qr_tangent(q, part(r, -1, 0, m), part(ȧ, -1, 0, m))
        ṙ₂ = matmul(adjointed(q̇), part(a, -1, m, n)) + matmul(adjointed(q), part(ȧ, -1, m, n))
        return q̇, apply(:concatenate, ṙ₁, ṙ₂; dim = ndims(a) - 1)
    end
    eqn[:full_matrices] || return thin_qr_tangent(q, r, ȧ)
    q̇, ṙ = thin_qr_tangent(part(q, -1, 0, n), part(r, -2, 0, n), ȧ)
    apply(:concatenate, q̇, complement_tangent(q, q̇, n); dim = ndims(a) - 1), padded(ṙ, m - n, 0)
end

function thin_qr_tangent(q, r, ȧ)
    ȧr⁻¹ = solve(r, ȧ)
    d = matmul(adjointed(q), ȧr⁻¹)
    below = lower_triangle(d, -1)
    Ω = below - adjointed(below)
    iscomplex(dtype(d)) && (Ω += where_(positions(d, :eq), d - astype(real(d), dtype(d)), 0))
    matmul(q, Ω - d) + ȧr⁻¹, matmul(d - Ω, r)
end

# The other columns of a product of n reflections Q = I - W T Wᴴ are fixed by its first n: with
# blocks of n and m - n rows and columns and Z = Q₂₁ (Q₁₁ - I)⁻¹, Q̇₂ = Q̇₁ Zᴴ - (Q₁ + Q₂ Z) (Q̇₂₁ -
# Z Q̇₁₁)ᴴ (arXiv 2409.13374, equations 32 and 33).
function complement_tangent(q, q̇₁, n)
    m = shape(q)[end]
    q₁, q₂ = part(q, -1, 0, n), part(q, -1, n, m)
    q₁₁ = part(q₁, -2, 0, n)
    zᴴ = inverse_times(adjointed(q₁₁ - identity_like(q₁₁)), adjointed(part(q₁, -2, n, m)))
    z = adjointed(zᴴ)
    matmul(q̇₁, zᴴ) -
    matmul(q₁ + matmul(q₂, z), adjointed(part(q̇₁, -2, n, m) - matmul(z, part(q̇₁, -2, 0, n))))
end
