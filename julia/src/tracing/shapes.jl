# Other shapes and orders of the same elements, and arrays put together. What shares an array's
# memory in Julia does so here: `reshape`, `vec`, `dropdims`, A' and transpose(A).

Base.reshape(x::TracedArray, n::Dims) = reshaped(x, n)
Base.reshape(x::TracedArray, n::Tuple{Vararg{Union{Int,Colon}}}) =
    reshaped(x, Base._reshape_uncolon(x, n))
Base.reshape(x::TracedArray, n::Union{Int,Colon}...) = reshape(x, n)
Base.vec(x::TracedArray) = reshaped(x, (length(x),))
Base.vec(x::TracedVector) = x
function reshaped(x::TracedArray, n::Dims)
    prod(n) == length(x) ||
        throw(DimensionMismatch("an array of size $(size(x)) cannot take the size $n"))
    n == size(x) && return x
    m = memory(x)
    # at once, since in a loop's first trip it would make that differ from the others
    m.value isa Var && isempty(m.pieces) && shape(m.value) != program_shape(n) &&
        reshaped_value!(m, program_shape(n))
    TracedArray{eltype(x),length(n)}(x.memory, n)
end
Base.dropdims(x::TracedArray; dims) =
    reshaped(x, Tuple(size(x, d) for d in 1:ndims(x) if !(d in dims)))

Base.permutedims(x::TracedMatrix) = permutedims(x, (2, 1))
Base.permutedims(x::TracedVector) = reshape(x, 1, length(x))
function Base.permutedims(x::TracedArray, perm)
    n = ndims(x)
    isperm(perm) && length(perm) == n || throw(ArgumentError("no valid permutation of dimensions"))
    # Axis k of the Program is dimension n - k.
    axes_ = Int[n - perm[n-k] for k in 0:n-1]
    traced_array(emit_here(:transpose, atom_here(x); perm = axes_))
end
LinearAlgebra.transpose(x::TracedMatrix) = mirror(LinearAlgebra.transpose, x, permutedims(x))
Base.adjoint(x::TracedMatrix) = mirror(adjoint, x, permutedims(conj(x)))

Base.reverse(x::TracedVector) = reversed(x, 1)
Base.reverse(x::TracedArray; dims = :) = reversed(x, dims isa Colon ? (1:ndims(x)) : dims)
reversed(x, dims) =
    traced_array(
        emit_here(:rev, atom_here(x); dims = sort!(Int[ndims(x) - d for d in Tuple(dims)])))
Base.circshift(x::TracedArray, shift::Real) = circularly_shifted(x, (shift,))
Base.circshift(x::TracedArray, shifts::Tuple{Vararg{Integer}}) = circularly_shifted(x, shifts)
function circularly_shifted(x, shifts)
    foldl(enumerate(shifts); init = copy(x)) do y, (d, s)
        n = size(x, d)
        k = mod(Int(s), n)
        k == 0 ? y : cat(selectdim(y, d, n-k+1:n), selectdim(y, d, 1:n-k); dims = d)
    end
end

# ---- put together

"Arrays, and numbers as arrays of one element, one after the other along a dimension."
function joined(::Type{S}, d::Int, parts) where {S}
    rank = max(d, maximum(map(ndims, parts)))
    arrays = map(parts) do x
        y = x isa Number ? filled_array(S(x), ntuple(_ -> 1, rank)) : as_eltype(S, traced(x))
        ndims(y) == rank ? y : reshape(y, ntuple(k -> size(x, k), rank))
    end
    sizes = map(y -> size(y)[1:end.!=d], map(y -> [size(y)...], arrays))
    outer(y) = Tuple(size(y, k) for k in 1:rank if k != d)
    all(y -> outer(y) == outer(arrays[1]), arrays) ||
        throw(DimensionMismatch("arrays of sizes $(join(map(size, parts), ", ")) put together"))
    length(arrays) == 1 && return copy(arrays[1])
    traced_array(emit_here(:concatenate, (atom_here(y) for y in arrays)...; dim = rank - d))
end
Base.typed_vcat(::Type{S}, x::AbstractVecOrMat...) where {S<:TracedNumber} = joined(S, 1, x)
Base.typed_hcat(::Type{S}, x::AbstractVecOrMat...) where {S<:TracedNumber} = joined(S, 2, x)
Base.vcat(x::TracedArray...) = joined(promote_type(map(eltype, x)...), 1, x)
Base.hcat(x::TracedArray...) = joined(promote_type(map(eltype, x)...), 2, x)
along_dims(d::Integer) = (Int(d),)
along_dims(::Val{d}) where {d} = along_dims(d)
along_dims(d) = Tuple(d)
Base._cat_t(dims, ::Type{S}, x...) where {S<:TracedNumber} =
    length(along_dims(dims)) == 1 ? joined(S, along_dims(dims)[1], x) :
    throw(ArgumentError("traced arrays are put together along one dimension"))
function Base.repeat(x::TracedArray, counts::Integer...)
    foldl(enumerate(counts); init = copy(x)) do y, (d, n)
        n == 1 ? y : joined(eltype(x), d, ntuple(_ -> y, n))
    end
end
