# What a primitive is: the interface that every rule file implements and every transform uses.

const MaybeAtom = Union{Atom,Nothing}

"Marks a linear operand in a transpose rule: its value is not known, only its abstract value."
struct Undefined
    type::TensorType
end
aval(u::Undefined) = u.type
const Operand = Union{Var,Literal,Undefined}
islinear(x::Operand) = x isa Undefined

const PRIMITIVES = Dict{Symbol,Primitive}()

function register!(op::Primitive)
    haskey(PRIMITIVES, name(op)) && error("primitive $(name(op)) is defined twice")
    PRIMITIVES[name(op)] = op
end

"The primitive of that name."
primitive(name::Symbol)::Primitive =
    haskey(PRIMITIVES, name) ? PRIMITIVES[name] : throw(UnsupportedPrimitive(string(name), "JaxprAD has no such primitive", ""))

"""
    @primitive Reshape reshape(shape)

Defines and registers the singleton primitive `Reshape` with the Program name `reshape` and its
attributes in print order.
"""
macro primitive(type, signature)
    symbol, names = signature isa Symbol ? (signature, ()) : (signature.args[1], Tuple(signature.args[2:end]))
    quote
        struct $(esc(type)) <: Primitive end
        $(esc(:name))(::$(esc(type))) = $(QuoteNode(symbol))
        $(esc(:attributes))(::$(esc(type))) = $names
        register!($(esc(type))())
    end
end

"""
    name(op) -> Symbol

The primitive's name in Program text."""
function name end

"""
    attributes(op) -> Tuple of Symbols

The attributes an equation of this primitive carries, in print order."""
function attributes end

"""
    infer(op, types::Vector{TensorType}, attrs) -> Vector{TensorType}

The shape rule: abstract values of the results; throws `ProgramTypeError` when operands do not fit."""
function infer end

"""
    evaluate(op, x::Vector, attrs, types::Vector{TensorType}) -> Vector

The values of the results (`types` are their abstract values). Arrays are Julia arrays with the
dimensions in reverse order, so that memory is row-major: JAX's axis `k` (from 0) of an array of rank
`n` is Julia's dimension `n - k`."""
function evaluate end

"""
    jvp(op, b::Builder, eqn, x::Vector{Atom}, ẋ::Vector{MaybeAtom}) -> (y, ẏ)

The forward rule: emits into `b` what computes the results `y` and their tangents `ẏ` (`nothing`
where a tangent is zero). At least one of `ẋ` is not `nothing`."""
function jvp end

"""
    transpose(op, b::Builder, eqn, ȳ::Vector{MaybeAtom}, x::Vector{Operand}) -> Vector{MaybeAtom}

The transpose rule: the primitive is linear in the operands that are `Undefined`; gives their
cotangents (`nothing` for zero, and for the other operands). At least one of `ȳ` is not `nothing`."""
function transpose end

"""
    linear_operands(op, eqn) -> collection of operand positions

The operands in which the primitive is jointly linear, the others being fixed. The default JVP of such
a primitive applies it to the tangents."""
linear_operands(op::Primitive, eqn) = ()

"Whether the primitive's results have zero tangents whatever its operands' are (comparisons, floor, argmax …)."
haszerotangent(op::Primitive) = false

"Whether the results are cheaper to recompute from the operands than to keep (broadcasts, iota)."
ischeap(op::Primitive) = false

function jvp(op::Primitive, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    haszerotangent(op) && return y, fill!(Vector{MaybeAtom}(undef, length(y)), nothing)
    slots = linear_operands(op, eqn)
    all(i -> ẋ[i] === nothing || i in slots, eachindex(ẋ)) ||
        throw(UnsupportedPrimitive(string(name(op)), "has no JVP rule", eqn.source))
    tangents = Atom[i in slots ? instantiate(b, ẋ[i], x[i]) : x[i] for i in eachindex(x)]
    y, Vector{MaybeAtom}(emit!(b, op, tangents, eqn.attrs))
end

transpose(op::Primitive, b, eqn, ȳ, x) =
    throw(UnsupportedPrimitive(string(name(op)), "has no transpose rule: it is not linear in the operands differentiated", eqn.source))

infer_error(op, message) = throw(ProgramTypeError("$(name(op)): $message"))
