# lu: P A = L U by partial pivoting. LU holds U in its upper triangle and, below the diagonal, L,
# whose diagonal of ones is not stored; row i was exchanged with row pivots[i]; permutation lists
# the rows of P A as rows of A. All from 0.

@primitive LU lu
@primitive PivotsToPermutation lu_pivots_to_permutation(size)

haszerotangent(::PivotsToPermutation) = true

function infer(op::LU, types, attrs)
    x = types[1]
    check_matrices(op, x)
    m, n = x.shape[end-1:end]
    m == n || m isa Int && n isa Int ||
        infer_error(op, "takes square matrices or those of known size, got $(type_text(x))")
    [x, TensorType(Int32, Dim[batch_shape(x)..., shorter(m, n)]),
        TensorType(Int32, Dim[batch_shape(x)..., m])]
end

shorter(m, n) = m == n ? m : min(m, n)

# Newer Julias refuse infinities and NaN, unless they are told not to look for them.
const UNCHECKED =
    hasmethod(LAPACK.getrf!, Tuple{Matrix{Float64}}, (:check,)) ? (check = false,) : NamedTuple()

evaluate(::LU, x, attrs, types) =
    each_matrix(types, x[1]) do a
        isempty(a) && return a, Int32[], Int32.(0:size(a, 1)-1)
        factors, pivots, _ = LAPACK.getrf!(a; UNCHECKED...)
        factors, pivots .- 1, permutation_of(pivots .- 1, size(a, 1))
    end

"""
The order in which successive exchanges of row i and row pivots[i] leave `size` rows. As in JAX, a
negative pivot counts from the end; one that is out of range reads the nearest row and writes
none."""
function permutation_of(pivots, size)
    rows = collect(Int32, 0:size-1)
    for (i, pivot) in enumerate(pivots)
        p = pivot < 0 ? Int(pivot) + size : Int(pivot)
        q = clamp(p, 0, size - 1)
        row = rows[i]
        rows[i] = rows[q+1]
        p == q && (rows[p+1] = row)
    end
    rows
end

# With L⁻¹ P Ȧ U⁻¹ = F: L̇ = L tril(F, -1), U̇ = triu(F) U, as L⁻¹ L̇ is strictly lower and U̇ U⁻¹
# upper triangular (de Hoog, Anderssen, Lukas 2011, Differentiation of matrix functionals using
# triangular factorization). A tall L and a wide U are made square with the identity.
function jvp(op::LU, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    lu, permutation, ȧ = (Traced(b, v) for v in (y[1], y[3], ẋ[1]))
    m, n = shape(lu)[end-1:end]
    k = shorter(m, n)
    l, u = (lower_triangle(padded(part(lu, -1, 0, k), 0, m - k), -1),
        upper_triangle(padded(part(lu, -2, 0, k), n - k, 0)))
    l += identity_like(l)
    n == k || (u += astype(diagonal_from(u, k), dtype(u)))
    f = apply(:triangular_solve, l, rows_of(ȧ, permutation); left_side = true, lower = true,
        transpose_a = false, conjugate_a = false, unit_diagonal = true)
    f = solve(u, f)
    ẏ = matmul(l, lower_triangle(f, -1)) + matmul(upper_triangle(f), u)
    y, MaybeAtom[ẏ.atom, nothing, nothing]
end

"The matrices with so many rows and columns of zeros added at their ends."
function padded(x::Traced, rows, columns)
    rows == columns == 0 && return x
    none = zeros(Int, ndims(x))
    apply(:pad, x, 0; low = none, high = vcat(none[3:end], rows, columns), interior = none)
end

"Where a position is on the diagonal and not in the first k rows."
diagonal_from(x::Traced, k) =
    positions(x, :eq) & compare(:ge,
        Traced(x.builder, iota(x.builder, Int32, shape(x), ndims(x) - 2)), k)

"The rows of each matrix in the order of a permutation."
function rows_of(x::Traced, permutation::Traced)
    n = ndims(x)
    batch, index = (collect(0:n-3),
        apply(:reshape, permutation; shape = Dim[shape(permutation)..., 1]))
    apply(:gather, x, index; offset_dims = [n - 1], collapsed_slice_dims = [n - 2],
        start_index_map = [n - 2], operand_batching_dims = batch,
        start_indices_batching_dims = batch, slice_sizes = Dim[ones(Int, n - 1)..., shape(x)[end]],
        mode = :promise, fill_value = nothing,
        sorted = false, unique = true)
end

# ---- pivots alone

function infer(op::PivotsToPermutation, types, attrs)
    x, size = types[1], attrs[:size]
    x.dtype === Int32 && ndims(x) >= 1 || infer_error(op, "takes i32 pivots, got $(type_text(x))")
    size isa Int && x.shape[end] isa Int && x.shape[end] <= size ||
        infer_error(op, "$(type_text(x)) are too many pivots for $size rows")
    [TensorType(Int32, Dim[x.shape[1:end-1]..., size])]
end
function evaluate(::PivotsToPermutation, x, attrs, types)
    y = uninitialized(types[1])
    batches = prod(size(y)[2:end])
    pivots, orders = reshape(x[1], size(x[1], 1), batches), reshape(y, size(y, 1), batches)
    for k in 1:batches
        orders[:, k] = permutation_of(pivots[:, k], attrs[:size])
    end
    [y]
end
