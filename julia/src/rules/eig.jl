# eig: eigenvalues w and vectors of matrices that need not be symmetric: A V = V diag(w), and Uᴴ A =
# diag(w) Uᴴ for the left ones. Columns have norm 1 and their component of largest magnitude is
# real, as LAPACK's are.

@primitive Eig eig(left, right, vector_derivatives)

function infer(op::Eig, types, attrs)
    x = types[1]
    check_square(op, x)
    T = complex_dtype(x.dtype)
    vectors = TensorType(T, x.shape)
    [TensorType(T, x.shape[1:end-1]), (vectors for side in (:left, :right) if attrs[side])...]
end

evaluate(::Eig, x, attrs, types) =
    each_matrix(types, x[1]) do a
        isempty(a) && return nothing_of(a, attrs)
        w, u, v = eigensystem(a, attrs[:left] ? 'V' : 'N', attrs[:right] ? 'V' : 'N')
        (w, (vectors for (vectors, side) in ((u, :left), (v, :right)) if attrs[side])...)
    end
nothing_of(a, attrs) =
    (complex(a[:, 1]), (complex(a) for side in (:left, :right) if attrs[side])...)

eigensystem(a::Matrix{<:Complex}, left, right) = LAPACK.geev!(left, right, a)
function eigensystem(a::Matrix{<:Real}, left, right)
    re, im_, u, v = LAPACK.geev!(left, right, a)
    complex.(re, im_), unpacked(im_, u), unpacked(im_, v)
end
"""
Of a complex pair of eigenvalues, which come in turn, LAPACK gives the real and the imaginary part
of the first one's vector."""
function unpacked(im_, vectors)
    isempty(vectors) && return complex(vectors)
    z = complex(vectors)
    for j in findall(>(0), im_)
        z[:, j] = complex.(vectors[:, j], vectors[:, j+1])
        z[:, j+1] = conj(z[:, j])
    end
    z
end

# With P = V⁻¹ Ȧ V: ẇ = diag P (Giles 2008). Vectors: the part of V̇ outside their own direction is
# V (F ∘ P), Fᵢⱼ = 1/(wⱼ - wᵢ), and the two normalisations fix the rest (as JAX does it, jax issue
# 2748); only where the user has opted in, because eigenvalues must be distinct.
function jvp(op::Eig, b, eqn, x, ẋ)
    left, right = eqn[:left], eqn[:right]
    (left || right) && !eqn[:vector_derivatives] &&
        throw(
            UnsupportedPrimitive("eig",
                "eigenvectors of matrices that are not symmetric have derivatives only where " *
                "eigenvalues are distinct; " *
                "enable_eigvec_derivs=True says that they are", eqn.source)
        )
    y = emit!(b, op, x, merge(eqn.attrs, Attributes(:right => true)))
    w, v, ȧ = Traced(b, y[1]), Traced(b, y[end]), astype(Traced(b, ẋ[1]), dtype(y[1]))
    left || right || return y[1:1], MaybeAtom[diagonal(matmul(inverse_times(v, ȧ), v)).atom]
    ẇ, v̇ = eigenvector_tangent(w, v, ȧ)
    tangents = Atom[ẇ.atom]
    left && push!(tangents, eigenvector_tangent(conj(w), Traced(b, y[2]), adjointed(ȧ))[2].atom)
    right && push!(tangents, v̇.atom)
    y[1:length(tangents)], Vector{MaybeAtom}(tangents)
end

function eigenvector_tangent(w, v, ȧ)
    p = matmul(inverse_times(v, ȧ), v)
    identity = identity_like(p)
    f = 1 / (identity + spread(w, p, ndims(p) - 1) - spread(w, p, ndims(p) - 2)) - identity
    u = matmul(v, f * p)
    row = apply(:argmax, abs(v); axis = ndims(v) - 2, dtype = :i32)
    largest =
        astype(
            compare(:eq, Traced(v.builder, iota(v.builder, Int32, shape(v), ndims(v) - 2)),
                spread(row, v, ndims(v) - 1)), dtype(v))
    sums(x) = apply(:reduce_sum, x; axes = [ndims(x) - 2])
    own = apply(:complex, -real(sums(conj(v) * u)),
        -(imag(sums(largest * u)) / real(sums(largest * v))))
    diagonal(p), u + v * spread(own, v, ndims(v) - 1)
end

"A⁻¹ B by an LU factorization."
function inverse_times(a::Traced, b::Traced)
    lu, _, permutation = (Traced(a.builder, v) for v in emits(a.builder, :lu, Atom[a.atom]))
    x = apply(:triangular_solve, lu, rows_of(b, permutation); left_side = true, lower = true,
        transpose_a = false, conjugate_a = false, unit_diagonal = true)
    solve(lu, x; left_side = true)
end
