# Where derivatives are compared: arguments, along one of which one moves, and results.

"""
The arguments of a function, apart: `places` are those leaves that are floats, `names` what these
are called."""
struct Point
    leaves::Vector{Any}
    structure::Structure
    places::Vector{Int}
    names::Vector{String}
end
function Point(@nospecialize(f), @nospecialize(x::Tuple))
    leaves, structure = flatten(x)
    names = String[]
    foreach((n, part) -> leaf_names!(names, part, n), argument_names(f, length(x)),
        structure.parts)
    places = findall(isdifferentiable, leaves)
    isempty(places) &&
        throw(ArgumentError("no argument is a floating-point number or an array of them"))
    Point(leaves, structure, places, names[places])
end
leaf_names!(names, ::Union{NumberLeaf,ArrayLeaf}, name) = push!(names, name)
leaf_names!(names, ::StaticValue, name) = names
leaf_names!(names, s::Container, name) =
    foreach((key, part) -> leaf_names!(names, part, name * key),
        part_names(s.type, length(s.parts)), s.parts)
part_names(::Type{<:NamedTuple{keys}}, n) where {keys} = [".$k" for k in keys]
part_names(d::DictionaryKeys, n) = ["[$(repr(k))]" for k in d.keys]
part_names(::Type{Tuple}, n) = ["[$k]" for k in 1:n]
part_names(a::ArrayLike, n) = ["[$(join(Tuple(k), ", "))]" for k in CartesianIndices(a.axes)]
part_names(T, n) = [".$k" for k in fieldnames(Base.unwrap_unionall(T))]

"The arguments with other floats."
function with_floats(p::Point, floats)
    leaves = copy(p.leaves)
    leaves[p.places] = floats
    assembled(p.structure, leaves)
end
floats(p::Point) = p.leaves[p.places]
"The arguments, moved along a tangent."
moved(p::Point, @nospecialize(ẋ), h) =
    with_floats(p, Any[stepped(x, v, h) for (x, v) in zip(floats(p), ẋ)])
stepped(x::Number, v, h) = oftype(x, x + h * v)
stepped(x::AbstractArray, v, h) = eltype(x).(x .+ h .* v)

"A tangent that is zero but for leaf k."
along(p::Point, k, @nospecialize(v)) =
    Tuple(j == k ? v : zero(x) for (j, x) in enumerate(floats(p)))

"""
A random tangent for an array or a number, each element as large as what it belongs to, so that
a step is a small change and stays in the function's domain."""
function random_tangent(rng, x)
    typical = furthest(wide(x))
    scale(v) = abs(v) > 1e-8typical ? abs(v) : typical > 0 ? typical : one(typical)
    like(x, randn(rng, eltype(wide(x)), length(x)) .* map(scale, wide(x)))
end
"Random numbers of the type and size of x."
random_like(rng, x) = like(x, randn(rng, eltype(wide(x)), length(x)))
like(x::Number, v) = oftype(x, v[1])
like(x::AbstractArray, v) = reshape(eltype(x).(v), size(x))

# Transposition does not conjugate: the pairing of complex numbers is Re Σ ab.
pairing(@nospecialize(x), @nospecialize(y)) =
    sum(Float64[real(sum(wide(a) .* wide(b))) for (a, b) in zip(x, y)])
"The pairing of the absolute values, which has no cancellation."
pairing_scale(@nospecialize(x), @nospecialize(y)) =
    sum(Float64[sum(abs.(wide(a)) .* abs.(wide(b))) for (a, b) in zip(x, y)])

rounding(x) = eps(real_dtype(leaf_type(x).dtype))
