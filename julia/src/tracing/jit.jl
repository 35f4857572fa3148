# Traced functions as native code.

"""
A function with the native code made of it for each structure and types of arguments, and its
derivatives in native code, once something has asked for them."""
struct JitFunction
    f::Any
    compiled::Dict{Any,Any}
    derivatives::Dict{Symbol,JitFunction}
    lock::ReentrantLock
end
"Native code, and the arrays of the user's that are constants in it and may not change."
struct CompiledTrace
    traced::TracedFunction
    kernel::Kernel
    constants::Vector{CapturedArray}
end

"""
    jit(f) -> function

`f` compiled: traced, simplified and turned into native code at the first call with arguments of
some types, sizes and known values, and that code afterwards. Known values (integers, Bools, all
that is no number or array of them) are part of what is compiled. Arrays that `f` closes over are
constants: where one has changed since, the call throws `CapturedArrayChanged`. Within a trace it is
`f`.

    julia> f = jit(x -> gradient(z -> sum(z .^ 3), x));

    julia> f([1.0, 2.0])
    [3.0, 12.0]
"""
jit(@nospecialize(f)) =
    JitFunction(f, Dict{Any,Any}(), Dict{Symbol,JitFunction}(), ReentrantLock())
argument_names(j::JitFunction, n) = argument_names(j.f, n)
program_name(j::JitFunction) = program_name(j.f)

function (j::JitFunction)(x...)
    leaves, structure = flatten(x)
    any(istraced, leaves) && return j.f(x...)
    arrays = Any[as_array(v) for v in leaves]
    key = (structure, Tuple((eltype(v), size(v)) for v in arrays))
    c = lock(() -> get!(() -> compiled_trace(j.f, x), j.compiled, key), j.lock)::CompiledTrace
    foreach(check_unchanged, c.constants)
    t = c.traced
    y = run(c.kernel, t.program, vcat(Any[plain_value(v) for v in t.captured], arrays))
    assembled(t.result, leaf_results(t.result, y))
end

function compiled_trace(@nospecialize(f), x)
    t = trace_here(f, nothing, x)
    p = typecheck(optimize(t.program))
    # what the traced code itself has changed is a buffer of its own
    constants = CapturedArray[x for x in t.captured if isunchanged(x)]
    traced = TracedFunction(p, t.captured, t.names, t.arguments, t.result)
    CompiledTrace(traced, compile(p), constants)
end

check_unchanged(x::CapturedArray) =
    isunchanged(x) || throw(
        CapturedArrayChanged(
            "an array of size $(size(x.array)) that a compiled function closes over has changed " *
            "since it was compiled: make it an argument", user_line())
    )
