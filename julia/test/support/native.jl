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
    get(ENV, "JAXPRAD_TEST_FILES", "no") == "yes" || return counted(() -> JaxprAD.compile(p))
    try
        first(file_kernel(p))
    catch e
        e isa JaxprAD.NoObjectFile || rethrow()
        println("in no file: ", p.name, ": ", e.reason)
        JaxprAD.compile(p)
    end
end

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
heap_free(p::Program) = counted(() -> holds_no_call(p))
function holds_no_call(p::Program)
    definitions, _ = JaxprAD.kernel_code(p)
    names = Symbol[]
    for d in definitions
        Core.eval(JaxprAD.Kernels, JaxprAD.in_process(d))
        append!(names, defined_names(d))
    end
    all(f -> all(method -> heap_free(f, Tuple(method.sig.parameters[2:end])), methods(f)),
        [getfield(JaxprAD.Kernels, f) for f in names])
end
heap_free(text::AbstractString) = heap_free(program(text))
defined_names(ex) = Symbol[]
function defined_names(ex::Expr)
    ex.head === :function && return [ex.args[1].args[1]]
    ex.head in (:macrocall, :toplevel, :block) ?
    reduce(vcat, map(defined_names, ex.args); init = Symbol[]) : Symbol[]
end

heap_free(f, types; seen = Set{Any}()) =
    isempty(heap_uses!(String[], seen, Tuple{typeof(f),types...}))

"The calls of Julia's runtime in the code of a function and of those it calls."
function heap_uses!(found, seen, signature)
    signature in seen && return found
    push!(seen, signature)
    f, types = function_of(signature.parameters[1]), Tuple{signature.parameters[2:end]...}
    called = map(called_name, split(sprint(io -> code_llvm(io, f, types; debuginfo = :none)), '\n'))
    append!(found, ("$f calls $name" for name in called if name !== nothing && !harmless(name)))
    for (code, _) in code_typed(f, types), statement in code.code
        ex = statement isa Expr && statement.head === :(=) ? statement.args[2] : statement
        ex isa Expr && ex.head === :invoke || continue
        callee = ex.args[1]
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
# Of a function with fields any values do.
function_of(T::DataType) =
    isdefined(T, :instance) ? T.instance : reinterpret(T, zeros(UInt8, sizeof(T)))[1]

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
