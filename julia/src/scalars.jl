# Rules are written as plain Julia arithmetic on Traced values, which emit equations.

"An atom together with the Builder that its uses are emitted to."
struct Traced
    builder::Builder
    atom::Atom
end
aval(x::Traced) = aval(x.atom)
dtype(x::Traced) = aval(x).dtype
shape(x::Traced) = aval(x).shape

# A number beside a Traced is a literal of the Traced's dtype.
literal(like::Traced, value::Number) = Traced(like.builder, Literal(convert(dtype(like), value)))

for (f, op) in ((:+, :add), (:-, :sub), (:*, :mul), (:/, :div), (:^, :pow), (:max, :max), (:min, :min), (:rem, :rem),
                (:&, :and), (:|, :or))
    @eval begin
        Base.$f(x::Traced, y::Traced) = Traced(x.builder, emit(x.builder, $(QuoteNode(op)), x.atom, y.atom))
        Base.$f(x::Traced, y::Number) = $f(x, literal(x, y))
        Base.$f(x::Number, y::Traced) = $f(literal(y, x), y)
    end
end
Base.:^(x::Traced, n::Integer) = Traced(x.builder, emit(x.builder, :integer_pow, x.atom; y = Int(n)))

for (f, op) in ((:-, :neg), (:!, :not), (:sin, :sin), (:cos, :cos), (:tan, :tan), (:exp, :exp), (:log, :log), (:log1p, :log1p),
                (:expm1, :expm1), (:sqrt, :sqrt), (:tanh, :tanh), (:sinh, :sinh), (:cosh, :cosh), (:abs, :abs),
                (:sign, :sign), (:floor, :floor), (:real, :real), (:imag, :imag), (:conj, :conj))
    @eval Base.$f(x::Traced) = Traced(x.builder, emit(x.builder, $(QuoteNode(op)), x.atom))
end

"Any one-result primitive on Traced values and numbers, by name: `apply(:rsqrt, x)`."
function apply(op::Symbol, x::Union{Traced,Number}...; attrs...)
    like = first(v for v in x if v isa Traced)
    atoms = Atom[(v isa Traced ? v : literal(like, v)).atom for v in x]
    Traced(like.builder, emit(like.builder, op, atoms...; attrs...))
end

"`which ? a : b`, elementwise; `a` and `b` Traced or numbers (numbers take the other's dtype)."
function where_(which::Traced, a::Union{Traced,Number}, b::Union{Traced,Number})
    like = a isa Traced ? a : b
    cases = (v isa Traced ? v : literal(like, v) for v in (b, a))
    # select_n needs one case at least with the full shape when `which` has one
    Traced(like.builder, emit(like.builder, :select_n, which.atom, (full(which, c).atom for c in cases)...))
end
full(like::Traced, x::Traced) =
    isempty(shape(x)) && !isempty(shape(like)) ? Traced(x.builder, broadcast_scalar(x.builder, x.atom, shape(like))) : x
broadcast_scalar(b::Builder, x::Atom, shape) = emit(b, :broadcast_in_dim, x; shape = shape, dims = Int[])

# Comparisons give bool arrays; `==` stays Julia's own, so they go by their primitives' names.
compare(op::Symbol, x, y) = apply(op, x, y)

"Converts to another dtype (the identity where it is that dtype already)."
astype(x::Traced, T::DataType) = dtype(x) === T ? x : apply(:convert_element_type, x; dtype = dtype_name(T))
