# Arguments and results: numbers and arrays in tuples, named tuples and structs.

"""
A value without its numbers: a leaf, what is known (integers, Bools, words, functions), or a
container with its parts. Immutable, so that equal structures are equal keys.
"""
abstract type Structure end
struct NumberLeaf <: Structure end
"An array, with its axes where these are not those of arrays."
struct ArrayLeaf{A} <: Structure
    axes::A
end
ArrayLeaf() = ArrayLeaf(nothing)
array_leaf(x) = Base.has_offset_axes(x) ? ArrayLeaf(axes(x)) : ArrayLeaf()
struct StaticValue{T} <: Structure
    value::T
end
struct Container{T<:Tuple} <: Structure
    type::Any               # Tuple, ArrayLike, a type of named tuple or of struct, keys
    parts::T
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
Base.hash(a::Container, h::UInt) = hash(a.type, hash(a.parts, h))

"The container's `type` of a dictionary, which has no order of its own."
struct DictionaryKeys{T<:Tuple}
    keys::T
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
        Container(ArrayLike(x), Tuple(flatten!(leaves, v) for v in x))
    else
        StaticValue(x)
    end
"An array of `Any` that holds numbers, as one of numbers of one type."
promoted(x) = copyto!(similar(x, mapreduce(typeof, promote_type, x)), x)
flatten!(leaves, x::Tuple) = Container(Tuple, map(v -> flatten!(leaves, v), x))
flatten!(leaves, x::NamedTuple{names}) where {names} =
    Container(NamedTuple{names}, map(v -> flatten!(leaves, v), Tuple(x)))
function flatten!(leaves, x::AbstractDict)
    any(hasleaves, values(x)) || return StaticValue(x)
    keys_in_order = Tuple(sort!(collect(keys(x)); by = repr))
    Container(DictionaryKeys(keys_in_order), map(k -> flatten!(leaves, x[k]), keys_in_order))
end
flatten!(leaves, x::Union{Integer,Function,Type,Symbol,AbstractString,Nothing,AbstractRNG}) =
    StaticValue(x)
function flatten!(leaves, x::T) where {T}
    isstructtype(T) && fieldcount(T) > 0 && any(k -> hasleaves(getfield(x, k)), 1:fieldcount(T)) ||
        return StaticValue(x)
    Container(T.name.wrapper,
        ntuple(k -> flatten!(leaves, getfield(x, k)), fieldcount(T)))
end

"Leaves of what a loop or a branch carries: integers and Bools among them."
struct StateLeaves
    values::Vector{Any}
end
Base.push!(leaves::StateLeaves, x) = push!(leaves.values, x)
flatten!(leaves::StateLeaves, x::Integer) = (push!(leaves, x); NumberLeaf())

hasleaves(x) = (leaves = Any[]; flatten!(leaves, x); !isempty(leaves))

flatten(x) = (leaves = Any[]; s = flatten!(leaves, x); (leaves, s))
flatten_state(x) = (leaves = StateLeaves([]); s = flatten!(leaves, x); (leaves.values, s))

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

"The structures of the leaves, in order."
leaf_kinds(s::Union{NumberLeaf,ArrayLeaf}) = Structure[s]
leaf_kinds(::StaticValue) = Structure[]
leaf_kinds(s::Container) =
    foldl((all, p) -> append!(all, leaf_kinds(p)), s.parts; init = Structure[])
