# XLA's arrays as the user's function sees them: with the index order of Python, where the last
# index runs fastest in memory.

"""
    ReadOnlyArray

An argument in XLA's own memory. It reads like an `Array`, and refuses to be written. C
functions such as BLAS want addresses and say not whether they will write: they get that of a copy,
which is compared with the original after the call.
"""
struct ReadOnlyArray{T,N} <: DenseArray{T,N}
    memory::Array{T,N}
    lent::Base.RefValue{Array{T,N}}
end
ReadOnlyArray(memory::Array{T,N}) where {T,N} = ReadOnlyArray{T,N}(memory, Ref{Array{T,N}}())

Base.size(x::ReadOnlyArray) = size(x.memory)
Base.strides(x::ReadOnlyArray) = strides(x.memory)
Base.IndexStyle(::Type{<:ReadOnlyArray}) = IndexLinear()
Base.@propagate_inbounds Base.getindex(x::ReadOnlyArray, i::Int) = x.memory[i]
Base.copy(x::ReadOnlyArray) = copy(x.memory)
Base.setindex!(x::ReadOnlyArray, value, i::Int...) = throw(InputMutated(MUTATED))

Base.elsize(::Type{<:ReadOnlyArray{T}}) where {T} = sizeof(T)
function Base.unsafe_convert(::Type{Ptr{T}}, x::ReadOnlyArray{T}) where {T}
    isassigned(x.lent) || (x.lent[] = copy(x.memory))
    pointer(x.lent[])
end

const MUTATED =
    "the function writes to one of its arguments, which is an array of " *
    "JAX's and must not change; " *
    "copy it first, or give the function copies of its arguments by inputs=\"copy\""

function check_unwritten(x::ReadOnlyArray)
    isassigned(x.lent) || return
    lent, memory = x.lent[], x.memory
    same = GC.@preserve lent memory ccall(:memcmp, Cint, (Ptr{Cvoid}, Ptr{Cvoid}, Csize_t), lent,
        memory, sizeof(memory)) == 0
    same || throw(InputMutated(MUTATED))
    nothing
end
check_unwritten(x) = nothing

"The array in Python's index order, without a copy; of a vector itself."
in_python_order(m::AbstractVector) = m
in_python_order(m::AbstractArray{T,0}) where {T} = m
in_python_order(m::AbstractMatrix{<:Number}) = transpose(m)   # which BLAS knows
@generated function in_python_order(m::AbstractArray{T,N}) where {T,N}
    axes = ntuple(k -> N + 1 - k, N)
    :(PermutedDimsArray{T,N,$axes,$axes,typeof(m)}(m))
end

# Two ways to show memory to a function

"""
Lazily, without a copy: vectors as they are, matrices as `Transpose`, others as
`PermutedDimsArray`."""
struct Views end
"As plain `Array`s in Python's index order: copies."
struct Arrays end

"Memory of XLA's, as it may be given to `shown`."
operand(::Views, m::Array) = ReadOnlyArray(m)
operand(::Arrays, m::Array) = m
operand(::Arrays, m::Vector) = copy(m)

"An argument: scalars as numbers."
shown(layout, m::AbstractArray{T,0}) where {T} = m[]
shown(layout, m::AbstractArray) = arranged(layout, m)

"""
What an in-place function writes to: scalars as arrays of no dimension. What is no view is written
back to memory."""
arranged(::Views, m::AbstractArray) = in_python_order(m)
arranged(::Arrays, m::AbstractArray{T,N}) where {T,N} = N > 1 ? reordered(m) : m
write_back!(::Views, m::AbstractArray, w) = nothing
write_back!(::Arrays, m::AbstractArray{T,N}, w) where {T,N} = N > 1 ? fill_from!(m, w) : nothing

function reordered(m::AbstractArray{T,N}) where {T,N}
    x = Array{T,N}(undef, reverse(size(m)))
    from = in_python_order(m)
    @inbounds for i in CartesianIndices(x)
        x[i] = from[i]
    end
    x
end

"""
Fills memory with an array in Python's order. A loop of its own: it has to be simple
enough for Enzyme."""
function fill_from!(m::AbstractArray{T}, x::AbstractArray) where {T}
    from = in_python_order(x)
    @inbounds for i in CartesianIndices(m)
        m[i] = convert(T, from[i])
    end
end
