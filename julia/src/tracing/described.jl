# A user's function, as a request describes it (functions/describe.jl), as a Program. Its inputs and
# results are the leaves of the arguments and of the result, as they lie in memory.

"""
A described function that was traced: `program` takes `captured`, then the leaves of the arguments,
and gives those of the result; `result` is the tree of these."""
struct DescribedTrace
    program::Program
    captured::Vector{Any}
    result::Any
end

"""
    trace(d::Functions.Description) -> DescribedTrace

The function that a request describes, as a Program.

Numbers and arrays are traced, integers among them: here they are JAX's, which are not known. Arrays
have Python's order of indices, as in a call of the function; where a description promises a result,
another one is a `ResultMismatch`, and a write to an argument is an `InputMutated` unless the
description asks for copies. `narrow` has values of 64 bits take 32 of them, as all do in JAX
without its 64-bit types."""
function trace(d::Functions.Description)
    f, tree = Functions.find_function(d), Functions.read_tree(d["arguments"])
    template, specs = Functions.slotted(tree)
    result = Ref{Any}(nothing)
    function run(leaves...)
        y = call_described(d, f, template, leaves)
        result[] = settled_result(d, y)
        Tuple(as_in_memory(v) for v in leaves_of(result[], y))
    end
    t = unchanged_globals(Functions.home(d)) do
        trace_here(run, nothing, Tuple(map(sample, specs)), flatten_state)
    end
    p, captured = with(t.program; name = program_name(d["name"])), map(plain_value, t.captured)
    d["narrow"] == "1" || return DescribedTrace(p, captured, result[])
    DescribedTrace(in_32_bits(p), map(in_32_bits, captured), in_32_bits(result[]))
end
program_name(name::AbstractString) =
    (n = replace(last(split(name, '.')), r"[^A-Za-z0-9_]" => "");
    occursin(r"^[A-Za-z_]", n) ? n : "f")

"A value of the type and size of a leaf, for a trace."
sample(s::Functions.Spec{T,0}) where {T} = traced_type(T)(zero(T))
sample(s::Functions.Spec{T,N}) where {T,N} = SampleArray{T,N}(s.size)

# ---- the call

as_in_python(x::Number) = x
as_in_python(x::AbstractArray) =
    ndims(x) > 1 ? permutedims(traced(x), ndims(x):-1:1) : copy(traced(x))
as_in_memory(x::Number) = x
as_in_memory(x::AbstractArray) = ndims(x) > 1 ? permutedims(traced(x), ndims(x):-1:1) : x

"The result of the user's function, or what it fills, in Python's order of indices."
function call_described(d, f, template, leaves)
    given = map(as_in_python, leaves)
    before = map(contents, given)
    arguments = Functions.filled(template, given)
    d["inplace"] == "1" || (y = call_traceable(d, f, arguments...))
    if d["inplace"] == "1"
        outs, specs = Functions.slotted(Functions.read_tree(d["result"]))
        y = Functions.filled(outs, map(empty_result, specs))
        call_traceable(d, f, y, arguments...)
    end
    d["inputs"] == "copy" || map(contents, given) == before ||
        throw(Functions.InputMutated(Functions.MUTATED))
    y
end
empty_result(s::Functions.Spec{T}) where {T} =
    filled_array(traced_type(T)(zero(T)), reverse(s.size))

"What tells whether an array was written to."
contents(x::Number) = nothing
contents(x::TracedArray) = (x.memory.value, copy(x.memory.pieces))

function call_traceable(d, f, arguments...)
    applicable(f, arguments...) || throw(
        TracingFailed(
            "$(d["name"]) has no method for traced arguments, " *
            "$(join(map(short_type, arguments), ", ")): traced numbers are Reals or, where " *
            "complex, Numbers, and traced arrays AbstractArrays of these: its signature has to " *
            "take them", "", nothing))
    # Not inlined, which Julia 1.12 does with functions of one line: they would have no frame, and
    # what they do no line.
    Base.inferencebarrier(f)(arguments...)
end
short_type(x::TracedNumber) = "a $(plain_type(typeof(x)))"
short_type(x::AbstractArray) = "an array of size $(size(x)) of $(plain_type(eltype(x)))"
short_type(x) = "a $(typeof(x).name.name)"

# ---- the result

"The tree of a result with traced values in it, which is that promised where one is."
function settled_result(d, y)
    found = sorted_fields(traced_spec(y))
    (d["result"] == "-" || d["inplace"] == "1") && return found
    promised = Functions.read_tree(d["result"])
    sorted_fields(promised) == found || throw(
        Functions.ResultMismatch("the function was to give $(Functions.tree_text(promised)) but " *
                                 "returned $(Functions.tree_text(found))"))
    promised
end

"The tree of a value: the types of numbers and arrays, of which some are traced."
traced_spec(y) = Functions.spec_of(y)
traced_spec(y::TracedNumber) = Functions.Spec(plain_type(typeof(y)), ())
traced_spec(y::ArrayOfTraced) = Functions.Spec(plain_type(eltype(y)), size(y))
traced_spec(y::Tuple) = map(traced_spec, y)
traced_spec(y::NamedTuple{K}) where {K} = NamedTuple{K}(map(traced_spec, Tuple(y)))

"A tree with the fields of named tuples in the order of JAX's dicts."
sorted_fields(t) = t
sorted_fields(t::Tuple) = map(sorted_fields, t)
function sorted_fields(t::NamedTuple)
    names = Tuple(sort!(collect(keys(t))))
    NamedTuple{names}(map(k -> sorted_fields(t[k]), names))
end

"The numbers and arrays of a value, in the order in which its tree has them."
leaves_of(::Functions.Spec, y) = Any[y]
leaves_of(::Nothing, y) = Any[]
leaves_of(t::Tuple, y) = reduce(vcat, map(leaves_of, t, y); init = Any[])
leaves_of(t::NamedTuple, y) =
    reduce(vcat, (leaves_of(t[k], y[k]) for k in keys(t)); init = Any[])
