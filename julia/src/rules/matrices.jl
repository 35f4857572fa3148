# Batches of matrices in the last two axes: how evaluators see them, and what rules of
# linear algebra emit.

"Matrix k of a batch, as the Program sees it; half precision becomes single, which LAPACK has."
matrix(x::Array, k) =
    convert(Matrix{accumulator(eltype(x))},
        permutedims(reshape(x, size(x, 1), size(x, 2), prod(size(x)[3:end]))[:, :, k]))

"`f` of each matrix (or pair of matrices) of a batch: a tuple of matrices and vectors."
function each_matrix(f, types, x...)
    y = Any[uninitialized(t) for t in types]
    all(isempty, y) && return y
    batches = size(x[1])[3:end]
    for k in 1:prod(batches)
        for (whole, part) in zip(y, f((matrix(v, k) for v in x)...))
            reshape(whole, :, prod(batches))[:, k] =
                vec(part isa AbstractMatrix ? permutedims(part) : part)
        end
    end
    y
end

batch_shape(x::TensorType) = x.shape[1:end-2]
function check_matrices(op, x::TensorType)
    isinexact(x.dtype) || infer_error(op, "does not take $(type_text(x))")
    ndims(x) >= 2 || infer_error(op, "$(type_text(x)) holds no matrices")
end
function check_square(op, x::TensorType)
    check_matrices(op, x)
    x.shape[end] == x.shape[end-1] ||
        infer_error(op, "the matrices of $(type_text(x)) are not square")
end

Base.ndims(x::Traced) = ndims(aval(x))

"Products of the matrices of two batches."
function matmul(x::Traced, y::Traced)
    n = ndims(x)
    batch = collect(0:n-3)
    apply(:dot_general, x, y; lhs_contract = [n - 1], rhs_contract = [n - 2], lhs_batch = batch,
        rhs_batch = batch, dtype = dtype_name(dtype(x)), precision = :highest)
end

transposed(x::Traced) = (n = ndims(x); apply(:transpose, x; perm = vcat(0:n-3, n - 1, n - 2)))
conjugated(x::Traced) = iscomplex(dtype(x)) ? conj(x) : x
adjointed(x::Traced) = conjugated(transposed(x))
"""
Where row `op` column + k holds for the positions of each matrix: `positions(x, :ge)` is
the lower triangle."""
function positions(x::Traced, op::Symbol, k = 0)
    index(axis) = Traced(x.builder, iota(x.builder, Int32, shape(x), axis))
    column = index(ndims(x) - 1)
    compare(op, index(ndims(x) - 2), k == 0 ? column : column + k)
end
lower_triangle(x::Traced, k = 0) = where_(positions(x, :ge, -k), x, 0)
upper_triangle(x::Traced, k = 0) = where_(positions(x, :le, -k), x, 0)
"""
The Hermitian matrix of which a triangle is given: the other is its adjoint, and the diagonal's
imaginary part does not count."""
function hermitian(x::Traced, lower::Bool)
    h = where_(positions(x, lower ? :ge : :le), x, adjointed(x))
    iscomplex(dtype(x)) ? where_(positions(x, :eq), astype(real(x), dtype(x)), h) : h
end
identity_like(x::Traced) = astype(positions(x, :eq), dtype(x))
diagonal(x::Traced) = apply(:reduce_sum, where_(positions(x, :eq), x, 0); axes = [ndims(x) - 1])

"A batch of vectors as the rows (all equal) or columns of matrices like those of `x`."
spread(v::Traced, x::Traced, axis) =
    apply(:broadcast_in_dim, v; shape = shape(x), dims = vcat(0:ndims(x)-3, axis))
as_rows(v::Traced, x::Traced) = spread(v, x, ndims(x) - 1)
as_columns(v::Traced, x::Traced) = spread(v, x, ndims(x) - 2)

"Rows or columns (axis -2 or -1) from … to of each matrix."
part(x::Traced, axis, from, to) =
    Traced(x.builder, slice_axis(x.builder, x.atom, ndims(x) + axis, from, to))
