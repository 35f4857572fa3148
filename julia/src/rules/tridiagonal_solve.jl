# tridiagonal_solve: X with A X = B for the A that has `diagonal`, `lower` below it (whose first
# number is not read) and `upper` above it (whose last is not). Linear in B.

@primitive TridiagonalSolve tridiagonal_solve

function infer(op::TridiagonalSolve, types, attrs)
    same_dtypes(op, types)
    d, b = types[2], types[4]
    check_matrices(op, b)
    all(t -> t.shape == d.shape, types[1:3]) && d.shape == b.shape[1:end-1] ||
        infer_error(op, "$(join(map(type_text, types), ", ")) do not fit")
    [b]
end

function evaluate(::TridiagonalSolve, x, attrs, types)
    lower, d, upper, b = x
    y, k = uninitialized(types[1]), size(d, 1)
    T = accumulator(eltype(b))
    diagonals = (reshape(v, k, prod(size(v)[2:end])) for v in (lower, d, upper))
    batches = (reshape(v, size(v, 1), k, prod(size(v)[3:end])) for v in (y, b))
    tridiagonal_batches!(batches..., diagonals..., T)
    [y]
end
function tridiagonal_batches!(y, b, lower, d, upper, T)
    isempty(b) && return
    for k in axes(b, 3)
        a = Tridiagonal(T.(lower[2:end, k]), T.(d[:, k]), T.(upper[1:end-1, k]))
        y[:, :, k] = permutedims(solved(a, T.(permutedims(b[:, :, k]))))
    end
end
# A singular matrix gives no finite solution, in JAX infinities and NaNs.
solved(a::Tridiagonal, b) =
    try
        LAPACK.gtsv!(a.dl, a.d, a.du, b)
    catch e
        e isa LAPACKException || e isa SingularException || rethrow()
        fill!(b, NaN)
    end

# Ẋ = A⁻¹ (Ḃ - Ȧ X)
function jvp(op::TridiagonalSolve, b, eqn, x, ẋ)
    y = only_one(emit!(b, op, x, eqn.attrs))
    ḃ = ẋ[4]
    if any(t -> t !== nothing, ẋ[1:3])
        ȧ = [Traced(b, instantiate(b, t, v)) for (t, v) in zip(ẋ[1:3], x[1:3])]
        ḃ = add_maybe(b, ḃ, (-tridiagonal_product(ȧ..., Traced(b, y))).atom)
    end
    [y], MaybeAtom[emit!(b, op, Atom[x[1:3]..., ḃ], eqn.attrs)[1]]
end

"The tridiagonal matrix times X."
function tridiagonal_product(lower, d, upper, x)
    n, rows = ndims(x), ndims(x) - 2
    per_row(v) = apply(:broadcast_in_dim, v; shape = shape(x), dims = collect(0:n-2))
    per_row(lower) * shifted(x, rows, 1) + per_row(d) * x + per_row(upper) * shifted(x, rows, -1)
end

"The elements moved k places along an axis, zeros coming in."
function shifted(x::Traced, axis, k)
    low, high, none = zeros(Int, ndims(x)), zeros(Int, ndims(x)), zeros(Int, ndims(x))
    low[axis+1], high[axis+1] = k, -k
    apply(:pad, x, 0; low = low, high = high, interior = none)
end

# Aᵀ has the diagonals exchanged, each number where its new column is.
function transpose(op::TridiagonalSolve, b, eqn, ȳ, x)
    lower, upper = Traced(b, x[1]), Traced(b, x[3])
    axis = ndims(lower) - 1
    exchanged = Atom[shifted(upper, axis, 1).atom, x[2], shifted(lower, axis, -1).atom, ȳ[1]]
    [nothing, nothing, nothing, emit!(b, op, exchanged, eqn.attrs)[1]]
end
