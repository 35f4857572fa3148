# XLA's calls of Julia functions. These use Julia's heap, so they run where a thread that is not
# Julia's becomes one: Julia 1.9 and later. Before that a request of the control thread's runs them,
# on addresses that Python tells.

const ADOPTS_THREADS = VERSION >= v"1.9"

@noinline function handle(frame::Ptr{FFICallFrame}, descriptor::Ptr{Descriptor},
    runner::Runner)::Ptr{Cvoid}
    f, d = unsafe_load(frame), unsafe_load(descriptor)
    FFI.answer_metadata(f.extensions) && return C_NULL
    f.stage == EXECUTE_STAGE || return C_NULL
    misfit = FFI.misfit(f, d)
    misfit == C_NULL || return misfit
    FFI.enter_gate() || return FFI.refused(f.api, d)
    text = outcome(runner, addresses(f.operands, runner.operands),
        addresses(f.results, runner.results))
    FFI.leave_gate()
    failure(f.api, text)
end
failure(api, ::Nothing) = C_NULL
failure(api, text::String) = GC.@preserve text FFI.create_error(api, INTERNAL, pointer(text))

"""
Runs and gives the error's text, if there is one. On a task, for its stack: recursion that runs away
is then an error, while on a stack that is not Julia's it ends the process.
"""
function outcome(runner::Runner, operands, results)
    task = Task(() -> attempt(runner, operands, results))
    yield(task)
    fetch(task)::Union{Nothing,String}
end
function attempt(runner, operands, results)
    try
        run!(runner, operands, results)
        nothing
    catch e
        Base.invokelatest(error_text, e, catch_backtrace())::String
    end
end

@generated addresses(list::FFI.FFIList, ports::Tuple) =
    Expr(:tuple, (:(UInt(FFI.ffi_buffer(list, $i).data)) for i in 1:fieldcount(ports))...)

"What Python reads back into a JuliaError: the text that answers a request that failed."
const ERROR_MARK = "JuliaError in a call of a Julia function\n"
const INTERNAL = Cint(13)

error_text(e, trace) = ERROR_MARK * failure_text(e, trace)

"Not empty once the gate is to close at exit."
const GATED = Bool[]

"The handler of a runner: a C function of its own, as for a kernel."
function handler(r::Runner, name::AbstractString)
    isempty(GATED) && (atexit(FFI.close_gate); push!(GATED, true))
    d = FFI.descriptor(name, FFI.Buffers(array_types(r, r.operands), array_types(r, r.results)))
    f = gensym(:function)
    Core.eval(@__MODULE__, :($f(frame::Ptr{FFICallFrame}) = handle(frame, $d, $r)))
    # before XLA may call: its threads' stacks are small, and Enzyme compiles one function at a time
    compiling(r) do
        types = Tuple{NTuple{length(r.operands),UInt},NTuple{length(r.results),UInt}}.parameters
        Base.invokelatest(precompile, run!, (typeof(r), types...))
        Base.invokelatest(precompile, handle, (Ptr{FFICallFrame}, Ptr{Descriptor}, typeof(r)))
    end
    UInt(Core.eval(@__MODULE__, :(@cfunction($f, Ptr{Cvoid}, (Ptr{FFICallFrame},)))))
end

"What XLA hands over: row-major, the batch's axis first."
array_types(r::Runner, ports) = TensorType[array_type(r, p) for p in ports]
array_type(r::Runner, p::Port{T}) where {T} =
    TensorType(T, Dim[(p.batched ? (r.batch,) : ())..., reverse(p.size)...])
