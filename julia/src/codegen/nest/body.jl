# What a loop nest computes at each point, and where that goes.

# What a local variable of a nest's body is set to. Equal ones are computed once.
struct Load
    pointer::Symbol
    at::Affine
end
struct Apply
    f::Any
    operands::Vector{Any}
end
struct Position
    at::Affine
end
const Step = Union{Load,Apply,Position}
Base.:(==)(a::Load, b::Load) = a.pointer === b.pointer && a.at == b.at
Base.:(==)(a::Apply, b::Apply) =
    a.f === b.f && length(a.operands) == length(b.operands) && all(map(===, a.operands, b.operands))
Base.:(==)(a::Position, b::Position) = a.at == b.at
Base.hash(s::Load, h::UInt) = hash(s.pointer, hash(s.at, h))
Base.hash(s::Apply, h::UInt) = hash_identities(s.operands, hash(objectid(s.f), h))
Base.hash(s::Position, h::UInt) = hash(s.at, h)

"The hash of objects by what they are, of texts by what they say; compiled once for all types."
function hash_identities(objects::Vector{Any}, h::UInt)
    for x in objects
        h = hash(identity_hash(x), h)
    end
    h
end
identity_hash(@nospecialize(x))::UInt = x isa String ? hash(x) : objectid(x)

"`value` of each point goes to `pointer` at `at`."
struct Store
    value::Atom
    pointer::Symbol
    type::DataType
    at::Affine
end

"""
The values of all points are combined along the axes marked in `reduced`: in memory at `at`, or,
where `pointer` is nothing, in the local variable `total`. `type` is the accumulator's."""
struct Reduce
    value::Atom
    op::Primitive
    type::DataType
    reduced::Vector{Bool}
    pointer::Union{Symbol,Nothing}
    at::Affine
    total::Symbol
end

"""
The nest's body for a part of the last axis, and the values of its stores and reductions. `interior`
is a simpler body for rows away from the edges of padded arrays: those where the positions in
`edges`, the same along a whole row, are in 0 … size - 1.
"""
struct RowPart
    inner::UnitRange{Int}
    steps::Vector{Tuple{Symbol,Step,DataType}}
    stores::Vector{Any}
    reduces::Vector{Any}
    edges::Vector{Tuple{Affine,Int}}
    interior::Union{RowPart,Nothing}
end
RowPart(inner, steps, stores, reduces) = RowPart(inner, steps, stores, reduces, [], nothing)
"The same values of other steps, of a body that has no simpler one."
with_steps(part::RowPart, steps) = RowPart(part.inner, steps, part.stores, part.reduces)
