# Derivatives of Programs by Enzyme.jl, as FFI targets. What differentiates is in the extension.

"""
A batch: the sizes of its axes, and which of them are of `directions`. Items that differ by those
alone share all operands of the Program and differ in tangents or cotangents."""
struct Batch
    sizes::Vector{Int}
    directions::Vector{Bool}
end

"""
An operand or a result: its type, the batch's axes that it has in front of its own, and the bytes
from one item to the next along each."""
struct Port
    type::TensorType
    batched::Vector{Bool}
    steps::Vector{Int}
end
function batched_port(type::TensorType, sizes, batched)
    steps, step = zeros(Int, length(sizes)), bytes(type)
    for k in reverse(findall(batched))
        steps[k] = step
        step *= sizes[k]
    end
    Port(type, batched, steps)
end
whole_type(p::Port, b::Batch) =
    TensorType(p.type.dtype, Dim[b.sizes[p.batched]..., p.type.shape...])

"""
A derivative of a Program on addresses of row-major arrays, for each item of a batch; `W` at a time,
where they differ in direction alone. `run` is a function of the operands' addresses, of `W`
addresses of each `linear` operand, of `W` of each result, and of what leads to XLA's threads.

- operands: those of the Program
- linear: tangents of the active ones (forward) or cotangents of the results (reverse)
- results: tangents of the results, or cotangents of the active operands

All results of the Program are inexact.
"""
struct Derived{W,R,I,L,O}
    run::R
    operands::NTuple{I,Port}
    linear::NTuple{L,Port}
    results::NTuple{O,Port}
    batch::Batch
end
Derived{W}(run, operands, linear, results, batch) where {W} =
    Derived{W,typeof(run),length(operands),length(linear),length(results)}(run, operands, linear,
        results, batch)

"How often Enzyme's code has run: once for as many items as it takes together."
const PASSES = Threads.Atomic{Int}(0)

function run!(d::Derived{W}, operands::Tuple, linear::Tuple, results::Tuple,
    pool::Ptr{Cvoid}) where {W}
    b = d.batch
    own = map(!, b.directions)
    directions = prod(b.sizes[b.directions])
    for item in 0:prod(b.sizes[own])-1, first in 0:W:directions-1
        # the last ones are as many as the others, and overlap with these
        lanes = ntuple(l -> min(first, directions - W) + l - 1, Val(W))
        at(p, address) = Ptr{Cvoid}(address + place(p.steps, b.sizes, own, item))
        each_lane(p, address) =
            map(k -> at(p, address) + place(p.steps, b.sizes, b.directions, k), lanes)
        Threads.atomic_add!(PASSES, 1)
        d.run(Functions.each(at, d.operands, operands), Functions.each(each_lane, d.linear, linear),
            Functions.each(each_lane, d.results, results), pool)
    end
end
"The bytes to an item, numbered along some of the axes."
function place(steps, sizes, along, item)
    offset = 0
    for k in length(sizes):-1:1
        along[k] || continue
        item, i = divrem(item, sizes[k])
        offset += i * steps[k]
    end
    offset
end

"The function `run` of a Program's derivative, `W` at a time; the extension has the method."
function differentiated end

"""
Of so many directions, how many Enzyme takes at once: all, or an equal part of them. Its code grows
in proportion."""
function lanes_for(directions)
    passes = cld(directions, MOST_LANES)
    max(cld(directions, max(passes, 1)), 1)
end

derivative_operands(p::Program, ::ForwardMode, active) = p.inputs[active]
derivative_operands(p::Program, ::ReverseMode, active) = p.outputs
derivative_results(p::Program, ::ForwardMode, active) = p.outputs
derivative_results(p::Program, ::ReverseMode, active) = p.inputs[active]

function Derived(p::Program, mode::Mode, active, sizes, batched_axes)
    Functions.require_enzyme()
    n, linear = length(p.inputs), derivative_operands(p, mode, active)
    batched_axes = collect(Iterators.take(batched_axes, n + length(linear)))
    batch = Batch(sizes, [!any(m -> m[k], batched_axes[1:n]) for k in eachindex(sizes)])
    W = lanes_for(prod(sizes[batch.directions]))
    run = Functions.by_enzyme(() -> Base.invokelatest(differentiated, p, mode, active, W);
        others = Functions.EnzymeFailed)
    ports(atoms, batched_axes) =
        Tuple(batched_port(aval(a), sizes, m) for (a, m) in zip(atoms, batched_axes))
    Derived{W}(run, ports(p.inputs, batched_axes[1:n]), ports(linear, batched_axes[n+1:end]),
        ports(derivative_results(p, mode, active), Iterators.repeated(trues(length(sizes)))), batch)
end

# ---- XLA's calls, which use Julia's heap: XLA's threads become Julia's meanwhile (Julia 1.9)

@noinline function handle(frame::Ptr{FFI.FFICallFrame}, descriptor::Ptr{FFI.Descriptor},
    derived::Derived)::Ptr{Cvoid}
    f, d = unsafe_load(frame), unsafe_load(descriptor)
    FFI.answer_metadata(f.extensions) && return C_NULL
    f.stage == FFI.EXECUTE_STAGE || return C_NULL
    misfit = FFI.misfit(f, d)
    misfit == C_NULL || return misfit
    FFI.enter_gate() || return FFI.refused(f.api, d)
    FFI.ask_for_large_pages(f.results, d.bytes, d.results)
    text = nothing
    try
        run!(derived, addresses(f.operands, derived.operands),
            addresses(f.operands, derived.linear, length(derived.operands)),
            addresses(f.results, derived.results), Ptr{Cvoid}(frame))
    catch e
        text = Base.invokelatest(Functions.error_text, e, catch_backtrace())::String
    end
    FFI.leave_gate()
    Functions.failure(f.api, text)
end
addresses(list::FFI.FFIList, ports::NTuple{N,Port}, before = 0) where {N} =
    ntuple(k -> UInt(FFI.ffi_buffer(list, before + k).data), Val(N))

"By what they are derivatives of: XLA may call a target as long as the process lives."
const DERIVED_HANDLERS = Dict{String,UInt}()

function derived_handler(make, key::AbstractString, name::AbstractString)
    get!(DERIVED_HANDLERS, key) do
        isempty(DERIVED_HANDLERS) && atexit(FFI.close_gate)
        d = make()
        types(ports) = TensorType[whole_type(p, d.batch) for p in ports]
        descriptor = FFI.descriptor(name,
            FFI.Buffers(types((d.operands..., d.linear...)), types(d.results)))
        f = gensym(:derived)
        Core.eval(Kernels, :($f(frame::Ptr{$(FFI.FFICallFrame)}) = $handle(frame, $descriptor, $d)))
        # All is compiled before XLA may call: its threads' stacks are small, and Enzyme compiles
        # one function at a time.
        Functions.by_enzyme(others = Functions.EnzymeFailed) do
            Base.invokelatest(precompile, handle,
                (Ptr{FFI.FFICallFrame}, Ptr{FFI.Descriptor}, typeof(d)))
        end
        UInt(Core.eval(Kernels, :(@cfunction($f, Ptr{Cvoid}, (Ptr{$(FFI.FFICallFrame)},)))))
    end
end
