# Emitting equations: every transform writes its result through a Builder.

"Collects equations; each takes `source`, the position of the user's code being transformed."
mutable struct Builder
    equations::Vector{Equation}
    source::String
end
Builder() = Builder(Equation[], "")

const NO_ATTRIBUTES = Attributes()

"Appends an equation of `op` and gives its results."
function emit!(b::Builder, @nospecialize(op::Primitive), inputs::AbstractVector,
    attrs::Attributes = NO_ATTRIBUTES)
    check_cancelled()
    operands = Vector{Atom}(inputs)
    outputs = Atom[Var(t) for t in infer(op, TensorType[aval(a) for a in operands], attrs)]
    push!(b.equations, Equation(op, operands, Vector{Var}(outputs), attrs, b.source))
    outputs
end

"""
    emit(b, :reshape, x; shape = [2, 3]) -> Atom

Appends an equation with one result, by name, and gives the result."""
emit(b::Builder, name::Symbol, inputs::Atom...; attrs...) =
    only_one(emit!(b, primitive(name), Atom[inputs...], as_attributes(values(attrs))))
"As `emit`, for any number of results."
emits(b::Builder, name::Symbol, inputs; attrs...) =
    emit!(b, primitive(name), inputs, as_attributes(values(attrs)))
# An empty Dict is large, and most equations have no attributes.
function as_attributes(@nospecialize(keywords::NamedTuple))
    nfields(keywords) == 0 && return NO_ATTRIBUTES
    attrs = Attributes()
    for (k, name) in enumerate(fieldnames(typeof(keywords)))
        attrs[name] = getfield(keywords, k)
    end
    attrs
end
only_one(xs) = (length(xs) == 1 || error("expected one result"); xs[1])

"An array (or literal) of that type filled with `value`."
function filled(b::Builder, type::TensorType, value)
    literal = Literal(convert(type.dtype, value))
    isempty(type.shape) ? literal :
    emit(b, :broadcast_in_dim, literal; shape = type.shape, dims = Int[])
end
zeros_of(b::Builder, type::TensorType) = filled(b, type, 0)

"The attribute `value` of a `constant`: the elements' real and imaginary parts, in order."
constant_numbers(x) = Any[constant_number(part) for v in x for part in parts_of_number(v)]
constant_number(v::AbstractFloat) = Float64(v)
constant_number(v::Integer) = Int(v)
parts_of_number(v) = (v,)
parts_of_number(v::Complex) = (real(v), imag(v))
"Whether a number may be an element of a constant in a Program's text."
isconstant_number(v) = !(v isa UInt64) || v <= typemax(Int)

"The tangent or cotangent itself, or explicit zeros like `x` where it is `nothing`."
instantiate(b::Builder, ẋ::Atom, x) = ẋ
instantiate(b::Builder, ::Nothing, x) = zeros_of(b, aval(x))

"Sum of two tangents or cotangents, either of which may be zero (`nothing`)."
add_maybe(b::Builder, ::Nothing, ::Nothing) = nothing
add_maybe(b::Builder, x::Atom, ::Nothing) = x
add_maybe(b::Builder, ::Nothing, y::Atom) = y
add_maybe(b::Builder, x::Atom, y::Atom) = emit(b, :add, x, y)

"Fresh variables of the same types."
fresh(vars) = Var[Var(aval(v)) for v in vars]
