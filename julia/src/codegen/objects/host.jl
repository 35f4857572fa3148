# What kernels in files need of the process that loads them, itself in a file: the handler of XLA's
# calls and its threads (ffi/), compiled once for all kernels.

"""
The functions of the host, by their symbols. Its data are the gate of the kernels in files, and the
blocks of their workspaces."""
function host_definitions(table::OutsideTable)
    data(x, T) = read_place(table, Place(:data, data_name(data_number!(table, x))), Ptr{T})
    gate, blocks = data(GATE_DATA, FFI.Gate), data(BLOCKS_DATA, FFI.Block)
    task = read_place(table, Place(:function, "host_task"), Ptr{Cvoid})
    Any[
        :(host_task(team::$(Ptr{FFI.Team})) = $(FFI.pool_task)(team)),
        :(
            host_parallel_for(pool::$(Ptr{Cvoid}), chunks::Int, body::$(Ptr{Cvoid}),
                data::$(Ptr{Cvoid}), falling::Int) =
                $(FFI.share_out)(pool, chunks, body, data, falling, $task, $(FFI.no_safepoint))
        ),
        :(
            host_handle(frame::$(Ptr{FFI.FFICallFrame}), descriptor::$(Ptr{FFI.Descriptor})) =
                $(FFI.handle_behind)($gate, $blocks, frame, descriptor)
        ),
        :(host_shut() = $(FFI.shut_gate)($gate)),
    ]
end
const GATE_DATA = zeros(Int64, sizeof(FFI.Gate) ÷ 8)
const BLOCKS_DATA = zeros(Int64, sizeof(FFI.Workspaces) ÷ 8)

write_host(path::String) = (
    table = OutsideTable();
    write_object_file(path, host_definitions(table),
        ["host_parallel_for", "host_handle", "host_shut"], table)
)

"""
    write_kernel(program, path) -> (ObjectFile, FFI.Buffers, workspace)

A Program's kernel as an object file with two symbols: the handler that XLA's FFI
calls, and the kernel."""
write_kernel(p::Program, path::String) = naming_refused(p) do
    definitions, workspace = kernel_code(p)
    table = OutsideTable()
    code = Any[outside(d, table) for d in definitions]
    kernel = definition_name(definitions[end])
    handler = Symbol(kernel, :_handler)
    push!(code, handler_definition(handler, table))
    # The descriptor that the loader makes has the kernel's address.
    file = write_object_file(path, code, [string(handler), string(kernel)], table)
    file, FFI.buffers(p), workspace
end

handler_definition(name::Symbol, t::OutsideTable) =
    :(
        $name(frame::$(Ptr{Cvoid})) = $(handled_by_host)(
            $(read_place(t, Place(:host, "host_handle"), Ptr{Cvoid})), frame,
            $(read_place(t, Place(:descriptor, ""), Ptr{Cvoid})))
    )
@inline handled_by_host(f::Ptr{Cvoid}, frame::Ptr{Cvoid}, descriptor::Ptr{Cvoid}) =
    @call_address f(frame::Ptr{Cvoid}, descriptor::Ptr{Cvoid})::Ptr{Cvoid}
