# A Program's inputs, results and status in a kernel.

const COUNT = Ref(0)

"The Program, if native code can be made of it: that needs sizes."
check_sizes(p::Program) =
    all(v -> isstatic(shape(v)), Iterators.flatten((p.inputs, p.outputs))) ? p :
    throw(ProgramTypeError("$(p.name) has symbolic dimensions; " *
                           "native code needs sizes"))

"""
    lower(program) -> KernelCode

The code of a Program. It and each Program nested in it is planned (`plan/`), which gives stages; a
stage is a loop nest (`nest/`) or an operation with code of its own (`kernels/`)."""
function lower(p::Program; target = KernelTarget(), notes = NoNotes())
    g = Generator(length(p.outputs); target = target, notes = notes)
    g.types[WORKSPACE] = Ptr{UInt8}
    emit_code!(g, :($WORKSPACE = $(buffer_data)($UInt8, results, $(length(p.outputs) + 1))))
    inputs = Storage[operand!(g, v, k) for (k, v) in enumerate(p.inputs)]
    targets = [
        isscalar(a) ? nothing : Memory(buffer!(g, dtype(a), :results, k), aval(a), true)
        for (k, a) in enumerate(p.outputs)
    ]
    end_stage() = emit_code!(g, StageEnd())
    end_stage()
    results = emit_program!(g, p, inputs, targets; after_stage = end_stage)
    for (k, (a, y)) in enumerate(zip(p.outputs, results))
        isscalar(a) &&
            emit_code!(g,
                :($(unsafe_store!)($(buffer_data)($(dtype(a)), results, $k),
                    $(y isa Register ? y.symbol : y))))
    end
    g.canfail && start_status!(g)
    g.arena.peak == 0 && popfirst!(g.code)
    for (v, T) in ARGUMENTS
        g.types[v] = T
    end
    KernelCode(Symbol(:kernel_, p.name, :_, COUNT[] += 1), g, g.code, Any[], 0)
end

"""
The kernel's status is the end of its workspace: where parts of the kernel find it, and nothing else
ever is."""
function start_status!(g::Generator)
    insert!(g.code, 2, :($STATUS = $(as_pointer)($Cint, $WORKSPACE, $(g.arena.peak))))
    insert!(g.code, 3, :($(unsafe_store!)($STATUS, $(Cint(0)))))
    g.arena.peak += ALIGNMENT
end
status(g::Generator) =
    g.canfail ?
    :($(unsafe_load)(
        $(as_pointer)($Cint,
            $(buffer_data)(UInt8, results, $(g.results + 1)), $(g.arena.peak - ALIGNMENT))
    )) : Cint(0)

buffer!(g, T, list, k) = local!(g, Ptr{T}, :($(buffer_data)($T, $list, $k)))
function operand!(g::Generator, v::Var, k)
    pointer = buffer!(g, dtype(v), :operands, k)
    isscalar(v) ? Register(local!(g, dtype(v), :($(unsafe_load)($pointer)))) :
    Memory(pointer, aval(v), false)
end

"The definitions of a kernel's functions, the kernel itself last, and its workspace in bytes."
function with_entry(k::KernelCode)
    g, code = k.generator, copy(k.code)
    k.slots == 0 ||
        pushfirst!(code,
            :($CONTEXT = $(buffer_data)(UInt8, results, $(g.results + 1)) + $(g.arena.peak)))
    entry = :(function $(k.name)($((:($v::$T) for (v, T) in ARGUMENTS)...))
        $(code...)
        $(status(g))
    end)
    Any[k.definitions..., entry], g.arena.peak + k.slots * SLOT
end
