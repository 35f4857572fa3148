# Traced functions as native code.

"Native code, and the arrays of the user's that are constants in it and may not change."
struct CompiledTrace
    traced::TracedFunction
    kernel::Kernel
    constants::Vector{CapturedArray}
end

"""
What native code is compiled for: the arguments' structure, the types of the leaves, and of each the
number of dimensions and the sizes. A call looks it up, so that hashing must be cheap."""
struct CallKey
    structure::Structure
    types::Vector{DataType}
    sizes::Vector{Int}
end
function CallKey(structure, arrays)
    sizes = Int[]
    foreach(v -> (push!(sizes, ndims(v)); append!(sizes, size(v))), arrays)
    CallKey(structure, DataType[eltype(v) for v in arrays], sizes)
end
Base.:(==)(a::CallKey, b::CallKey) =
    a.sizes == b.sizes && a.types == b.types && a.structure == b.structure
Base.hash(k::CallKey, h::UInt) = foldl((h, n) -> hash(n, h), k.sizes; init = hash(k.structure, h))

"""
A function with the native code made of it for each structure and types of arguments, and its
derivatives in native code, once something has asked for them."""
struct JitFunction
    f::Any
    compiled::Dict{CallKey,CompiledTrace}
    derivatives::Dict{Symbol,JitFunction}
    lock::ReentrantLock
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
    JitFunction(f, Dict{CallKey,CompiledTrace}(), Dict{Symbol,JitFunction}(), ReentrantLock())
argument_names(j::JitFunction, n) = argument_names(j.f, n)
program_name(j::JitFunction) = program_name(j.f)

(j::JitFunction)(@nospecialize(x...)) = call_compiled(j, x)

function call_compiled(j::JitFunction, @nospecialize(x))
    leaves, structure = flatten(x)
    any(istraced, leaves) && return j.f(x...)
    arrays = Any[as_array(v) for v in leaves]
    c = compiled(j, CallKey(structure, arrays), x)
    foreach(check_unchanged, c.constants)
    t = c.traced
    y = run(c.kernel, t.program, vcat(Any[plain_value(v) for v in t.captured], arrays))
    assembled(t.result, leaf_results(t.result, y))
end

"What is compiled for arguments with this key. No closures, which would have a type for each x."
function compiled(j::JitFunction, key, @nospecialize(x))
    lock(j.lock)
    try
        c = get(j.compiled, key, nothing)
        c === nothing ? (j.compiled[key] = compiled_trace(j.f, x)) : c
    finally
        unlock(j.lock)
    end
end

function compiled_trace(@nospecialize(f), @nospecialize(x))
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
