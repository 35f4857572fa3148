# Programs from files, as functions of Julia values.

"""
A Program from a file, a function of values that are grouped as those of the function it was made
of. `program` has the data of its constants in it."""
struct LoadedProgram <: Function
    program::Program
    signature::Signature
end

"""
    load(path) -> function

The Program in a file that [`save`](@ref) has written, or `pybridge.save` in Python, as a function.
It runs in Julia alone, by the evaluator or compiled by [`jit`](@ref), and all transforms take it as
any other function.

Arguments are grouped as in Python: dictionaries are named tuples (or dictionaries), lists vectors,
objects named tuples of their fields (or structs). An array of shape (n, m) there has size (m, n)
here: the same memory. Numbers become those of the declared type; arrays must be of it.

Throws an `ArchiveError` for what is no archive, is damaged, or of a newer pybridge.
"""
function load(path::AbstractString)
    p, signature = read_archive(path)
    LoadedProgram(p, signature === nothing ? flat_signature(p) : signature)
end

"Of a Program of arrays in a row: its results are a tuple."
flat_signature(p::Program) =
    Signature(Parameter[Parameter("x$(k - 1)", false, LeafTree()) for k in eachindex(p.inputs)],
        NamedResult("result", GroupTree(:tuple, Tree[LeafTree() for _ in p.outputs])))

Base.show(io::IO, f::LoadedProgram) =
    print(io, named_program_text(f.program, input_names(f.signature), output_names(f.signature)))
Base.show(io::IO, ::MIME"text/plain", f::LoadedProgram) = show(io, f)
Base.print(io::IO, f::LoadedProgram) = show(io, f)
program_name(f::LoadedProgram) = f.program.name
function argument_names(f::LoadedProgram, n)
    names = String[p.name for p in f.signature.parameters if !p.keyword]
    length(names) == n ? names : ["x$k" for k in 1:n]
end

function (f::LoadedProgram)(arguments...; keywords...)
    leaves, places = Any[], String[]
    s = f.signature
    for (p, x) in zip(s.parameters, placed_arguments(f, arguments, values(keywords)))
        leaves!(leaves, places, p.tree, x, "argument $(p.name)")
    end
    given = Any[leaf_value(aval(v), x, place)
                for (v, x, place) in zip(f.program.inputs, leaves, places)]
    p = at_shapes(f.program, [x isa Number ? () : program_shape(size(x)) for x in given])
    kinds = Structure[isscalar(a) ? NumberLeaf() : ArrayLeaf() for a in p.outputs]
    results = Any[istraced(y) ? y : from_array(kind, y)
                  for (kind, y) in zip(kinds, run_program(p, given))]
    grouped(s.result, Iterators.Stateful(results))
end

# ---- arguments

"""
The arguments in the order of the inputs. Those that are passed by position may be given by name."""
function placed_arguments(f::LoadedProgram, arguments, keywords::NamedTuple)
    parameters = f.signature.parameters
    positional = [p.name for p in parameters if !p.keyword]
    given = Dict{String,Any}(zip(positional, arguments))
    named = Dict{String,Any}(String(name) => x for (name, x) in pairs(keywords))
    length(arguments) <= length(positional) && isempty(intersect(keys(given), keys(named))) &&
        Set(p.name for p in parameters) == union(keys(given), keys(named)) ||
        throw(ArgumentError(unfit(f, length(arguments), keys(keywords))))
    merge!(given, named)
    Any[given[p.name] for p in parameters]
end
function unfit(f::LoadedProgram, count, names)
    parameters = [p.keyword ? "$(p.name)=" : p.name for p in f.signature.parameters]
    "$(f.program.name) takes $(isempty(parameters) ? "no arguments" : join(parameters, ", ")); " *
    "it got $count by position" * (isempty(names) ? "" : " and $(join(names, ", ")) by name")
end

"Adds the leaves of a value of that structure, and where in the arguments they are."
leaves!(leaves, places, ::LeafTree, x, place) = (push!(leaves, x); push!(places, place))
leaves!(leaves, places, t::KnownTree, x, place) =
    x isa Symbol ? leaves!(leaves, places, t, String(x), place) :
    x == t.value || throw(ArgumentError("$place is $(repr(x)), and was $(repr(t.value)) when " *
                                        "the function was traced"))
function leaves!(leaves, places, t::Tree, x, place)
    values = parts_of(t, x)
    values === nothing && throw(ArgumentError(
        "$place is a $(typeof(x)) where $(expected(t)) is expected"))
    for (name, tree, value) in zip(part_names(t), t.parts, values)
        leaves!(leaves, places, tree, value, "$place$name")
    end
end

part_names(t::GroupTree) = ["[$k]" for k in eachindex(t.parts)]
part_names(t::KeyedTree) = ["[$(repr(k))]" for k in t.keys]
part_names(t::RecordTree) =
    t.fields === nothing ? ["[$k]" for k in eachindex(t.parts)] : [".$f" for f in t.fields]

expected(t::GroupTree) = "a $(t.kind === :tuple ? "tuple" : "vector") of $(length(t.parts))"
expected(t::KeyedTree) =
    "a named tuple or dictionary with " *
    (isempty(t.keys) ? "no keys" : "the keys $(join(t.keys, ", "))")
expected(t::RecordTree) =
    "a $(t.name)" * (t.fields === nothing ? " of $(length(t.parts)) parts" :
                     " with the fields $(join(t.fields, ", "))")

"The parts of a value in the order of the tree; nothing where it is of another structure."
parts_of(t::Tree, x) = nothing
parts_of(t::GroupTree, x::Union{Tuple,AbstractVector}) =
    length(x) == length(t.parts) ? collect(Any, x) : nothing
parts_of(t::KeyedTree, x::NamedTuple) = named_parts(t.keys, k -> Symbol(k), keys(x), x)
function parts_of(t::KeyedTree, x::AbstractDict)
    words = Dict{Any,Any}((k isa Symbol ? String(k) : k) => v for (k, v) in x)
    named_parts(t.keys, identity, keys(words), words)
end
parts_of(t::RecordTree, x::Tuple) = length(x) == length(t.parts) ? collect(Any, x) : nothing
parts_of(t::RecordTree, x) =
    t.fields === nothing ? nothing :
    named_parts(t.fields, Symbol, propertynames(x), name -> getproperty(x, name))
named_parts(wanted, key, found, x) =
    length(found) == length(wanted) && all(k -> key(k) in found, wanted) ?
    Any[part(x, key(k)) for k in wanted] : nothing
part(x, key) = x[key]
part(x::Function, key) = x(key)

"A leaf as an input of that type: numbers are converted, arrays are not."
function leaf_value(type::TensorType, x::Number, place)
    isempty(type.shape) || wrong_leaf(type, x, place)
    T = plain_type(typeof(x))
    refuse_lanes(x, "a Program from a file")
    T === type.dtype && return x
    T <: Complex && !iscomplex(type.dtype) && wrong_leaf(type, x, place)
    istraced(x) && return as_dtype(type.dtype, x)
    try
        convert(type.dtype, x)
    catch e
        e isa InexactError ? wrong_leaf(type, x, place) : rethrow()
    end
end
function leaf_value(type::TensorType, x::AbstractArray, place)
    ndims(x) == 0 && isempty(type.shape) && return leaf_value(type, x[], place)
    plain_type(eltype(x)) === type.dtype && has_shape(type.shape, reverse(size(x))) ? x :
    wrong_leaf(type, x, place)
end
leaf_value(type::TensorType, x, place) = wrong_leaf(type, x, place)
has_shape(shape, sizes) =
    length(shape) == length(sizes) && all(d isa DimExpr || d == n for (d, n) in zip(shape, sizes))

wrong_leaf(type, x, place) = throw(ArgumentError(
    "$place is $(describe_value(x)) where $(describe_type(type)) is expected"))
describe_value(x::AbstractArray) =
    "an array of size $(size(x)) and element type $(plain_type(eltype(x)))"
describe_value(x::Number) = "the number $x"
describe_value(x) = "a $(typeof(x))"
describe_type(t::TensorType) =
    isempty(t.shape) ? "a $(t.dtype)" :
    "an array of size ($(join(reverse(t.shape), ", "))) and element type $(t.dtype) (in Python " *
    "$(type_text(t)): the order of indices is the other way round)"

# ---- results

grouped(r::NamedResult, values) = grouped(r.tree, values)
grouped(r::SeveralResults, values) = Tuple(Any[grouped(part, values) for part in r.parts])
grouped(::LeafTree, values) = popfirst!(values)
grouped(t::KnownTree, values) = t.value
function grouped(t::Tree, values)
    # in order: the iterator has a state
    found = Any[]
    foreach(part -> push!(found, grouped(part, values)), t.parts)
    group_of(t, found)
end
group_of(t::GroupTree, parts) = t.kind === :tuple ? Tuple(parts) : [parts...]
group_of(t::KeyedTree, parts) =
    all(k -> k isa String, t.keys) ? NamedTuple{Tuple(map(Symbol, t.keys))}(Tuple(parts)) :
    Dict(zip(t.keys, parts))
group_of(t::RecordTree, parts) =
    t.fields === nothing ? Tuple(parts) : NamedTuple{Tuple(map(Symbol, t.fields))}(Tuple(parts))
