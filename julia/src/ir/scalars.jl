# Rules are written as plain Julia arithmetic on Traced values, which emit equations.

"An atom together with the Builder that its uses are emitted to."
struct Traced
    builder::Builder
    atom::Atom
end
aval(x::Traced) = aval(x.atom)
dtype(x::Traced) = aval(x).dtype
shape(x::Traced) = aval(x).shape
isliteral(x::Traced) = x.atom isa Literal

"The number as a literal of the Traced's dtype."
literal(like::Traced, value::Number) = Traced(like.builder, Literal(convert(dtype(like), value)))

"""
    apply(:rsqrt, x...; attributes...) -> Traced

Any one-result primitive on Traced values and numbers; a number is a literal of the first Traced's
dtype. Elementwise primitives of literals alone are computed at once: their result is a literal too,
which may be an operand together with arrays where a rank-0 variable may not."""
function apply(op::Symbol, x::Union{Traced,Number}...; attrs...)
    like = x[findfirst(v -> v isa Traced, x)]
    operands = Atom[v isa Traced ? v.atom : literal(like, v).atom for v in x]
    p, given = primitive(op), as_attributes(values(attrs))
    iselementwise(p) && all(a -> a isa Literal, operands) &&
        return Traced(like.builder, folded(p, operands, given))
    Traced(like.builder, only_one(emit!(like.builder, p, operands, given)))
end

"The literal that an elementwise primitive of literals gives."
function folded(op::Primitive, x, attrs)
    types = infer(op, TensorType[aval(l) for l in x], attrs)
    Literal(evaluate(op, Any[fill(l.value) for l in x], attrs, types)[1][])
end

for (f, op) in ((:+, :add), (:-, :sub), (:*, :mul), (:/, :div), (:^, :pow), (:max, :max),
    (:min, :min), (:rem, :rem), (:&, :and), (:|, :or))
    @eval begin
        Base.$f(x::Traced, y::Traced) = apply($(QuoteNode(op)), x, y)
        Base.$f(x::Traced, y::Number) = apply($(QuoteNode(op)), x, y)
        Base.$f(x::Number, y::Traced) = apply($(QuoteNode(op)), x, y)
    end
end
Base.:^(x::Traced, n::Integer) = apply(:integer_pow, x; y = Int(n))

for (f, op) in ((:-, :neg), (:!, :not), (:sin, :sin), (:cos, :cos), (:tan, :tan), (:exp, :exp),
    (:log, :log), (:log1p, :log1p), (:expm1, :expm1), (:sqrt, :sqrt), (:tanh, :tanh),
    (:sinh, :sinh), (:cosh, :cosh), (:abs, :abs),
    (:sign, :sign), (:floor, :floor), (:real, :real), (:imag, :imag), (:conj, :conj))
    @eval Base.$f(x::Traced) = apply($(QuoteNode(op)), x)
end
square(x::Traced) = apply(:square, x)
rsqrt(x::Traced) = apply(:rsqrt, x)

"`which ? a : b`, elementwise; `a` and `b` Traced or numbers (numbers take the other's dtype)."
function where_(which::Traced, a::Union{Traced,Number}, b::Union{Traced,Number})
    like = a isa Traced ? a : b
    cases = (v isa Traced ? v : literal(like, v) for v in (b, a))
    apply(:select_n, which, cases...)
end

# Comparisons give bool arrays; `==` stays Julia's own, so they go by their primitives' names.
compare(op::Symbol, x, y) = apply(op, x, y)

"Converts to another dtype (the identity where it is that dtype already)."
astype(x::Traced, T::DataType) =
    dtype(x) === T ? x : apply(:convert_element_type, x; dtype = dtype_name(T))
