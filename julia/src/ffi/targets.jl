# Kernels as targets of XLA's FFI: a C function each, that knows the types the kernel was made for.

"What XLA calls for a kernel, and the bytes of the workspace that a call takes meanwhile."
struct Target
    handler::Ptr{Cvoid}
    workspace::Int
end

"""
By the Program's digest: XLA may call a kernel as long as the process lives, so
none is ever dropped."""
const TARGETS = Dict{String,Target}()

# An image of this code may have been written after kernels were made, or after exit hooks ran: what
# they left in memory is of another process.
function __init__()
    empty!(TARGETS)
    open_gate()
end

"The target of a compiled Program: made once, and by `make` only if the digest is new."
function target(make, digest::String, p::Program)
    haskey(TARGETS, digest) && return TARGETS[digest]
    isempty(TARGETS) && atexit(close_gate)
    TARGETS[digest] = target(p, make())
end
target(p::Program, k) =
    Target(trampoline(descriptor(p.name, buffers(p), k.pointer, k.workspace)), k.workspace)

"""
What XLA hands to a kernel: how many operands, the types of operands and results, one after the
other (dtype, rank, dimensions), and the bytes of each result."""
struct Buffers
    operands::Int
    types::Vector{Int64}
    bytes::Vector{Int64}
end
Buffers(operands::Vector{TensorType}, results::Vector{TensorType}) = Buffers(length(operands),
    Int64[n for t in [operands; results]
     for n in (XLA_DTYPE[t.dtype], ndims(t), Int64.(t.shape)...)],
    Int64[sizeof(t.dtype) * prod(Int64.(t.shape)) for t in results])
buffers(p::Program) =
    Buffers(TensorType[aval(v) for v in p.inputs], TensorType[aval(a) for a in p.outputs])

"What a handler knows of its target; a kernel where it is more than a function of Julia's."
function descriptor(name::AbstractString, b::Buffers, kernel::Ptr{Cvoid} = C_NULL, workspace = 0)
    words = String(name)
    kept(
        Descriptor[
            Descriptor(kernel, b.operands, length(b.bytes), workspace, kept(b.types),
            kept(b.bytes), kept(codeunits(words)), sizeof(words))]
    )
end

"The array's content in C's memory, for ever."
function kept(x::AbstractVector{T}) where {T}
    memory = Ptr{T}(Libc.malloc(max(1, sizeof(T) * length(x))))
    memory == C_NULL && throw(OutOfMemoryError())
    foreach(i -> unsafe_store!(memory, x[i], i), eachindex(x))
    memory
end

"""
The C function of one kernel: XLA hands a handler no data of ours, so each kernel has one of its
own, that adds the descriptor. It is no closure, because those have C functions on some processors
only.
"""
function trampoline(d::Ptr{Descriptor})::Ptr{Cvoid}
    name = gensym(:kernel)
    Core.eval(@__MODULE__, :($name(frame::Ptr{FFICallFrame}) = handle(frame, $d)))
    Core.eval(@__MODULE__, :(@cfunction($name, Ptr{Cvoid}, (Ptr{FFICallFrame},))))
end
