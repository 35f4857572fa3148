# The structs of XLA's FFI that a handler on the CPU meets: xla/ffi/api/c_api.h, API version 0.3.
# XLA only ever appends fields, and each struct begins with its size, so an older mirror stays
# right.

const API_MAJOR, API_MINOR = Cint(0), Cint(3)

struct FFIExtension
    struct_size::Csize_t
    type::Cint
    next::Ptr{FFIExtension}
end

struct FFIApiVersion
    struct_size::Csize_t
    extensions::Ptr{FFIExtension}
    major::Cint
    minor::Cint
end

struct FFIMetadata
    struct_size::Csize_t
    version::FFIApiVersion
    traits::UInt32
    state_type::Int64
end

"What XLA asks a handler when it is registered, in the place of a call."
struct FFIMetadataExtension
    base::FFIExtension
    metadata::Ptr{FFIMetadata}
end

struct FFIBuffer
    struct_size::Csize_t
    extensions::Ptr{FFIExtension}
    dtype::Cint
    data::Ptr{Cvoid}
    rank::Int64
    dims::Ptr{Int64}
end

"The operands of a call, or its results."
struct FFIList
    struct_size::Csize_t
    extensions::Ptr{FFIExtension}
    size::Int64
    types::Ptr{Cint}
    items::Ptr{Ptr{FFIBuffer}}
end

struct FFIAttributes
    struct_size::Csize_t
    extensions::Ptr{FFIExtension}
    size::Int64
    types::Ptr{Cint}
    names::Ptr{Ptr{Cvoid}}
    values::Ptr{Ptr{Cvoid}}
end

"XLA's functions, as far as they are called here. The fields between are other functions."
struct FFIApi
    struct_size::Csize_t
    extensions::Ptr{FFIExtension}
    version::FFIApiVersion
    internal::Ptr{Cvoid}
    error_create::Ptr{Cvoid}
    error_message::Ptr{Cvoid}
    error_destroy::Ptr{Cvoid}
    handler_register::Ptr{Cvoid}
    stream::Ptr{Cvoid}
    type_register::Ptr{Cvoid}
    context::Ptr{Cvoid}
    state_set::Ptr{Cvoid}
    state_get::Ptr{Cvoid}
    allocate::Ptr{Cvoid}
    free::Ptr{Cvoid}
    schedule::Ptr{Cvoid}
    num_threads::Ptr{Cvoid}
end

struct FFICallFrame
    struct_size::Csize_t
    extensions::Ptr{FFIExtension}
    api::Ptr{FFIApi}
    context::Ptr{Cvoid}
    stage::Cint
    operands::FFIList
    results::FFIList
    attributes::FFIAttributes
    future::Ptr{Cvoid}
end

const METADATA_EXTENSION = Cint(1)
const EXECUTE_STAGE = Cint(3)
const BUFFER_TYPE = Cint(1)
const INVALID_ARGUMENT, RESOURCE_EXHAUSTED, FAILED_PRECONDITION = Cint(3), Cint(8), Cint(9)

# Calls by address

"""
    @call_address f(x::T, …)::R

Calls the C function at the address `f`. A null address, which none ever is, gives the zero of `R`:
a plain `ccall` looks for null too, and throws, which code that XLA calls may not."""
macro call_address(typed)
    call, R = typed.args
    f, arguments = call.args[1], call.args[2:end]
    values = (esc(a.args[1]) for a in arguments)
    types = Expr(:tuple, (esc(a.args[2]) for a in arguments)...)
    quote
        address = $(esc(f))
        address == C_NULL ? zero_result($(esc(R))) :
        ccall(address, $(esc(R)), $types, $(values...))
    end
end
zero_result(::Type{Cvoid}) = nothing
zero_result(::Type{Cint}) = Cint(0)
zero_result(::Type{P}) where {P<:Ptr} = P(0)

"One of XLA's functions, which takes a struct and gives an error or nothing."
@inline call_api(f::Ptr{Cvoid}, arguments::Ptr{Cvoid}) =
    @call_address f(arguments::Ptr{Cvoid})::Ptr{Cvoid}
"A kernel's share `k` of what threads run."
@inline call_body(f::Ptr{Cvoid}, k::Int, data::Ptr{Cvoid}) =
    @call_address f(k::Int, data::Ptr{Cvoid})::Cvoid

# Arguments of XLA's functions

struct FFIErrorCreate
    struct_size::Csize_t
    extensions::Ptr{FFIExtension}
    message::Ptr{UInt8}
    code::Cint
end

struct FFIErrorDestroy
    struct_size::Csize_t
    extensions::Ptr{FFIExtension}
    error::Ptr{Cvoid}
end

struct FFINumThreads
    struct_size::Csize_t
    extensions::Ptr{FFIExtension}
    context::Ptr{Cvoid}
    count::Ptr{Int64}
end

struct FFISchedule
    struct_size::Csize_t
    extensions::Ptr{FFIExtension}
    context::Ptr{Cvoid}
    task::Ptr{Cvoid}
    data::Ptr{Cvoid}
end

"XLA's number of an element type (xla_data.proto, PrimitiveType)."
const XLA_DTYPE = IdDict{DataType,Int64}(
    Bool => 1, Int8 => 2, Int16 => 3, Int32 => 4, Int64 => 5, UInt8 => 6, UInt16 => 7,
    UInt32 => 8,
    UInt64 => 9,
    Float16 => 10, Float32 => 11, Float64 => 12, ComplexF32 => 15, BFloat16 => 16,
    ComplexF64 => 18)
