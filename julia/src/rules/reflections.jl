# Values without derivatives, in JAX as here: schur, and Householder reflections H = I - scale v vᴴ,
# with v 1 at some place and 0 above it. LAPACK keeps what is below that place under a result's
# diagonal.

@primitive Hessenberg hessenberg
@primitive Schur schur(vectors)
@primitive TridiagonalForm tridiagonal(lower)
@primitive Reflections geqrf
@primitive PivotedReflections geqp3
@primitive HouseholderProduct householder_product
@primitive ReflectedProduct ormqr(left, transpose)

const Underived =
    Union{
        Hessenberg,
        Schur,
        TridiagonalForm,
        Reflections,
        PivotedReflections,
        HouseholderProduct,
        ReflectedProduct
    }
hasjvp(::Underived) = false
jvp(op::Underived, b, eqn, x, ẋ) =
    throw(
        UnsupportedPrimitive(string(name(op)), "has no derivative rule, in JAX neither",
            eqn.source)
    )

# A = Q H Qᴴ with H zero below its first subdiagonal. There the result holds the reflections that
# make up Q, with their scales.
function infer(op::Hessenberg, types, attrs)
    x = types[1]
    [x, TensorType(x.dtype, Dim[batch_shape(x)..., known_order(op, x)-1])]
end
"The order of square matrices that are not empty."
function known_order(op, x)
    check_square(op, x)
    n = x.shape[end]
    n isa Int && n > 0 ||
        infer_error(op,
            "takes matrices of known size only, and not empty ones; got $(type_text(x))")
    n
end
evaluate(::Hessenberg, x, attrs, types) =
    each_matrix(a -> LAPACK.gehrd!(1, size(a, 1), a), types, x[1])

# A = Q T Qᴴ with T tridiagonal, for a hermitian A of which one triangle is read: the reflections,
# T's diagonal and the one next to it, the scales.
function infer(op::TridiagonalForm, types, attrs)
    x = types[1]
    n, R = known_order(op, x), real_dtype(x.dtype)
    vector(T, size) = TensorType(T, Dim[batch_shape(x)..., size])
    [x, vector(R, n), vector(R, n - 1), vector(x.dtype, n - 1)]
end
evaluate(::TridiagonalForm, x, attrs, types) =
    each_matrix(types, x[1]) do a
        n, R = size(a, 1), real(eltype(a))
        all(isfinite, a) ||
            return map(v -> fill!(v, NaN),
                (a, zeros(R, n), zeros(R, n - 1), zeros(eltype(a), n - 1)))
        reflections, scales, d, e = LAPACK.hetrd!(attrs[:lower] ? 'L' : 'U', a)
        reflections, d, e, scales
    end

# Q R = A as R in the upper triangle, with the reflections whose product is Q under it.
function infer(op::Reflections, types, attrs)
    x = types[1]
    [x, TensorType(x.dtype, Dim[batch_shape(x)..., reflection_count(op, x)])]
end
function reflection_count(op, x)
    check_matrices(op, x)
    m, n = x.shape[end-1:end]
    m isa Int && n isa Int ||
        infer_error(op, "takes matrices of known size only, got $(type_text(x))")
    min(m, n)
end
evaluate(::Reflections, x, attrs, types) =
    each_matrix(a -> isempty(a) ? (a, similar(a, 0)) : LAPACK.geqrf!(a), types, x[1])

# The same with columns exchanged so that R's diagonal falls; those whose entry in the second
# operand is not 0 come first. Orders are from 1.
function infer(op::PivotedReflections, types, attrs)
    x, order = types
    k = reflection_count(op, x)
    order.dtype === Int32 && order.shape == Dim[batch_shape(x)..., x.shape[end]] ||
        infer_error(op, "$(type_text(x)) and $(type_text(order)) do not fit")
    [x, order, TensorType(x.dtype, Dim[batch_shape(x)..., k])]
end
function evaluate(::PivotedReflections, x, attrs, types)
    a, order = x
    columns = reshape(order, size(order, 1), prod(size(order)[2:end]))
    k = 0
    each_matrix(types, a) do a
        given = columns[:, k+=1]
        isempty(a) && return a, given, similar(a, 0)
        reflections, scales, found = LAPACK.geqp3!(a, convert(Vector{LinearAlgebra.BlasInt}, given))
        reflections, found, scales
    end
end

# A = Z T Zᴴ with T upper triangular; of a real matrix, with blocks of two rows on the diagonal for
# complex eigenvalues.
function infer(op::Schur, types, attrs)
    check_square(op, types[1])
    fill(types[1], attrs[:vectors] ? 2 : 1)
end
evaluate(::Schur, x, attrs, types) =
    each_matrix(types, x[1]) do a
        isempty(a) && return fill(a, length(types))
        t, z = LAPACK.gees!(attrs[:vectors] ? 'V' : 'N', a)
        (t, z)[1:length(types)]
    end

# The first columns of H₁ H₂ …, whose v are 1 at row i and column i of the operand below it.
function infer(op::HouseholderProduct, types, attrs)
    a, scales = types
    check_matrices(op, a)
    same_dtypes(op, types)
    ndims(scales) == ndims(a) - 1 && batch_shape(a) == scales.shape[1:end-1] ||
        infer_error(op, "$(type_text(a)) and $(type_text(scales)) do not fit")
    m, n, k = a.shape[end-1], a.shape[end], scales.shape[end]
    all(d -> d isa Int, (m, n, k)) && m >= n >= k ||
        infer_error(op,
            "needs rows ≥ columns ≥ scales, got $(type_text(a)) and $(type_text(scales))")
    [a]
end
evaluate(::HouseholderProduct, x, attrs, types) = each_matrix_with_scales(reflected, types, x...)
reflected(a, scales) =
    isempty(a) ? a : isempty(scales) ? Matrix{eltype(a)}(I, size(a)...) : LAPACK.orgqr!(a, scales)

"As `each_matrix`, for one result, with a vector of scales for each matrix, the second operand."
function each_matrix_with_scales(f, types, a, scales, others...)
    y, columns = (uninitialized(types[1]),
        reshape(scales, size(scales, 1), prod(size(scales)[2:end])))
    isempty(y) && return [y]
    whole = reshape(y, size(y, 1) * size(y, 2), size(columns, 2))
    for k in 1:size(whole, 2)
        parts = map(v -> matrix(v, k), (a, others...))
        whole[:, k] =
            vec(
                permutedims(
                    f(parts[1], convert(Vector{eltype(parts[1])}, columns[:, k]),
                        parts[2:end]...)
                )
            )
    end
    [y]
end

# Q C or C Q, or these with Qᴴ, for the Q of order m that is the product of these reflections.
function infer(op::ReflectedProduct, types, attrs)
    a, scales, c = types
    foreach(t -> check_matrices(op, t), (a, c))
    same_dtypes(op, types)
    attrs[:transpose] isa Bool || infer_error(op, "transpose is true or false")
    fits =
        batch_shape(a) == batch_shape(c) == scales.shape[1:end-1] &&
        c.shape[end-(attrs[:left] ? 1 : 0)] == a.shape[end-1]
    (m, n), k = a.shape[end-1:end], scales.shape[end]
    fits && all(d -> d isa Int, (m, n, k)) && k <= min(m, n) ||
        infer_error(op, "$(join(map(type_text, types), ", ")) do not fit")
    [c]
end
function evaluate(::ReflectedProduct, x, attrs, types)
    each_matrix_with_scales(types, x...) do a, scales, c
        isempty(scales) && return c
        LAPACK.ormqr!(attrs[:left] ? 'L' : 'R',
            !attrs[:transpose] ? 'N' :
            eltype(a) <: Complex ? 'C' :
            'T', a[:, 1:length(scales)], scales, c)
    end
end
