# What a trace writes to. Each operation on traced values goes to the innermost trace under way;
# what it uses of the traces around it, and arrays of the user's, become further inputs.

"""
A trace under way in this task, inside of `outer`. `captured` are values of `outer` (atoms) and
arrays of the user's that the Program takes before its arguments, `inputs` their variables.
"""
mutable struct OpenTrace
    builder::Builder
    outer::Union{OpenTrace,Nothing}
    captured::Vector{Any}
    inputs::Vector{Var}
    found::IdDict{Any,Int}          # place in `captured`
    random::Any                     # the state that random numbers would change, if refused
end
OpenTrace(outer, random = nothing) =
    OpenTrace(Builder(), outer, [], Var[], IdDict{Any,Int}(), random)

"An array of the user's as it was when it was used."
struct CapturedArray
    array::AbstractArray
    copy::Array
end

const RECORDING = :JaxprAD_recording
"The innermost trace under way in this task, or nothing."
recording() = get(task_local_storage(), RECORDING, nothing)::Union{OpenTrace,Nothing}
function open_recording()
    r = recording()
    r === nothing && throw(
        EscapedTracer("a traced value is used after its trace has ended: a function that is " *
                      "traced must return what is needed of it", user_line()))
    r
end
"`f(r)` with the trace `r` the innermost."
record(f, r::OpenTrace) = task_local_storage(() -> f(r), RECORDING, r)

"""
    emit_here(op, operands, attributes) -> results

Appends an equation to the innermost trace, with the user's line."""
function emit_here(@nospecialize(op::Primitive), operands, attrs::Attributes, r = open_recording())
    line = user_line()
    # after the user's code has returned, the last line is the one that it returned from
    isempty(line) || (r.builder.source = line)
    check_random(r, line)
    emit!(r.builder, op, operands, attrs)
end
emit_here(op::Symbol, operands::Atom...; attrs...) =
    only_one(emit_here(primitive(op), Atom[operands...], as_attributes(values(attrs))))

"The atom in trace `r` of an atom of the trace `home`, which is `r` or around it."
function atom_in(r::Union{OpenTrace,Nothing}, a::Atom, home)
    (a isa Literal || r === home) && return a
    r === nothing && throw(
        EscapedTracer("a traced value is used outside of its trace: it was kept in a variable " *
                      "of another function", user_line()))
    captured!(r, atom_in(r.outer, a, home))
end
atom_in(r, x::Number) = Literal(x)
captured!(r::OpenTrace, a::Literal) = a
captured!(r::OpenTrace, a::Var) = capture!(r, a, a, aval(a))

function capture!(r::OpenTrace, key, value, type)
    k = get!(r.found, key) do
        push!(r.captured, value)
        push!(r.inputs, Var(type))
        length(r.inputs)
    end
    r.inputs[k]
end

const MOST_INLINE = 64      # elements of a constant that stands in a Program's text

"The atom in trace `r` of an array of the user's: a constant, or a further input."
function captured_array(r::OpenTrace, x::AbstractArray)
    T = eltype(x)
    haskey(NAME_OF_DTYPE, T) || untraceable(
        "an array of element type $T is no array of numbers that a Program may hold")
    type = TensorType(T, collect(Dim, reverse(size(x))))
    length(x) <= MOST_INLINE && return constant_atom(r, x, type)
    k = get(r.found, x, 0)
    # what was used before may have changed since
    k > 0 && !isunchanged(r.captured[k]) && delete!(r.found, x)
    haskey(r.found, x) ? r.inputs[r.found[x]] :
    capture!(r, x, CapturedArray(x, copy(as_array(x))), type)
end
"The elements as an Array, whose indices count from 1."
as_array(x::Number) = fill(x)
as_array(x::Array) = x
as_array(x::AbstractArray{T}) where {T} =
    Base.has_offset_axes(x) ? copyto!(Array{T}(undef, size(x)), x) : Array(x)
isunchanged(x::CapturedArray) = isequal(as_array(x.array), x.copy)

function constant_atom(r, x, type)
    isempty(type.shape) && return Literal(x[])
    !isempty(x) && all(isequal(first(x)), x) &&
        return only_one(emit_here(primitive(:broadcast_in_dim), Atom[Literal(first(x))],
            Attributes(:shape => type.shape, :dims => Int[]), r))
    only_one(emit_here(primitive(:constant), Atom[],
        Attributes(:value => constant_numbers(x), :type => type), r))
end
