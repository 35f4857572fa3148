# A Program as a function that C can call: the stages of the compiler.

"""
Compiled code: `pointer` is a C function of (operands, results, pool), two arrays of pointers to
XLA's buffers and an opaque pointer that leads to threads. After the results comes one more buffer
of `workspace` bytes, unless that is 0. It returns 0, or a number (a `Cint`) that says why it
failed.

It allocates nothing, throws nothing and calls nothing of Julia's runtime, so any thread may run it.
"""
struct Kernel
    pointer::Ptr{Cvoid}
    workspace::Int
    source::Expr
end

"""
The stages by name, each a function of what the one before gives; the last gives the definitions and
the bytes of workspace."""
const STAGES = [
    :check_sizes => check_sizes,                # Program → Program, or a refusal
    :prepare => prepare_native,                 # Program → Program, by NATIVE_PASSES
    :lower => lower,                            # Program → KernelCode: plan, loop nests, kernels
    :assemble_vectors => assemble_vectors,      # KernelCode → KernelCode, as the next five
    :select_intrinsics => select_intrinsics,
    :outline_threads => outline_threads,
    :share_functions => share_functions,
    :outline_bodies => outline_bodies,
    :outline_functions => outline_functions,
    :with_entry => with_entry,
]

"""
The definitions of a kernel's functions, the kernel itself last, and its workspace in bytes.
`run(name, stage, x)` runs a stage."""
kernel_code(p::Program) = kernel_code((name, stage, x) -> stage(x), p)
kernel_code(run, p::Program) =
    foldl((x, (name, stage)) -> run(name, stage, x), STAGES; init = p)

"""
    compile(program) -> Kernel

Native code for a Program. Throws `UnsupportedPrimitive` where a primitive has no native kernel,
`KernelRefused` where the code calls Julia's runtime, `ProgramTypeError` for symbolic dimensions."""
compile(p::Program) = naming_refused(p) do
    definitions, workspace = kernel_code(p)
    Kernel(load_code(definitions), workspace, Expr(:block, definitions...))
end

"Machine code of a kernel's functions; a pointer to the last, the kernel itself."
function load_code(definitions)
    foreach(d -> load_definition(d, !holds_loop(d)), definitions[1:end-1])
    f = load_definition(definitions[end], false)
    Core.eval(Kernels, :(@cfunction($f, Cint, (Ptr{Ptr{Cvoid}}, Ptr{Ptr{Cvoid}}, Ptr{Cvoid}))))
end
# One by one: LLVM takes several times as long for all of them in one module.
function load_definition(definition, straight)
    f = define(definition, straight)
    f isa Function && (s = only_specialization(f); check_calls(s); make_native(s))
    f
end

"`f()`; a `KernelRefused` that it throws is thrown with the equation that it is of."
function naming_refused(f, p::Program)
    try
        return f()
    catch e
        e isa KernelRefused && isempty(e.primitive) || rethrow()
        throw(with_equation(e, refused_equation(p)))
    end
end
with_equation(e::KernelRefused, ::Nothing) = KernelRefused("kernel", e.message, e.source)
with_equation(e::KernelRefused, eqn::Equation) =
    KernelRefused(string(name(eqn.op)), e.message, eqn.source)

"The first equation whose code is refused by itself, the innermost of nested ones; or nothing."
function refused_equation(p::Program)
    for e in p.equations
        check_cancelled()
        isrefused(e) || continue
        inner = Any[refused_equation(body) for body in bodies(e)]
        return something(filter(!isnothing, inner)..., e)
    end
    nothing
end
function isrefused(e::Equation)
    inputs = unique(Var[a for a in e.inputs if a isa Var])
    definitions, _ = try
        kernel_code(Program("one", inputs, [e], collect(Atom, e.outputs)))
    catch
        return false
    end
    try
        load_code(definitions)
        return false
    catch problem
        return problem isa KernelRefused
    end
end

call_kernel(kernel::Ptr{Cvoid}, operands::Ptr{Ptr{Cvoid}}, results::Ptr{Ptr{Cvoid}},
    pool::Ptr{Cvoid})::Cint =
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
        call_kernel(k.pointer, pointer(pointers), pointer(pointers) + n * sizeof(Ptr{Cvoid}),
            C_NULL) == 0 || throw(OutOfMemoryError())
    end
    y
end
