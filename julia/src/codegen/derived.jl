# Derivatives of Programs by Enzyme.jl, as FFI targets. What differentiates is in the extension.

"An operand or a result: its type; of a batch the axes that it has, and the bytes from one item to the next along each."
struct Port
    type::TensorType
    marked::Vector{Bool}
    steps::Vector{Int}
end

"The port of an array that has, in front of its own axes, those axes of the batch that are marked."
function batched_port(type::TensorType, batch, marked)
    steps, step = zeros(Int, length(batch)), bytes(type)
    for k in reverse(findall(marked))
        steps[k] = step
        step *= batch[k]
    end
    Port(type, marked, steps)
end
batched_type(p::Port, batch) = TensorType(p.type.dtype, Dim[batch[p.marked]..., p.type.shape...])

"""
A derivative of a Program on addresses of row-major arrays, once for each item of a batch. `run` is a function of two tuples of
addresses and of what leads to XLA's threads.

- operands: those of the Program, then tangents of the active ones (forward) or cotangents of the results (reverse)
- results: tangents of the results, or cotangents of the active operands

All results of the Program are inexact.
"""
struct Derived{R,I,O}
    run::R
    operands::NTuple{I,Port}
    results::NTuple{O,Port}
    batch::Vector{Int}
end

function run!(d::Derived, operands::Tuple, results::Tuple, pool::Ptr{Cvoid})
    for item in 0:prod(d.batch)-1
        at(p, address) = Ptr{Cvoid}(address + place(p.steps, d.batch, item))
        d.run(map(at, d.operands, operands), map(at, d.results, results), pool)
    end
end
function place(steps, batch, item)
    offset = 0
    for k in length(batch):-1:1
        item, i = divrem(item, batch[k])
        offset += i * steps[k]
    end
    offset
end

"The function `run` of a Program's derivative; the extension has the method."
function differentiated end

extra_operands(p::Program, ::ForwardMode, active) = p.inputs[active]
extra_operands(p::Program, ::ReverseMode, active) = p.outputs
derivative_results(p::Program, ::ForwardMode, active) = p.outputs
derivative_results(p::Program, ::ReverseMode, active) = p.inputs[active]

function Derived(p::Program, mode::Mode, active, batch, marks)
    Functions.require_enzyme()
    run = Functions.by_enzyme(() -> Base.invokelatest(differentiated, p, mode, active); others = Functions.EnzymeFailed)
    operands = Tuple(batched_port(aval(a), batch, m) for (a, m) in zip([p.inputs; extra_operands(p, mode, active)], marks))
    results = Tuple(batched_port(aval(a), batch, trues(length(batch))) for a in derivative_results(p, mode, active))
    Derived(run, operands, results, batch)
end

# ---- XLA's calls. They use Julia's heap: XLA's threads become Julia's while they are inside (Julia 1.9).

@noinline function handle(frame::Ptr{FFI.FFICallFrame}, descriptor::Ptr{FFI.Descriptor}, derived::Derived)::Ptr{Cvoid}
    f, d = unsafe_load(frame), unsafe_load(descriptor)
    FFI.answer_metadata(f.extensions) && return C_NULL
    f.stage == FFI.EXECUTE_STAGE || return C_NULL
    misfit = FFI.misfit(f, d)
    misfit == C_NULL || return misfit
    FFI.enter_gate() || return FFI.refused(f.api, d)
    text = nothing
    try
        run!(derived, addresses(f.operands, derived.operands), addresses(f.results, derived.results), Ptr{Cvoid}(frame))
    catch e
        text = Base.invokelatest(Functions.error_text, e, catch_backtrace())::String
    end
    FFI.leave_gate()
    Functions.failure(f.api, text)
end
addresses(list::FFI.FFIList, ports::NTuple{N,Port}) where {N} = ntuple(k -> UInt(FFI.ffi_buffer(list, k).data), Val(N))

"By what they are derivatives of: XLA may call a target as long as the process lives."
const DERIVED_HANDLERS = Dict{String,UInt}()

function derived_handler(make, key::AbstractString, name::AbstractString)
    get!(DERIVED_HANDLERS, key) do
        isempty(DERIVED_HANDLERS) && atexit(FFI.close_gate)
        d = make()
        descriptor = derived_descriptor(d, name)
        f = gensym(:derived)
        Core.eval(Kernels, :($f(frame::Ptr{$(FFI.FFICallFrame)}) = $handle(frame, $descriptor, $d)))
        # All is compiled before XLA may call: its threads' stacks are small, and Enzyme compiles one function at a time.
        Functions.by_enzyme(others = Functions.EnzymeFailed) do
            Base.invokelatest(precompile, handle, (Ptr{FFI.FFICallFrame}, Ptr{FFI.Descriptor}, typeof(d)))
        end
        UInt(Core.eval(Kernels, :(@cfunction($f, Ptr{Cvoid}, (Ptr{$(FFI.FFICallFrame)},)))))
    end
end

function derived_descriptor(d::Derived, name)
    types = TensorType[batched_type(p, d.batch) for p in (d.operands..., d.results...)]
    numbers = Int64[n for t in types for n in (FFI.XLA_DTYPE[t.dtype], ndims(t), Int64.(t.shape)...)]
    words = String(name)
    FFI.kept(FFI.Descriptor[FFI.Descriptor(C_NULL, length(d.operands), length(d.results), FFI.kept(numbers), FFI.kept(codeunits(words)), sizeof(words))])
end

# The request `enzyme KEY MODE ACTIVE BATCH MARKS REF=ADDRESS,…`: the derivative's FFI handler. BATCH is the batch's sizes, MARKS the axes
# of it that each operand has, both separated by commas, or `-`.
function answer(::Val{:enzyme}, body, arguments)
    key, mode, active, batch, marks, references = arguments
    p = checked(body)
    numbers = batch == "-" ? Int[] : [parse(Int, n) for n in split(batch, ',')]
    digits = batch == "-" ? Iterators.repeated(Bool[]) : [Bool[c == '1' for c in m] for m in split(marks, ',')]
    string(derived_handler(key, p.name) do
        with_constants(() -> Derived(p, mode == "forward" ? ForwardMode() : ReverseMode(), mask(active), numbers, digits), p, addresses_of(references))
    end)
end
