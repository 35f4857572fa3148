# What kernels may call. XLA runs them on threads of its own, on which Julia's runtime can neither
# throw, nor allocate, nor look for a method: a kernel that tries ends the process. Julia makes
# errors of what is wrong in code and throws them when it runs, so that nothing but a look at the
# code tells. For object files LLVM's text is at hand: `FunctionText` looks at that.

refused(reason) = KernelRefused("", reason, "")

"Functions that have been checked, with all that they call; those of a single kernel aside."
const CHECKED = IdDict{Any,Nothing}()

"""
Throws `KernelRefused` if the function, or one that it calls, calls what no kernel may. To be called
before it is compiled: Julia 1.5 then infers it once."""
function check_calls(root::Specialization)
    shared = Any[]
    each_reached([root]) do s
        haskey(CHECKED, call_type(s)) && return Specialization[]
        callees = inferred_calls(s)
        if callees === nothing
            reason, callees = compiled_calls(s)
            isempty(reason) || throw(refused("$reason, in $(function_name(s))"))
        end
        parentmodule(Core.Typeof(s.f)) in (Kernels, Kernels.Straight) || push!(shared, call_type(s))
        # the handler and the threads have a check of their own, test/ffi/heap.jl
        Specialization[Specialization(m) for m in callees if m.def.module !== FFI]
    end
    foreach(t -> CHECKED[t] = nothing, shared)
end
call_type(s::Specialization) = Tuple{Core.Typeof(s.f),s.types.parameters...}

"Machine code of a function; `precompile` gives false, or throws, where there is none."
make_native(s::Specialization) =
    try
        precompile(s.f, Tuple(s.types.parameters))
    catch e
        e isa InterruptException && rethrow()
        throw(refused("Julia does not compile it: $(sprint(showerror, e))"))
    end || throw(refused("Julia does not compile $(function_name(s))"))
