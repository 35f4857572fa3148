# pytrees: nested tuples and named tuples. A *template* has the same shape, with
# something else at its leaves.

"The element type and the size of an array as it lies in memory: Python's shape reversed."
struct Spec{T,N}
    size::NTuple{N,Int}
end
Spec(T::DataType, shape) = Spec{T,length(shape)}(Tuple(reverse(shape)))
isinexact_spec(::Spec{T}) where {T} = isinexact(T)
Base.show(io::IO, s::Spec{T}) where {T} =
    print(io, dtype_name(T), "[", join(reverse(s.size), ","), "]")

fresh(s::Spec{T,N}) where {T,N} = zeros(T, s.size)::Array{T,N}

"The place of a leaf in the list of all leaves."
struct Slot{I} end

# `map` of tuples gives up inference from 32 elements on.
@generated each(f, x::Tuple) = Expr(:tuple, (:(f(x[$i])) for i in 1:fieldcount(x))...)
@generated each(f, x::Tuple, y::Tuple) =
    Expr(:tuple, (:(f(x[$i], y[$i])) for i in 1:fieldcount(x))...)
"The elements at these places."
@generated pick(x::Tuple, ::Val{I}) where {I} = Expr(:tuple, (:(x[$i]) for i in I)...)

"The template with its slots filled from the list."
filled(::Slot{I}, leaves::Tuple) where {I} = leaves[I]
filled(::Nothing, leaves::Tuple) = nothing
filled(t::Tuple, leaves::Tuple) = each(s -> filled(s, leaves), t)
filled(t::NamedTuple{K}, leaves::Tuple) where {K} =
    NamedTuple{K}(each(s -> filled(s, leaves), Tuple(t)))

# As text: words separated by spaces, `( a b )`, `{ key a key b }`, `none`, and
# `f64[2,3]` for leaves.

function read_tree(text::AbstractString)
    words = split(text)
    tree, rest = read_tree(words, 1)
    rest == length(words) + 1 || error("words after the tree: $text")
    tree
end
function read_tree(words::Vector, at::Int)
    word = words[at]
    word == "none" && return nothing, at + 1
    word == "(" && return read_items(words, at + 1, ")")
    word == "{" && return read_fields(words, at + 1)
    read_spec(word), at + 1
end
function read_items(words, at, closing)
    items = Any[]
    while words[at] != closing
        item, at = read_tree(words, at)
        push!(items, item)
    end
    Tuple(items), at + 1
end
function read_fields(words, at)
    names, items = Symbol[], Any[]
    while words[at] != "}"
        push!(names, Symbol(words[at]))
        item, at = read_tree(words, at + 1)
        push!(items, item)
    end
    NamedTuple{Tuple(names)}(Tuple(items)), at + 1
end
function read_spec(word)
    m = match(r"^(\w+)\[([\d,]*)\]$", word)
    m === nothing && error("not a type: $word")
    Spec(dtype_named(Symbol(m[1])), parse.(Int, split(m[2], ','; keepempty = false)))
end

tree_text(::Nothing) = "none"
tree_text(s::Spec) = string(s)
tree_text(t::Tuple) = join(["("; map(tree_text, collect(Any, t)); ")"], ' ')
tree_text(t::NamedTuple) = join(["{"; ["$k $(tree_text(v))" for (k, v) in pairs(t)]; "}"], ' ')

"""
The leaves of a tree, in order, and the tree with slots in their places; those that `keep` refuses
become `nothing`."""
function slotted(tree, keep = _ -> true, first::Int = 1)
    leaves = Spec[]
    place(s::Spec) = keep(s) ? (push!(leaves, s); Slot{first + length(leaves) - 1}()) : nothing
    place(::Nothing) = nothing
    place(t::Tuple) = map(place, t)
    place(t::NamedTuple{K}) where {K} = NamedTuple{K}(map(place, Tuple(t)))
    template = place(tree)
    template, Tuple(leaves)
end

"The tree that a value of the user's has."
spec_of(::Nothing) = nothing
spec_of(y::Number) = known_dtype(typeof(y)) ? Spec(typeof(y), ()) : unknown_result(y)
spec_of(y::AbstractArray) = known_dtype(eltype(y)) ? Spec(eltype(y), size(y)) : unknown_result(y)
spec_of(y::Tuple) = map(spec_of, y)
spec_of(y::NamedTuple{K}) where {K} = NamedTuple{K}(map(spec_of, Tuple(y)))
spec_of(y) = unknown_result(y)
known_dtype(T) = haskey(NAME_OF_DTYPE, T)
unknown_result(y) = throw(
    ResultMismatch(
        "the function returned $(a_value(y)), which JAX cannot hold; " *
        "results are numbers, arrays of numbers, and (named) tuples of them")
)

a_value(y) = "a $(typeof(y))"
a_value(y::AbstractArray) = "a $(typeof(y)) of size $(size(y))"
