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
    :assemble_vectors => assemble_vectors,      # KernelCode → KernelCode, as the next three
    :select_intrinsics => select_intrinsics,
    :outline_threads => outline_threads,
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
`ProgramTypeError` for symbolic dimensions."""
function compile(p::Program)
    definitions, workspace = kernel_code(p)
    Kernel(load_code(definitions), workspace, Expr(:block, definitions...))
end

"Machine code of a kernel's functions; a pointer to the last, the kernel itself."
function load_code(definitions)
    foreach(d -> define(d, !holds_loop(d)), definitions[1:end-1])
    f = define(definitions[end], false)
    Core.eval(Kernels, :(@cfunction($f, Cint, (Ptr{Ptr{Cvoid}}, Ptr{Ptr{Cvoid}}, Ptr{Cvoid}))))
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
