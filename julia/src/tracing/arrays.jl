# Traced arrays. A Julia array of size (m, n) is a Program's array of shape (n, m): the same memory.

"""
The elements of arrays of a trace. Arrays of several shapes may have one memory, as `x`, `vec(x)`
and `reshape(x, n)` have in Julia. A write replaces `value`, which has the elements in the shape in
which they were written, or a literal where all are equal; `reshaped` has them in other shapes.
Elements, or slices along the last dimension, that were written one by one since are `pieces` of
`width` elements each, by the index in memory of their first, so that reading them back takes no
equation.
"""
mutable struct TracedMemory
    value::Atom
    reshaped::Vector{Var}
    pieces::Dict{Int,Atom}
    width::Int
    recording::Union{OpenTrace,Nothing}
    writes::Int                 # how many there were
    mirrored::Any               # the Mirror that these elements are, or nothing
end
TracedMemory(a::Atom, r, pieces = Dict{Int,Atom}(), width = 1) =
    TracedMemory(a, Var[], pieces, width, r, 0, nothing)

"An array of a trace, which may be written to."
struct TracedArray{S<:TracedNumber,N} <: AbstractArray{S,N}
    memory::TracedMemory
    size::NTuple{N,Int}
end
const TracedVector{S<:TracedNumber} = TracedArray{S,1}
const TracedMatrix{S<:TracedNumber} = TracedArray{S,2}
# Matrices with a structure of their own, which have methods that are as specific as ours.
const TRIANGULAR = (UpperTriangular, LowerTriangular, UnitUpperTriangular, UnitLowerTriangular)
const WRAPPED = (Adjoint, Transpose, Diagonal, Symmetric, Hermitian, TRIANGULAR..., Tridiagonal,
    SymTridiagonal, Bidiagonal)
# What linear algebra takes. Other wrappers than views have methods of their own.
const VectorOfTraced =
    Union{TracedVector,SubArray{<:TracedNumber,1},Vector{<:TracedNumber}}
const MatrixOfTraced =
    Union{TracedMatrix,SubArray{<:TracedNumber,2},Matrix{<:TracedNumber}}
"Any array of traced numbers: traced, a view or another wrapper of one, or Julia's own."
const ArrayOfTraced{N} = AbstractArray{<:TracedNumber,N}

TracedArray(a::Atom, n::NTuple{N,Int}, r, rest...) where {N} =
    TracedArray{traced_type(dtype(a)),N}(TracedMemory(a, r, rest...), n)
"The array that an atom of the innermost trace is."
traced_array(a::Atom) = TracedArray(a, julia_size(aval(a)), open_recording())
"An array of that size filled with a number."
filled_array(x::TracedNumber, n::Dims) =
    isknown(x) ? TracedArray(x.atom, n, open_recording()) :
    traced_array(emit_here(:broadcast_in_dim, atom_here(x); shape = program_shape(n), dims = Int[]))
program_shape(n::Dims) = Dim[reverse(n)...]

Base.size(x::TracedArray) = x.size
Base.IndexStyle(::Type{<:TracedArray}) = IndexLinear()
# Wrappers too, whose elements would be asked for after the trace, by what prints an error.
Base.show(io::IO, x::ArrayOfTraced) =
    print(io, "traced ", plain_type(eltype(x)), " array of size ", size(x))
Base.show(io::IO, ::MIME"text/plain", x::ArrayOfTraced) = show(io, x)
Base.dataids(x::TracedArray) = (objectid(x.memory),)
dtype(x::ArrayOfTraced) = plain_type(eltype(x))

# ---- their atoms

"The atom of an array in the innermost trace: of traced arrays, of other arrays of numbers."
function atom_here(x::TracedArray)
    r = recording()
    r === nothing && open_recording()
    atom_in(r, whole!(x), x.memory.recording)
end
atom_here(x::AbstractArray) = captured_array(open_recording(), x)
atom_here(x::Number) = Literal(x)
atom_here(x::ArrayOfTraced) = atom_here(traced(x))

"The atom of all elements, in the array's own trace."
function whole!(x::TracedArray)
    m, n = memory(x), program_shape(size(x))
    isempty(m.pieces) || write_pieces!(m, n)
    if m.value isa Literal && !isempty(n)
        m.value = emit_for(m, :broadcast_in_dim, Atom[m.value]; shape = n, dims = Int[])
    end
    shape(m.value) == n ? m.value : reshaped_value!(m, n)
end
emit_for(m::TracedMemory, op, operands; attrs...) =
    only_one(emit_here(primitive(op), operands, as_attributes(values(attrs)), m.recording))

"The elements in another shape than that in which they were written."
function reshaped_value!(m::TracedMemory, n)
    k = findfirst(a -> shape(a) == n, m.reshaped)
    k === nothing || return m.reshaped[k]
    a = emit_for(m, :reshape, Atom[m.value]; shape = n)
    push!(m.reshaped, a)
    a
end

"""
Joins what was written piece by piece with what stays, in the order of memory. Loops that write an
array so roll up again, and `merge_pieces` then joins what they have written by one equation."""
function write_pieces!(m::TracedMemory, n)
    count_ = Int(size_of(n))
    elements = m.value isa Literal || isempty(n) ? m.value :
               emit_for(m, :reshape, Atom[m.value]; shape = Dim[count_])
    joined, at = Atom[], 1
    function keep!(to)
        to >= at && push!(joined, kept_elements(m, elements, at, to))
        at = to + 1
    end
    for k in sort!(collect(keys(m.pieces)))
        keep!(k - 1)
        push!(joined, piece_in_memory(m, m.pieces[k], m.width))
        at = k + m.width
    end
    keep!(count_)
    y = length(joined) == 1 ? joined[1] : emit_for(m, :concatenate, joined; dim = 0)
    set_value!(m, emit_for(m, :reshape, Atom[y]; shape = n))
end
kept_elements(m, elements::Literal, from, to) =
    emit_for(m, :broadcast_in_dim, Atom[elements]; shape = Dim[to-from+1], dims = Int[])
kept_elements(m, elements::Var, from, to) =
    emit_for(m, :slice, Atom[elements]; start = Dim[from-1], limit = Dim[to], strides = [1])
piece_in_memory(m, a::Literal, width) =
    emit_for(m, :broadcast_in_dim, Atom[a]; shape = Dim[width], dims = Int[])
piece_in_memory(m, a::Var, width) = emit_for(m, :reshape, Atom[a]; shape = Dim[width])

"Has a memory hold the elements of an atom of its trace, and no pieces."
function set_value!(m::TracedMemory, a::Atom)
    m.value, m.writes = a, m.writes + 1
    empty!(m.reshaped)
    empty!(m.pieces)
    a
end
"The piece that an array gets at an index in memory; pieces are of one width at a time."
function write_piece!(x::TracedArray, at::Int, a::Atom, width::Int)
    m = x.memory
    isempty(m.pieces) || m.width == width || whole!(x)
    m.width, m.pieces[at], m.writes = width, a, m.writes + 1
    x
end
"The piece that has the element at an index in memory, and where it begins; or nothing."
function piece_at(x::TracedArray, k::Int)
    m = memory(x)
    isempty(m.pieces) && return nothing
    from = k - mod(k - 1, m.width)
    haskey(m.pieces, from) ? (m.pieces[from], from) : nothing
end

# ---- what counts as one

"The TracedArray of any array of traced numbers, or of numbers."
traced(x::TracedArray) = x
traced(x::AbstractArray) = traced_array(atom_here(x))
traced(x::SubArray{<:TracedNumber}) =
    Base.has_offset_axes(parent(x)) ? traced(parent(x)[parentindices(x)...]) :
    traced(parent(x))[parentindices(x)...]
traced(x::Base.ReshapedArray{<:TracedNumber}) = reshape(traced(parent(x)), size(x))
traced(x::PermutedDimsArray{<:TracedNumber}) = permutedims(traced(parent(x)), permutation(x))
permutation(::PermutedDimsArray{T,N,perm}) where {T,N,perm} = perm
traced(x::Adjoint{<:TracedNumber}) = flipped(conj(traced(parent(x))))
traced(x::Transpose{<:TracedNumber}) = flipped(traced(parent(x)))
"The elements of any other array of traced numbers, put together."
function traced(x::ArrayOfTraced)
    y = filled_array(zero(eltype(x)), size(x))
    for (k, v) in enumerate(x)
        y.memory.pieces[k] = atom_here(v)
    end
    y
end
flipped(x::TracedVector) = reshape(x, 1, length(x))
flipped(x::TracedMatrix) = permutedims(x)

Base.convert(::Type{T}, x::TracedArray) where {T<:TracedArray} = x isa T ? x : T(x)
function Base.copy(x::TracedArray)
    m = memory(x)
    # pieces leave the shape in which the value was written as it is
    y = TracedArray(m.value, size(x), m.recording, copy(m.pieces), m.width)
    append!(y.memory.reshaped, m.reshaped)
    y
end
Base.collect(x::TracedArray) = copy(x)
Base.Array(x::TracedArray) = copy(x)
Base.deepcopy_internal(x::TracedArray, ::IdDict) = copy(x)

# Arrays made for traced elements are traced.
Base.similar(x::TracedArray, ::Type{T}, n::Dims) where {T} = Array{T}(undef, n)
# Arrays of other packages have methods of their own, which these may not contradict.
for A in (TracedArray, Array{<:TracedNumber}, SubArray{<:TracedNumber})
    @eval Base.similar(::$A, ::Type{S}, n::Dims) where {S<:TracedNumber} =
        filled_array(zero(S), n)
end
Base.zeros(::Type{S}, n::Dims) where {S<:TracedNumber} = filled_array(zero(S), n)
Base.ones(::Type{S}, n::Dims) where {S<:TracedNumber} = filled_array(one(S), n)
Base.zeros(::Type{S}, n::Integer...) where {S<:TracedNumber} = filled_array(zero(S), map(Int, n))
Base.ones(::Type{S}, n::Integer...) where {S<:TracedNumber} = filled_array(one(S), map(Int, n))
Base.fill(x::TracedNumber, n::Dims) = filled_array(x, n)
Base.fill(x::TracedNumber, n::Integer...) = filled_array(x, map(Int, n))
Base.zero(x::TracedArray) = filled_array(zero(eltype(x)), size(x))
Base.one(x::TracedMatrix) = traced(Matrix{dtype(x)}(I, size(x)...))

# ---- axes

"""
The array with these axes. What has others than those of arrays is of a package's type, which
`reshape` makes: all operations on traced arrays count from 1."""
function with_axes(y::AbstractArray, ax::Tuple)
    axes(y) == ax && return y
    applicable(reshape, y, ax) && return reshape(y, ax)
    untraceable("the result has the axes $(join(ax, ", ")), and there is no " *
                "`reshape(array, axes)` that makes such an array: of which package are they?")
end

# ---- writing whole arrays

"Gives an array the elements of another, of its size."
assign!(x::ArrayOfTraced, y::Number) = assign!(x, filled_array(eltype(x)(y), size(x)))
function assign!(x::TracedArray, y::AbstractArray)
    check_size(x, y)
    write_to(x, z -> assign!(z, y)) && return x
    set_value!(x.memory, atom_here(as_eltype(eltype(x), traced(y))))
    x
end
assign!(x::SubArray{<:TracedNumber}, y::AbstractArray) =
    (setindex!(parent(x), y, parentindices(x)...); x)
function assign!(x::ArrayOfTraced, y::AbstractArray)
    check_size(x, y)
    # as they are before the first is written
    values_ = copy(traced(y))
    foreach((k, v) -> x[k] = v, eachindex(x), values_)
    x
end
assign!(x::AbstractArray, y) = conversion_error(y, eltype(x))
check_size(x, y) =
    size(x) == size(y) ||
    throw(DimensionMismatch("an array of size $(size(y)) is written to one of $(size(x))"))

as_eltype(::Type{S}, x::TracedArray) where {S} =
    eltype(x) === S ? x :
    traced_array(emit_here(:convert_element_type, atom_here(x); dtype = dtype_name(plain_type(S))))

Base.fill!(x::Union{TracedArray,SubArray{<:TracedNumber}}, v) = assign!(x, v)
Base.copyto!(x::TracedArray, y::AbstractArray) =
    length(x) == length(y) ? assign!(x, reshape(traced(y), size(x))) :
    invoke(copyto!, Tuple{AbstractArray,AbstractArray}, x, y)

# ---- mirrors: A' and transpose(A), which have A's elements in another order

"""
What the elements of `turn(source)` are, for `turn` that undoes itself: computed when they are read,
anew where `source` was written to since. A write to them is one to `source`."""
mutable struct Mirror
    source::TracedArray
    turn::Function
    writes::Int                 # of the source, when they were computed
end

"The array `turned`, which is `turn(source)`, as a mirror of `source`."
function mirror(turn, source::TracedMatrix, turned::TracedMatrix)
    turned.memory.mirrored = Mirror(source, turn, memory(source).writes)
    turned
end

"The memory of an array, up to date."
function memory(x::TracedArray)
    m = x.memory
    m.mirrored === nothing || renew!(m, m.mirrored)
    m
end
function renew!(m::TracedMemory, o::Mirror)
    memory(o.source).writes == o.writes && return
    set_value!(m, record(_ -> atom_here(o.turn(o.source)), m.recording))
    o.writes = memory(o.source).writes
end

"The memory of an array that is written to, which a trace around the one under way may not have."
open_memory(x::TracedArray) =
    x.memory.recording === recording() ? x.memory : throw(
        EscapedTracer(
            "an array from outside of a function that is traced by itself is written to: pass it " *
            "to the function and return it", user_line())
    )

"""
Where an array is a mirror, does `write(array)` on a copy and has the source take that over. Returns
whether it did."""
function write_to(x::TracedArray, write)
    o = open_memory(x).mirrored
    o === nothing && return false
    y = copy(x)
    write(y)
    assign!(o.source, o.turn(reshape(y, reverse(size(o.source)))))
    true
end
function write_turned!(o::Mirror, v, i::Int)
    row, column = Tuple(CartesianIndices(reverse(size(o.source)))[i])
    o.source[column, row] = o.turn(v)
end
