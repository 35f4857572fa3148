# The handler of an FFI call. It runs on XLA's threads, where old Julias have no heap, no exceptions
# and no dispatch: pointers, numbers and C functions only, all the way down (tests read its LLVM
# code).

"""
All that a call needs of a kernel, in C's memory, for ever: XLA may call it as long as
the process lives."""
struct Descriptor
    kernel::Ptr{Cvoid}
    operands::Int64
    results::Int64
    workspace::Int64        # bytes
    types::Ptr{Int64}       # of operands, then results: dtype, rank, dimensions
    bytes::Ptr{Int64}       # of each result
    name::Ptr{UInt8}
    name_size::Int64
end

@noinline handle(frame::Ptr{FFICallFrame}, descriptor::Ptr{Descriptor})::Ptr{Cvoid} =
    handle_behind(this_gate(), these_blocks(), frame, descriptor)
"For kernels behind this gate, with workspaces in these blocks."
function handle_behind(gate::Ptr{Gate}, blocks::Ptr{Block}, frame::Ptr{FFICallFrame},
    descriptor::Ptr{Descriptor})::Ptr{Cvoid}
    f, d = unsafe_load(frame), unsafe_load(descriptor)
    answer_metadata(f.extensions) && return C_NULL
    f.stage == EXECUTE_STAGE || return C_NULL
    wrong = misfit(f, d)
    wrong == C_NULL || return wrong
    enter_gate(gate) || return refused(f.api, d)
    ask_for_large_pages(f.results, d.bytes, d.results)
    problem = d.workspace == 0 ?
              outcome(run_kernel(d.kernel, f.operands.items, f.results.items, frame), f.api, d) :
              in_workspace(blocks, f, d, frame)
    leave_gate(gate)
    problem
end

function in_workspace(blocks::Ptr{Block}, f::FFICallFrame, d::Descriptor,
    frame::Ptr{FFICallFrame})::Ptr{Cvoid}
    block = take_block(blocks, block_bytes(d.results, d.workspace))
    block == C_NULL && return no_workspace(f.api, d)
    results = with_workspace(block, f.results)
    status = run_kernel(d.kernel, f.operands.items, results, frame)
    give_back(blocks, block)
    outcome(status, f.api, d)
end
outcome(status::Cint, api::Ptr{FFIApi}, d::Descriptor)::Ptr{Cvoid} =
    status == 0 ? C_NULL : exhausted(api, d)

@inline run_kernel(f::Ptr{Cvoid}, operands, results, frame) =
    @call_address f(operands::Ptr{Ptr{FFIBuffer}}, results::Ptr{Ptr{FFIBuffer}},
        frame::Ptr{Cvoid})::Cint

"The error of a call whose operands or results are not those of the descriptor."
@inline function misfit(f::FFICallFrame, d::Descriptor)::Ptr{Cvoid}
    f.operands.size == d.operands ||
        return miscounted(f.api, d, f.operands.size, d.operands, "operands")
    f.results.size == d.results ||
        return miscounted(f.api, d, f.results.size, d.results, "results")
    at = d.types
    for i in 1:d.operands
        fits(f.operands, i, at) || return mismatch(f.api, d, "operand ", i, f.operands, at)
        at = next_type(at)
    end
    for i in 1:d.results
        fits(f.results, i, at) || return mismatch(f.api, d, "result ", i, f.results, at)
        at = next_type(at)
    end
    C_NULL
end

"Tells XLA the version of the structs, if that is what it asks."
function answer_metadata(extension::Ptr{FFIExtension})
    while extension != C_NULL
        if unsafe_load(extension).type == METADATA_EXTENSION
            place = unsafe_load(Ptr{FFIMetadataExtension}(extension)).metadata
            old = unsafe_load(place)
            version = FFIApiVersion(old.version.struct_size, old.version.extensions, API_MAJOR,
                API_MINOR)
            unsafe_store!(place, FFIMetadata(old.struct_size, version, 0, old.state_type))
            return true
        end
        extension = unsafe_load(extension).next
    end
    false
end

ffi_buffer(list::FFIList, i::Int) = unsafe_load(unsafe_load(list.items, i))
next_type(at::Ptr{Int64}) = at + 8 * (2 + unsafe_load(at, 2))

function fits(list::FFIList, i::Int, at::Ptr{Int64})
    unsafe_load(list.types, i) == BUFFER_TYPE || return false
    b = ffi_buffer(list, i)
    Int64(b.dtype) == unsafe_load(at, 1) && b.rank == unsafe_load(at, 2) || return false
    for k in 1:b.rank
        unsafe_load(b.dims, k) == unsafe_load(at, k + 2) || return false
    end
    true
end

# Refusals

const MESSAGE_SIZE = 1024

@noinline function mismatch(api::Ptr{FFIApi}, d::Descriptor, what::String, i::Int, list::FFIList,
    at::Ptr{Int64})
    buffer = message_buffer()
    buffer == C_NULL && return create_error(api, INVALID_ARGUMENT, buffer)
    t = put(put(about(buffer, d), what), i - 1)
    t = put_type(put(t, " must be "), unsafe_load(at, 1), unsafe_load(at, 2), at + 16)
    if unsafe_load(list.types, i) == BUFFER_TYPE
        b = ffi_buffer(list, i)
        t = put_type(put(t, ", got "), Int64(b.dtype), b.rank, b.dims)
    else
        t = put(t, ", got no array")
    end
    finish_error(api, INVALID_ARGUMENT, buffer, t)
end

@noinline function miscounted(api::Ptr{FFIApi}, d::Descriptor, got::Int64, wanted::Int64,
    what::String)
    buffer = message_buffer()
    buffer == C_NULL && return create_error(api, INVALID_ARGUMENT, buffer)
    t = put(put(put(put(about(buffer, d), "it has "), wanted), UInt8(' ')), what)
    finish_error(api, INVALID_ARGUMENT, buffer, put(put(t, " but was called with "), got))
end

@noinline function refused(api::Ptr{FFIApi}, d::Descriptor)
    buffer = message_buffer()
    buffer == C_NULL && return create_error(api, FAILED_PRECONDITION, buffer)
    finish_error(api, FAILED_PRECONDITION, buffer,
        put(about(buffer, d), "Python is exiting; kernels take no more calls"))
end

@noinline function no_workspace(api::Ptr{FFIApi}, d::Descriptor)
    buffer = message_buffer()
    buffer == C_NULL && return create_error(api, RESOURCE_EXHAUSTED, buffer)
    t = put(put(about(buffer, d), "out of memory for a workspace of "), d.workspace)
    finish_error(api, RESOURCE_EXHAUSTED, buffer, put(t, " bytes"))
end

@noinline function exhausted(api::Ptr{FFIApi}, d::Descriptor)
    buffer = message_buffer()
    buffer == C_NULL && return create_error(api, RESOURCE_EXHAUSTED, buffer)
    finish_error(api, RESOURCE_EXHAUSTED, buffer,
        put(about(buffer, d),
            "out of memory for what the trips of a while loop leave to be run backwards"))
end

message_buffer() = Ptr{UInt8}(Libc.malloc(MESSAGE_SIZE))
about(buffer::Ptr{UInt8}, d::Descriptor) =
    put(put(put(Text(buffer, buffer + MESSAGE_SIZE - 1), "pybridge kernel "), d.name, d.name_size),
        ": ")

"The error of the text in the buffer, which is freed: XLA copies it."
function finish_error(api::Ptr{FFIApi}, code::Cint, buffer::Ptr{UInt8}, t::Text)
    unsafe_store!(t.next, 0x00)
    problem = create_error(api, code, buffer)
    Libc.free(Ptr{Cvoid}(buffer))
    problem
end

const NO_MEMORY = "pybridge: out of memory"

function create_error(api::Ptr{FFIApi}, code::Cint, message::Ptr{UInt8})
    GC.@preserve NO_MEMORY begin
        text = message == C_NULL ? pointer(NO_MEMORY) : message
        size = sizeof(FFIErrorCreate)
        arguments = Libc.malloc(size)
        unsafe_store!(Ptr{FFIErrorCreate}(arguments), FFIErrorCreate(size, C_NULL, text, code))
        problem = call_api(unsafe_load(api).error_create, arguments)
        Libc.free(arguments)
        problem
    end
end

function destroy_error(api::Ptr{FFIApi}, problem::Ptr{Cvoid})
    problem == C_NULL && return
    size = sizeof(FFIErrorDestroy)
    arguments = Libc.malloc(size)
    unsafe_store!(Ptr{FFIErrorDestroy}(arguments), FFIErrorDestroy(size, C_NULL, problem))
    call_api(unsafe_load(api).error_destroy, arguments)
    Libc.free(arguments)
end
