# What every native kernel must pass: it computes what `evaluate` does, and its code touches
# nothing of Julia's heap.

using InteractiveUtils: code_llvm

"""
    native_agrees(program, x; tolerance)

The compiled Program gives what `evaluate` gives (integers exactly, floats to rounding), leaves its
inputs alone, and does so twice."""
function native_agrees(p::Program, x::Vector{Any}; tolerance = native_tolerance(p),
    kernel = native_kernel(p))
    before, expected, y = deepcopy(x), run(p, x), JaxprAD.run(kernel, p, x)
    same_types = all(map((a, b) -> eltype(a) === eltype(b) && size(a) == size(b), y, expected))
    isequal(before, x) && same_types && isequal(y, JaxprAD.run(kernel, p, x)) &&
        all(map((a, b) -> close(a, b, tolerance), y, expected))
end
native_agrees(text::AbstractString, x...; options...) =
    native_agrees(program(text), collect(Any, map(asarray, x)); options...)

close(a, b, tolerance) = isinexact(eltype(a)) ? relative_error(Any[a], Any[b]) <= tolerance : a == b
"Sums in another order, of a few dozen numbers."
function native_tolerance(p::Program)
    types = DataType[JaxprAD.real_dtype(dtype(a)) for a in p.outputs if isinexact(dtype(a))]
    50 * largest(Float64[eps(T) for T in types])
end

"The Program's kernel in memory; with `JAXPRAD_TEST_FILES=yes` from a file, where there can be one."
function native_kernel(p::Program)
    get(ENV, "JAXPRAD_TEST_FILES", "no") == "yes" || return kernel_in_memory(p)
    try
        first(file_kernel(p))
    catch e
        e isa JaxprAD.NoObjectFile || rethrow()
        println("in no file: ", p.name, ": ", e.reason)
        kernel_in_memory(p)
    end
end
function kernel_in_memory(p::Program)
    kernel = counted(() -> JaxprAD.compile(p))
    LAST_KERNEL[] = program_text(p) => kernel
    kernel
end
"The kernel compiled last and its Program's text: most tests that run one also read its code."
const LAST_KERNEL = Ref{Pair{String,JaxprAD.Kernel}}()

"Native code takes a while to compile: `JAXPRAD_TEST_NATIVE=no` leaves these checks out."
const NATIVE = get(ENV, "JAXPRAD_TEST_NATIVE", "yes") != "no"

"""
The native code of a case's Program, and of its vjp in the same Program, agrees. Without native code
there is nothing to check."""
function native_agrees(c::Case; derivative)
    all(v -> all(d -> d isa Int, JaxprAD.shape(v)), c.program.inputs) || return true
    p, x = derivative ? (with_vjp(c.program, c.active), vcat(c.x, cotangents(c))) : (c.program, c.x)
    kernel = compiled(p)
    kernel === nothing ||
        native_agrees(p, x; tolerance = max(c.tolerance, native_tolerance(p)), kernel = kernel)
end

"Its native code, or nothing where a primitive has none."
compiled(p::Program) =
    try
        native_kernel(p)
    catch e
        e isa JaxprAD.UnsupportedPrimitive || rethrow()
        push!(UNSUPPORTED, e.primitive)
        nothing
    end
"Primitives met without native code."
const UNSUPPORTED = Set{String}()

function with_vjp(p::Program, active)
    v, b = vjp(p, active), JaxprAD.Builder()
    inputs = JaxprAD.fresh(v.inputs)
    y = JaxprAD.inline!(b, p, inputs[1:length(p.inputs)])
    Program(p.name, inputs, b.equations, vcat(y, JaxprAD.inline!(b, v, inputs)))
end

"""
    heap_free(program)

Whether the compiled Program's code, and that of all functions it calls, calls nothing but these,
LLVM's intrinsics and addresses."""
function heap_free(p::Program)
    known = isassigned(LAST_KERNEL) && LAST_KERNEL[].first == program_text(p)
    kernel = known ? LAST_KERNEL[].second : kernel_in_memory(p)
    counted(() -> holds_no_call(kernel))
end
# Each kernel's function has a type of its own: nothing here is compiled anew for it.
function holds_no_call(kernel::JaxprAD.Kernel)
    found, seen = String[], Set{Any}()
    for name in defined_names(kernel.source),
        m in methods(something(JaxprAD.constant_value(GlobalRef(JaxprAD.Kernels, name))))

        heap_uses!(found, seen, m.sig)
    end
    isempty(found)
end
heap_free(text::AbstractString) = heap_free(program(text))
defined_names(ex) = Symbol[]
function defined_names(ex::Expr)
    ex.head === :function && return [ex.args[1].args[1]]
    ex.head in (:macrocall, :toplevel, :block) ?
    reduce(vcat, map(defined_names, ex.args); init = Symbol[]) : Symbol[]
end

heap_free(@nospecialize(f), @nospecialize(types)) =
    isempty(heap_uses!(String[], Set{Any}(), Tuple{typeof(f),types...}))

"The calls of Julia's runtime in the code of a function and of those it calls."
function heap_uses!(found, seen, @nospecialize(signature))
    signature in seen && return found
    push!(seen, signature)
    f, types = function_of(signature.parameters[1]), Tuple{signature.parameters[2:end]...}
    text, caller = IOBuffer(), string(signature.parameters[1])
    code_llvm(text, f, types; debuginfo = :none)
    called = map(called_name, split(String(take!(text)), '\n'))
    append!(found,
        ("$caller calls $name" for name in called if name !== nothing && !harmless(name)))
    for (code, _) in code_typed(f, types), statement in code.code
        ex = statement isa Expr && statement.head === :(=) ? statement.args[2] : statement
        ex isa Expr && ex.head === :invoke || continue
        callee = JaxprAD.method_instance(ex.args[1])
        # of which test/ffi/heap.jl says the same
        callee.def.module === JaxprAD.FFI && continue
        # What LLVM has found to be unreachable is no call.
        any(
            name ->
                name !== nothing &&
                    occursin(Regex("^(julia|j)_\\Q$(callee.def.name)\\E_\\d+\$"), name), called) &&
            heap_uses!(found, seen, callee.specTypes)
    end
    found
end
function_of(::Type{Type{T}}) where {T} = T
function_of(@nospecialize(T::DataType)) = JaxprAD.any_value(T)

"The name of what a line of LLVM calls, or nothing; for an address the library it is in."
function called_name(line)
    m = match(r"\b(?:call|invoke)\b.*?(?:@\"?([^\"(]+)\"?\(|%\d+\(|inttoptr \(i64 (\d+) to)", line)
    m === nothing ? nothing :
    m.captures[1] !== nothing ? m.captures[1] :
    m.captures[2] === nothing ? "" : library_at(parse(Int, m.captures[2]))
end
harmless(name) = isempty(name) || occursin(r"^(llvm\.|julia_|j_|mem(cpy|set|move)$)", name)

"libjulia's name for an address in it, else an empty one: BLAS may be called, and code of our own."
function library_at(address)
    info = fill(Ptr{UInt8}(0), 4)     # Dl_info: the file's name first
    found =
        ccall(:dladdr, Cint, (Ptr{Cvoid}, Ptr{Cvoid}), Ptr{Cvoid}(address), info) != 0 &&
        info[1] != C_NULL
    file = found ? basename(unsafe_string(info[1])) : ""
    occursin("julia", file) ? file : ""
end
