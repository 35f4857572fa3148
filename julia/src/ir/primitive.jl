# The primitives there are, by name. What each of them implements is in interface.jl.

const PRIMITIVES = Dict{Symbol,Primitive}()

function register!(@nospecialize(op::Primitive))
    haskey(PRIMITIVES, name(op)) && error("primitive $(name(op)) is defined twice")
    PRIMITIVES[name(op)] = op
end

"The primitive of that name."
primitive(name::Symbol)::Primitive =
    haskey(PRIMITIVES, name) ? PRIMITIVES[name] :
    throw(UnsupportedPrimitive(string(name), "JaxprAD has no such primitive", ""))

"""
    @primitive Reshape reshape(shape)

Defines and registers the singleton primitive `Reshape` with the Program name `reshape` and its
attributes in print order.
"""
macro primitive(type, signature)
    symbol, names =
        signature isa Symbol ? (signature, ()) :
        (signature.args[1], Tuple(signature.args[2:end]))
    quote
        struct $(esc(type)) <: Primitive end
        $(esc(:name))(::$(esc(type))) = $(QuoteNode(symbol))
        $(esc(:attributes))(::$(esc(type))) = $names
        register!($(esc(type))())
    end
end

"Refuses operands, in a shape rule."
infer_error(@nospecialize(op), message) = throw(ProgramTypeError("$(name(op)): $message"))
