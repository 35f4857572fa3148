# Traced arrays. A Julia array of size (m, n) is a Program's array of shape (n, m): the same memory.

"""
An array of a trace. It may be written to: `value` is then replaced. Elements, or slices along the
last dimension, that were written one by one since are `pieces` of `width` elements each, by the
index in memory of their first, so that reading them back takes no equation. A literal `value` fills
the array.
"""
mutable struct TracedArray{S<:TracedNumber,N} <: AbstractArray{S,N}
    value::Atom
    pieces::Dict{Int,Atom}
    width::Int
    recording::Union{OpenTrace,Nothing}
    size::NTuple{N,Int}
end
const TracedVector{S<:TracedNumber} = TracedArray{S,1}
const TracedMatrix{S<:TracedNumber} = TracedArray{S,2}
# What linear algebra takes. Other wrappers than views have methods of their own.
const VectorOfTraced =
    Union{TracedVector,SubArray{<:TracedNumber,1},Vector{<:TracedNumber}}
const MatrixOfTraced =
    Union{TracedMatrix,SubArray{<:TracedNumber,2},Matrix{<:TracedNumber}}
"Any array of traced numbers: traced, a view or another wrapper of one, or Julia's own."
const ArrayOfTraced{N} = AbstractArray{<:TracedNumber,N}

TracedArray(a::Atom, n::NTuple{N,Int}, r, pieces = Dict{Int,Atom}(), width = 1) where {N} =
    TracedArray{traced_type(dtype(a)),N}(a, pieces, width, r, n)
"The array that an atom of the innermost trace is."
traced_array(a::Atom) = TracedArray(a, julia_size(aval(a)), open_recording())
"An array of that size filled with a number."
filled_array(x::TracedNumber, n::Dims) =
    isknown(x) ? TracedArray(x.atom, n, open_recording()) :
    traced_array(emit_here(:broadcast_in_dim, atom_here(x); shape = program_shape(n), dims = Int[]))
program_shape(n::Dims) = Dim[reverse(n)...]

Base.size(x::TracedArray) = x.size
Base.IndexStyle(::Type{<:TracedArray}) = IndexLinear()
Base.show(io::IO, x::TracedArray) =
    print(io, "traced ", plain_type(eltype(x)), " array of size ", size(x))
Base.show(io::IO, ::MIME"text/plain", x::TracedArray) = show(io, x)
dtype(x::ArrayOfTraced) = plain_type(eltype(x))

# ---- their atoms

"The atom of an array in the innermost trace: of traced arrays, of other arrays of numbers."
function atom_here(x::TracedArray)
    r = recording()
    r === nothing && open_recording()
    atom_in(r, whole!(x), x.recording)
end
atom_here(x::AbstractArray) = captured_array(open_recording(), x)
atom_here(x::Number) = Literal(x)
atom_here(x::ArrayOfTraced) = atom_here(traced(x))

"The atom of all elements, in the array's own trace."
function whole!(x::TracedArray)
    n = program_shape(size(x))
    isempty(x.pieces) || write_pieces!(x, n)
    if x.value isa Literal && !isempty(n)
        x.value = emit_for(x, :broadcast_in_dim, Atom[x.value]; shape = n, dims = Int[])
    end
    x.value
end
emit_for(x::TracedArray, op, operands; attrs...) =
    only_one(emit_here(primitive(op), operands, as_attributes(values(attrs)), x.recording))

"""
Joins what was written piece by piece with what stays, in the order of memory. Loops that write an
array so roll up again, and `merge_pieces` then joins what they have written by one equation."""
function write_pieces!(x::TracedArray, n)
    memory = x.value isa Literal || isempty(n) ? x.value :
             emit_for(x, :reshape, Atom[x.value]; shape = Dim[length(x)])
    joined, at = Atom[], 1
    function keep!(to)
        to >= at && push!(joined, kept_elements(x, memory, at, to))
        at = to + 1
    end
    for k in sort!(collect(keys(x.pieces)))
        keep!(k - 1)
        push!(joined, piece_in_memory(x, x.pieces[k], x.width))
        at = k + x.width
    end
    keep!(length(x))
    y = length(joined) == 1 ? joined[1] : emit_for(x, :concatenate, joined; dim = 0)
    empty!(x.pieces)
    x.value = emit_for(x, :reshape, Atom[y]; shape = n)
end
kept_elements(x, memory::Literal, from, to) =
    emit_for(x, :broadcast_in_dim, Atom[memory]; shape = Dim[to-from+1], dims = Int[])
kept_elements(x, memory::Var, from, to) =
    emit_for(x, :slice, Atom[memory]; start = Dim[from-1], limit = Dim[to], strides = [1])
piece_in_memory(x, a::Literal, width) =
    emit_for(x, :broadcast_in_dim, Atom[a]; shape = Dim[width], dims = Int[])
piece_in_memory(x, a::Var, width) = emit_for(x, :reshape, Atom[a]; shape = Dim[width])

"The piece that an array gets at an index in memory; pieces are of one width at a time."
function write_piece!(x::TracedArray, at::Int, a::Atom, width::Int)
    isempty(x.pieces) || x.width == width || whole!(x)
    x.width, x.pieces[at] = width, a
    x
end
"The piece that has the element at an index in memory, and where it begins; or nothing."
function piece_at(x::TracedArray, k::Int)
    isempty(x.pieces) && return nothing
    from = k - mod(k - 1, x.width)
    haskey(x.pieces, from) ? (x.pieces[from], from) : nothing
end

# ---- what counts as one

"The TracedArray of any array of traced numbers, or of numbers."
traced(x::TracedArray) = x
traced(x::AbstractArray) = traced_array(atom_here(x))
traced(x::SubArray{<:TracedNumber}) = traced(parent(x))[parentindices(x)...]
traced(x::Base.ReshapedArray{<:TracedNumber}) = reshape(traced(parent(x)), size(x))
traced(x::PermutedDimsArray{<:TracedNumber}) = permutedims(traced(parent(x)), permutation(x))
permutation(::PermutedDimsArray{T,N,perm}) where {T,N,perm} = perm
traced(x::Adjoint{<:TracedNumber}) = flipped(conj(traced(parent(x))))
traced(x::Transpose{<:TracedNumber}) = flipped(traced(parent(x)))
"The elements of any other array of traced numbers, put together."
function traced(x::ArrayOfTraced)
    y = filled_array(zero(eltype(x)), size(x))
    for (k, v) in enumerate(x)
        y.pieces[k] = atom_here(v)
    end
    y
end
flipped(x::TracedVector) = reshape(x, 1, length(x))
flipped(x::TracedMatrix) = permutedims(x)

Base.convert(::Type{T}, x::TracedArray) where {T<:TracedArray} = x isa T ? x : T(x)
Base.copy(x::TracedArray) =
    TracedArray(x.value, size(x), x.recording, copy(x.pieces), x.width)
Base.collect(x::TracedArray) = copy(x)
Base.Array(x::TracedArray) = copy(x)
Base.deepcopy_internal(x::TracedArray, ::IdDict) = copy(x)

# Arrays made for traced elements are traced.
Base.similar(x::TracedArray, ::Type{T}, n::Dims) where {T} = Array{T}(undef, n)
Base.similar(::ArrayOfTraced, ::Type{S}, n::Dims) where {S<:TracedNumber} =
    filled_array(zero(S), n)
Base.similar(::TracedArray, ::Type{S}, n::Dims) where {S<:TracedNumber} =
    filled_array(zero(S), n)
Base.zeros(::Type{S}, n::Dims) where {S<:TracedNumber} = filled_array(zero(S), n)
Base.ones(::Type{S}, n::Dims) where {S<:TracedNumber} = filled_array(one(S), n)
Base.zeros(::Type{S}, n::Integer...) where {S<:TracedNumber} = filled_array(zero(S), map(Int, n))
Base.ones(::Type{S}, n::Integer...) where {S<:TracedNumber} = filled_array(one(S), map(Int, n))
Base.fill(x::TracedNumber, n::Dims) = filled_array(x, n)
Base.fill(x::TracedNumber, n::Integer...) = filled_array(x, map(Int, n))
Base.zero(x::TracedArray) = filled_array(zero(eltype(x)), size(x))
Base.one(x::TracedMatrix) = traced(Matrix{dtype(x)}(I, size(x)...))

# ---- writing whole arrays

"Gives an array the elements of another, of its size."
assign!(x::ArrayOfTraced, y::Number) = assign!(x, filled_array(eltype(x)(y), size(x)))
function assign!(x::TracedArray, y::AbstractArray)
    size(x) == size(y) ||
        throw(DimensionMismatch("an array of size $(size(y)) is written to one of $(size(x))"))
    check_home(x)
    value = whole!(as_eltype(eltype(x), traced(y)))
    x.value = atom_in(x.recording, value, recording())
    empty!(x.pieces)
    x
end
assign!(x::SubArray{<:TracedNumber}, y::AbstractArray) =
    (setindex!(parent(x), y, parentindices(x)...); x)
assign!(x::ArrayOfTraced, y::AbstractArray) = (foreach(k -> x[k] = y[k], eachindex(x, y)); x)
assign!(x::AbstractArray, y) = conversion_error(y, eltype(x))

as_eltype(::Type{S}, x::TracedArray) where {S} =
    eltype(x) === S ? x :
    traced_array(emit_here(:convert_element_type, atom_here(x); dtype = dtype_name(plain_type(S))))

"Refuses to write to an array that belongs to a trace around the one under way."
check_home(x::TracedArray) =
    x.recording === recording() || throw(
        EscapedTracer(
            "an array from outside of a function that is traced by itself is written to: pass it " *
            "to the function and return it", user_line())
    )

Base.fill!(x::ArrayOfTraced, v) = assign!(x, v)
Base.copyto!(x::TracedArray, y::AbstractArray) =
    length(x) == length(y) ? assign!(x, reshape(traced(y), size(x))) :
    invoke(copyto!, Tuple{AbstractArray,AbstractArray}, x, y)
