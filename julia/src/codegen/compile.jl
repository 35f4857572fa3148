# A Program as a function that C can call.

"""
Compiled code: `pointer` is a C function of (operands, results, pool), two arrays of pointers to XLA's buffers and an opaque pointer that
leads to threads. After the results comes one more buffer of `workspace` bytes, unless that is 0. It returns 0, or a number (a `Cint`) that
says why it failed.

It allocates nothing, throws nothing and calls nothing of Julia's runtime, so any thread may run it.
"""
struct Kernel
    pointer::Ptr{Cvoid}
    workspace::Int
    source::Expr
end

"Where compiled kernels hang."
module Kernels
Base.Experimental.@optlevel 3
"Parts of long code that have no loops: they gain little from what LLVM would take most time for."
module Straight
Base.Experimental.@optlevel 1
end
end
const COUNT = Ref(0)

"""
    compile(program) -> Kernel

Native code for a Program. Throws `UnsupportedPrimitive` where a primitive has no native kernel, `ProgramTypeError` for symbolic
dimensions."""
function compile(p::Program)
    definitions, workspace = kernel_code(p)
    foreach(d -> define(d, !holds_loop(d)), definitions[1:end-1])
    f = define(definitions[end], false)
    pointer = Core.eval(Kernels, :(@cfunction($f, Cint, (Ptr{Ptr{Cvoid}}, Ptr{Ptr{Cvoid}}, Ptr{Cvoid}))))
    Kernel(pointer, workspace, Expr(:block, definitions...))
end

function define(definition, straight)
    f = Core.eval(straight ? Kernels.Straight : Kernels, definition)
    straight && Core.eval(Kernels, :(const $(nameof(f)) = $f))
    # One by one: LLVM takes several times as long for all of them in one module.
    f isa Function && precompile(f, Tuple(fieldtypes(first(methods(f)).sig)[2:end]))
    f
end
holds_loop(ex) = false
holds_loop(ex::Expr) = ex.head in (:while, :toplevel) || any(holds_loop, ex.args)

"The definitions of a kernel's functions, the kernel itself last, and its workspace in bytes."
function kernel_code(p::Program)
    all(v -> all(d -> d isa Int, shape(v)), vcat(p.inputs, p.outputs)) ||
        throw(ProgramTypeError("$(p.name) has symbolic dimensions; native code needs sizes"))
    g = Generator(length(p.outputs))
    g.types[WORKSPACE] = Ptr{UInt8}
    flat = laid_out(windows_added(hoisted(flattened(rolled(p)))))
    emit_code!(g, :($WORKSPACE = $(buffer_data)($UInt8, results, $(length(p.outputs) + 1))))
    inputs = Storage[operand!(g, v, k) for (k, v) in enumerate(flat.inputs)]
    targets = [isscalar(a) ? nothing : Memory(buffer!(g, dtype(a), :results, k), aval(a), true) for (k, a) in enumerate(flat.outputs)]
    results = emit_program!(g, flat, inputs, targets)
    for (k, (a, y)) in enumerate(zip(flat.outputs, results))
        isscalar(a) && emit_code!(g, :($(unsafe_store!)($(buffer_data)($(dtype(a)), results, $k), $(y isa Register ? y.symbol : y))))
    end
    g.canfail && start_status!(g)
    g.arena.peak == 0 && popfirst!(g.code)
    assembled(g, Symbol(:kernel_, p.name, :_, COUNT[] += 1))
end

"The kernel's status is the end of its workspace: where parts of the kernel find it, and nothing else ever is."
function start_status!(g::Generator)
    insert!(g.code, 2, :($STATUS = $(as_pointer)($Cint, $WORKSPACE, $(g.arena.peak))))
    insert!(g.code, 3, :($(unsafe_store!)($STATUS, $(Cint(0)))))
    g.arena.peak += ALIGNMENT
end
status(g::Generator) = g.canfail ?
    :($(unsafe_load)($(as_pointer)($Cint, $(buffer_data)(UInt8, results, $(g.results + 1)), $(g.arena.peak - ALIGNMENT)))) : Cint(0)

buffer!(g, T, list, k) = local!(g, Ptr{T}, :($(buffer_data)($T, $list, $k)))
function operand!(g::Generator, v::Var, k)
    pointer = buffer!(g, dtype(v), :operands, k)
    isscalar(v) ? Register(local!(g, dtype(v), :($(unsafe_load)($pointer)))) : Memory(pointer, aval(v), false)
end

call_kernel(kernel::Ptr{Cvoid}, operands::Ptr{Ptr{Cvoid}}, results::Ptr{Ptr{Cvoid}}, pool::Ptr{Cvoid})::Cint =
    ccall(kernel, Cint, (Ptr{Ptr{Cvoid}}, Ptr{Ptr{Cvoid}}, Ptr{Cvoid}), operands, results, pool)

"""
    run(kernel, program, x) -> results

Runs the code on Julia arrays with reversed dimensions, as XLA would on its buffers."""
function run(k::Kernel, p::Program, x)
    y = Any[uninitialized(aval(a)) for a in p.outputs]
    buffers = vcat(x, y, [zeros(UInt8, k.workspace + ALIGNMENT)])
    fake(a) = (b = zeros(Int, 6); b[1+DATA_OFFSET÷8] = Int(pointer(a)); b)
    structs = map(fake, buffers)
    pointers = [Ptr{Cvoid}(pointer(b)) for b in structs]
    GC.@preserve buffers structs pointers begin
        n = length(x)
        call_kernel(k.pointer, pointer(pointers), pointer(pointers) + n * sizeof(Ptr{Cvoid}), C_NULL) == 0 || throw(OutOfMemoryError())
    end
    y
end
