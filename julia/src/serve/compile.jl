# The requests that make a Program an FFI target, and that tell what the compiler does with it.

function answer(::Val{:compile}, body, arguments)
    p = checked(body)
    made = FFI.target(arguments[1], p) do
        with_constants(() -> compile(p), p, addresses_of(arguments[2]))
    end
    string(UInt(made.handler), " ", made.workspace)
end

# Paths may have spaces, which arguments cannot.
function answer(::Val{:object}, body, arguments)
    path, text = split_line(body)
    p = checked(text)
    file, buffers, workspace = with_constants(() -> write_kernel(p, String(path)), p,
        addresses_of(arguments[1]))
    numbers(x) = isempty(x) ? "-" : join(x, ',')
    join(
        String["handler $(file.symbols[1])", "kernel $(file.symbols[2])", "workspace $workspace",
            "operands $(buffers.operands)", "types $(numbers(buffers.types))",
            "bytes $(numbers(buffers.bytes))", needs_text(file)...], '\n')
end

answer(::Val{:common_routines}, body, arguments) = join(sort!(collect(keys(ROUTINES))), '\n')

answer(::Val{:host_object}, body, arguments) = join(needs_text(write_host(String(body))), '\n')

function answer(::Val{:routine_object}, body, arguments)
    path, symbol = split_line(body)
    write_routine(String(path), String(symbol))
end

function answer(::Val{:library_object}, body, arguments)
    path, text = split_line(body)
    p = checked(text)
    processor = arguments[3] == "native" ? this_processor() : Processor(arguments[3], "")
    f, file = with_constants(p, addresses_of(arguments[2])) do
        write_library_object(p, String(path), arguments[1], processor)
    end
    routines = (place.name for place in file.places if place.kind === :routine)
    join(
        ["workspace $(f.workspace)", "symbols $(join(file.symbols, ' '))",
            "routines $(join(routines, ' '))", "processor $(processor.name)",
            "features $(processor.features)"], '\n')
end

"What a file needs of its linker and of its loader."
needs_text(file::ObjectFile) = String[
    ["part $path" for path in file.parts[2:end]]
    ["needs $symbol" for symbol in file.routines]
    ["place $(place.kind) $(place.name)" for place in file.places]
]

answer(::Val{:blas}, body, arguments) = blas_library()

function answer(::Val{:explain}, body, arguments)
    p = checked(body)
    with_constants(() -> explain(p), p, addresses_of(arguments[1]))
end
