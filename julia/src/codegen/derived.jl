# Derivatives of Programs by Enzyme.jl, as FFI targets. What differentiates is in the extension.

"""
A batch: the sizes of its axes, and which of them are of `directions`. Items that differ by those alone share all operands of the
Program and differ in tangents or cotangents."""
struct Batch
    sizes::Vector{Int}
    directions::Vector{Bool}
end

"An operand or a result: its type, the batch's axes that it has in front of its own, and the bytes from one item to the next along each."
struct Port
    type::TensorType
    marked::Vector{Bool}
    steps::Vector{Int}
end
function batched_port(type::TensorType, sizes, marked)
    steps, step = zeros(Int, length(sizes)), bytes(type)
    for k in reverse(findall(marked))
        steps[k] = step
        step *= sizes[k]
    end
    Port(type, marked, steps)
end
whole_type(p::Port, b::Batch) = TensorType(p.type.dtype, Dim[b.sizes[p.marked]..., p.type.shape...])

"""
A derivative of a Program on addresses of row-major arrays, for each item of a batch; `W` at a time, where they differ in direction
alone. `run` is a function of the operands' addresses, of `W` addresses of each `linear` operand, of `W` of each result, and of what leads
to XLA's threads.

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
    Derived{W,typeof(run),length(operands),length(linear),length(results)}(run, operands, linear, results, batch)

"How often Enzyme's code has run: once for as many items as it takes together."
const PASSES = Threads.Atomic{Int}(0)

function run!(d::Derived{W}, operands::Tuple, linear::Tuple, results::Tuple, pool::Ptr{Cvoid}) where {W}
    b = d.batch
    own = map(!, b.directions)
    directions = prod(b.sizes[b.directions])
    for item in 0:prod(b.sizes[own])-1, first in 0:W:directions-1
        # the last ones are as many as the others, and overlap with these
        lanes = ntuple(l -> min(first, directions - W) + l - 1, Val(W))
        at(p, address) = Ptr{Cvoid}(address + place(p.steps, b.sizes, own, item))
        each_lane(p, address) = map(k -> at(p, address) + place(p.steps, b.sizes, b.directions, k), lanes)
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

"Of so many directions, how many Enzyme takes at once: all, or an equal part of them. Its code grows in proportion."
function lanes_for(directions)
    passes = cld(directions, MOST_LANES)
    max(cld(directions, max(passes, 1)), 1)
end
const MOST_LANES = 4

linear_operands(p::Program, ::ForwardMode, active) = p.inputs[active]
linear_operands(p::Program, ::ReverseMode, active) = p.outputs
derivative_results(p::Program, ::ForwardMode, active) = p.outputs
derivative_results(p::Program, ::ReverseMode, active) = p.inputs[active]

function Derived(p::Program, mode::Mode, active, sizes, marks)
    Functions.require_enzyme()
    n, linear = length(p.inputs), linear_operands(p, mode, active)
    marks = collect(Iterators.take(marks, n + length(linear)))
    batch = Batch(sizes, [!any(m -> m[k], marks[1:n]) for k in eachindex(sizes)])
    W = lanes_for(prod(sizes[batch.directions]))
    run = Functions.by_enzyme(() -> Base.invokelatest(differentiated, p, mode, active, W); others = Functions.EnzymeFailed)
    ports(atoms, marks) = Tuple(batched_port(aval(a), sizes, m) for (a, m) in zip(atoms, marks))
    Derived{W}(run, ports(p.inputs, marks[1:n]), ports(linear, marks[n+1:end]),
               ports(derivative_results(p, mode, active), Iterators.repeated(trues(length(sizes)))), batch)
end

# ---- XLA's calls. They use Julia's heap: XLA's threads become Julia's while they are inside (Julia 1.9).

@noinline function handle(frame::Ptr{FFI.FFICallFrame}, descriptor::Ptr{FFI.Descriptor}, derived::Derived)::Ptr{Cvoid}
    f, d = unsafe_load(frame), unsafe_load(descriptor)
    FFI.answer_metadata(f.extensions) && return C_NULL
    f.stage == FFI.EXECUTE_STAGE || return C_NULL
    misfit = FFI.misfit(f, d)
    misfit == C_NULL || return misfit
    FFI.enter_gate() || return FFI.refused(f.api, d)
    FFI.ask_for_large_pages(f.results, d.bytes, d.results)
    text = nothing
    try
        run!(derived, addresses(f.operands, derived.operands), addresses(f.operands, derived.linear, length(derived.operands)),
             addresses(f.results, derived.results), Ptr{Cvoid}(frame))
    catch e
        text = Base.invokelatest(Functions.error_text, e, catch_backtrace())::String
    end
    FFI.leave_gate()
    Functions.failure(f.api, text)
end
addresses(list::FFI.FFIList, ports::NTuple{N,Port}, before = 0) where {N} = ntuple(k -> UInt(FFI.ffi_buffer(list, before + k).data), Val(N))

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
    types = TensorType[whole_type(p, d.batch) for p in (d.operands..., d.linear..., d.results...)]
    numbers = Int64[n for t in types for n in (FFI.XLA_DTYPE[t.dtype], ndims(t), Int64.(t.shape)...)]
    words = String(name)
    operands = length(d.operands) + length(d.linear)
    sizes = Int64[bytes(t) for t in types[operands+1:end]]
    FFI.kept(FFI.Descriptor[FFI.Descriptor(C_NULL, operands, length(sizes), FFI.kept(numbers), FFI.kept(sizes), FFI.kept(codeunits(words)),
                                           sizeof(words))])
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
