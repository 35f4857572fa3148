# Kernels as targets of XLA's FFI: a C function each, that knows the types the kernel was made for.

"What XLA calls for a kernel, and the bytes of scratch memory that it expects as its last result."
struct Target
    handler::Ptr{Cvoid}
    workspace::Int
end

"By the Program's digest: XLA may call a kernel as long as the process lives, so none is ever dropped."
const TARGETS = Dict{String,Target}()

"The target of a compiled Program: made once, and by `make` only if the digest is new."
function target(make, digest::String, p::Program)
    haskey(TARGETS, digest) && return TARGETS[digest]
    isempty(TARGETS) && atexit(close_gate)
    TARGETS[digest] = target(p, make())
end
function target(p::Program, k)
    types = TensorType[aval(a) for a in [p.inputs; p.outputs]]
    k.workspace > 0 && push!(types, TensorType(UInt8, Dim[k.workspace]))
    Target(trampoline(descriptor(p, k.pointer, types)), k.workspace)
end

function descriptor(p::Program, kernel::Ptr{Cvoid}, types)
    numbers = Int64[n for t in types for n in (XLA_DTYPE[t.dtype], ndims(t), Int64.(t.shape)...)]
    operands = length(p.inputs)
    bytes = Int64[sizeof(t.dtype) * prod(Int64.(t.shape)) for t in types[operands+1:end]]
    kept(Descriptor[Descriptor(kernel, operands, length(bytes), kept(numbers), kept(bytes), kept(codeunits(p.name)), sizeof(p.name))])
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
