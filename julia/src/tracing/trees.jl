# Arguments and results: numbers and arrays in tuples, named tuples and structs.

"""
A value without its numbers: a leaf, what is known (integers, Bools, words, functions), or a
container with its parts. Equal structures are equal keys. None has a type parameter: what works
on structures is compiled once, not for each structure.
"""
abstract type Structure end
struct NumberLeaf <: Structure end
"An array, with its axes where these are not those of arrays."
struct ArrayLeaf <: Structure
    axes::Any
end
ArrayLeaf() = ArrayLeaf(nothing)
array_leaf(x) = Base.has_offset_axes(x) ? ArrayLeaf(axes(x)) : ArrayLeaf()
struct StaticValue <: Structure
    value::Any
end
struct Container <: Structure
    type::Any               # Tuple, ArrayLike, a type of named tuple or of struct, keys
    parts::Vector{Structure}
    Container(@nospecialize(type), parts) = new(type, collect(Structure, parts))
end

"""
The container's `type` of an array whose elements have parts: Julia's own, or a package's, which
may hold an array for each part. `similar` to it are arrays that can hold traced elements."""
struct ArrayLike{X,A}
    empty::X
    axes::A
end
ArrayLike(x::AbstractArray) = ArrayLike(similar(x, ntuple(_ -> 0, ndims(x))), axes(x))
array_type(a::ArrayLike) = typeof(a.empty).name
Base.:(==)(a::ArrayLike, b::ArrayLike) = array_type(a) === array_type(b) && a.axes == b.axes
Base.hash(a::ArrayLike, h::UInt) = hash(array_type(a), hash(a.axes, h))
Base.:(==)(a::Container, b::Container) = a.type == b.type && a.parts == b.parts
Base.hash(a::Container, h::UInt) = foldl((h, p) -> hash(p, h), a.parts; init = hash(a.type, h))

"The container's `type` of a dictionary, which has no order of its own."
struct DictionaryKeys
    keys::Tuple
end

const PlainNumber = Union{AbstractFloat,Complex{<:AbstractFloat},TracedNumber}

"The structure of a value; its leaves are added to `leaves`."
flatten!(leaves, x::PlainNumber) = (push!(leaves, x); NumberLeaf())
flatten!(leaves, x::ArrayOfTraced) = (push!(leaves, x); array_leaf(x))
flatten!(leaves, x::AbstractArray) =
    if haskey(NAME_OF_DTYPE, eltype(x))
        push!(leaves, x)
        array_leaf(x)
    elseif any(v -> v isa TracedNumber, x) && all(v -> v isa Number, x)
        flatten!(leaves, promoted(x))
    elseif any(hasleaves, x)
        parts = Structure[]         # a vector, whatever the array's axes
        foreach(v -> push!(parts, flatten!(leaves, v)), x)
        Container(ArrayLike(x), parts)
    else
        StaticValue(x)
    end
"An array of `Any` that holds numbers, as one of numbers of one type."
promoted(x) = copyto!(similar(x, mapreduce(typeof, promote_type, x)), x)
flatten!(leaves, @nospecialize(x::Tuple)) = Container(Tuple, fields!(leaves, x))
flatten!(leaves, @nospecialize(x::NamedTuple)) =
    Container(NamedTuple{fieldnames(typeof(x))}, fields!(leaves, x))
function flatten!(leaves, x::AbstractDict)
    any(hasleaves, values(x)) || return StaticValue(x)
    keys_in_order = Tuple(sort!(collect(keys(x)); by = repr))
    Container(DictionaryKeys(keys_in_order),
        Structure[flatten!(leaves, x[k]) for k in keys_in_order])
end
const PlainKnown = Union{Integer,Function,Type,Symbol,AbstractString,Nothing,AbstractRNG}
flatten!(leaves, x::PlainKnown) = StaticValue(x)
flatten!(leaves, @nospecialize(x)) =
    hasleaves(x) ? Container(typeof(x).name.wrapper, fields!(leaves, x)) : StaticValue(x)
fields!(leaves, @nospecialize(x)) =
    Structure[flatten!(leaves, getfield(x, k)) for k in 1:nfields(x)]

"Leaves of what a loop or a branch carries: integers and Bools among them."
struct StateLeaves
    values::Vector{Any}
end
Base.push!(leaves::StateLeaves, x) = push!(leaves.values, x)
flatten!(leaves::StateLeaves, x::Integer) = (push!(leaves, x); NumberLeaf())

"Whether `flatten` finds a leaf in x."
hasleaves(::PlainNumber) = true
hasleaves(::ArrayOfTraced) = true
hasleaves(x::AbstractArray) = haskey(NAME_OF_DTYPE, eltype(x)) || any(hasleaves, x)
hasleaves(x::AbstractDict) = any(hasleaves, values(x))
hasleaves(::PlainKnown) = false
hasleaves(@nospecialize(x)) =
    isstructtype(typeof(x)) && any(k -> hasleaves(getfield(x, k)), 1:nfields(x))

flatten(@nospecialize(x)) = (leaves = Any[]; s = flatten!(leaves, x); (leaves, s))
flatten_state(@nospecialize(x)) =
    (leaves = StateLeaves([]); s = flatten!(leaves, x); (leaves.values, s))

"The value of a structure with these leaves, in order."
assembled(s::Structure, leaves::AbstractVector) = assembled(s, Iterators.Stateful(leaves))
assembled(::NumberLeaf, leaves::Iterators.Stateful) = popfirst!(leaves)
assembled(s::ArrayLeaf, leaves::Iterators.Stateful) = with_leaf_axes(popfirst!(leaves), s.axes)
# a leaf may be `nothing`, or an array's slice
with_leaf_axes(x, ax) = x
with_leaf_axes(x::AbstractArray, ax::Tuple) = with_axes(x, ax)
assembled(s::StaticValue, leaves::Iterators.Stateful) = s.value
function assembled(s::Container, leaves::Iterators.Stateful)
    # in order: the iterator has a state
    parts = Any[]
    foreach(p -> push!(parts, assembled(p, leaves)), s.parts)
    made(s.type, parts)
end
made(::Type{Tuple}, parts) = Tuple(parts)
function made(a::ArrayLike, parts)
    y = similar(a.empty, mapreduce(typeof, Base.promote_typejoin, parts), a.axes)
    foreach((k, v) -> y[k] = v, eachindex(y), parts)
    y
end
made(T::Type{<:NamedTuple}, parts) = T(Tuple(parts))
made(d::DictionaryKeys, parts) = Dict(zip(d.keys, parts))
made(T, parts) = T(parts...)

"The type in a Program of a leaf."
leaf_type(x::Number) = TensorType(dtype_of(x))
leaf_type(x::AbstractArray) = TensorType(plain_type(eltype(x)), program_shape(size(x)))
dtype_of(x::TracedNumber) = dtype(x)
dtype_of(x::Number) = typeof(x)
isdifferentiable(x) = isinexact(leaf_type(x).dtype)

# Leaves as evaluators and kernels take them, and back.
from_array(::NumberLeaf, x) = x[]
from_array(::ArrayLeaf, x) = x
istraced(x) = x isa TracedNumber || x isa ArrayOfTraced
holds_traced(x) = istraced(x) || x isa Factorization{<:TracedNumber}

"The structures of the leaves, in order."
leaf_kinds(s::Union{NumberLeaf,ArrayLeaf}) = Structure[s]
leaf_kinds(::StaticValue) = Structure[]
leaf_kinds(s::Container) =
    foldl((all, p) -> append!(all, leaf_kinds(p)), s.parts; init = Structure[])
