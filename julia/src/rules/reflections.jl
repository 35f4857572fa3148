# Values without derivatives, in JAX as here: hessenberg, schur and the product of Householder reflections.

@primitive Hessenberg hessenberg
@primitive Schur schur(vectors)
@primitive HouseholderProduct householder_product

const Underived = Union{Hessenberg,Schur,HouseholderProduct}
hasjvp(::Underived) = false
jvp(op::Underived, b, eqn, x, ẋ) = throw(UnsupportedPrimitive(string(name(op)), "has no derivative rule, in JAX neither", eqn.source))

# A = Q H Qᴴ with H zero below its first subdiagonal. There the result holds the reflections that make up Q, with their scales.
function infer(op::Hessenberg, types, attrs)
    x = types[1]
    check_square(op, x)
    n = x.shape[end]
    n isa Int && n > 0 || infer_error(op, "takes matrices of known size only, and not empty ones; got $(type_text(x))")
    [x, TensorType(x.dtype, Dim[batch_shape(x)..., n - 1])]
end
evaluate(::Hessenberg, x, attrs, types) = each_matrix(a -> LAPACK.gehrd!(1, size(a, 1), a), types, x[1])

# A = Z T Zᴴ with T upper triangular; of a real matrix, with blocks of two rows on the diagonal for complex eigenvalues.
function infer(op::Schur, types, attrs)
    check_square(op, types[1])
    fill(types[1], attrs[:vectors] ? 2 : 1)
end
evaluate(::Schur, x, attrs, types) = each_matrix(types, x[1]) do a
    isempty(a) && return fill(a, length(types))
    t, z = LAPACK.gees!(attrs[:vectors] ? 'V' : 'N', a)
    (t, z)[1:length(types)]
end

# The first columns of H₁ H₂ … with Hᵢ = I - scaleᵢ v vᴴ, v being 1 at row i, 0 above it, and column i of the operand below it.
function infer(op::HouseholderProduct, types, attrs)
    a, scales = types
    check_matrices(op, a)
    same_dtypes(op, types)
    ndims(scales) == ndims(a) - 1 && batch_shape(a) == scales.shape[1:end-1] || infer_error(op, "$(type_text(a)) and $(type_text(scales)) do not fit")
    m, n, k = a.shape[end-1], a.shape[end], scales.shape[end]
    all(d -> d isa Int, (m, n, k)) && m >= n >= k || infer_error(op, "needs rows ≥ columns ≥ scales, got $(type_text(a)) and $(type_text(scales))")
    [a]
end
function evaluate(::HouseholderProduct, x, attrs, types)
    a, scales = x
    y, columns = uninitialized(types[1]), reshape(scales, size(scales, 1), prod(size(scales)[2:end]))
    whole = reshape(y, size(y, 1) * size(y, 2), size(columns, 2))
    for k in 1:size(whole, 2)
        whole[:, k] = vec(permutedims(reflected(matrix(a, k), columns[:, k])))
    end
    [y]
end
reflected(a, scales) = isempty(a) ? a : isempty(scales) ? Matrix{eltype(a)}(I, size(a)...) : LAPACK.orgqr!(a, convert(Vector{eltype(a)}, scales))
