# The family of elementwise primitives: one row of data each, see unary.jl, binary.jl, complex.jl,
# conversion.jl, select.jl, special.jl.

"""
An elementwise primitive: its operands have one shape (or are literals) and it is
computed number by number.

- `arity`: how many operands; `nothing` for any number.
- `kernel`: the function on numbers; with `attributes`, a function of those (as
  keywords) that gives it.
- `accepts`: operand dtypes -> whether the primitive is defined for them.
- `result`: operand dtypes -> result dtype.
- `tangents`: one an operand, `(t, y, x...) -> ∂y/∂xᵢ · t` on Traced values, linear in the tangent
  `t`; `missing` where no rule is known; `nothing` in place of the tuple when the result never has a
  tangent; one function `(ẋ, y, x...) -> ẏ` of all tangents (some `nothing`) where they go together.
- `transpose`: `(ȳ, x...) -> (x̄...)` for primitives that can be linear, `nothing` otherwise; linear
  operands are `Undefined`.
- `cost`: that of the kernel, in additions: roughly its time over that of one in a vectorised loop
  (docs/number_math.md has the times an element).

All others take the equation's attributes as keyword arguments.
"""
struct Elementwise <: Primitive
    name::Symbol
    arity::Union{Int,Nothing}
    attributes::Tuple{Vararg{Symbol}}
    kernel::Function
    accepts::Function
    result::Function
    tangents::Union{Nothing,Function,Tuple}
    transpose::Union{Nothing,Function}
    cost::Int
    Elementwise(name, arity, @nospecialize(attributes), @nospecialize(kernel),
        @nospecialize(accepts), @nospecialize(result), @nospecialize(tangents),
        @nospecialize(transpose), cost) =
        new(name, arity, attributes, kernel, accepts, result, tangents, transpose, cost)
end

# A function of keywords would be compiled for every primitive, which brings functions of its own.
"""
    @elementwise(:clamp, 3, kernel; domain = isanything, tangents = (...))

Registers an elementwise primitive; `@unary` and `@binary` are those of one and two operands. The
keywords are the fields of `Elementwise`, and `domain`: it `accepts` equal dtypes of that kind."""
macro elementwise(options, name, arity, kernel)
    registration(options, name, arity, kernel)
end
macro unary(options, name, kernel)
    registration(options, name, 1, kernel)
end
macro binary(options, name, kernel)
    registration(options, name, 2, kernel)
end

function registration(options, name, arity, kernel)
    given = Dict{Symbol,Any}(o.args[1] => esc(o.args[2]) for o in options.args)
    field(key, default) = pop!(given, key, default)
    accepts = field(:accepts, :(uniform($(field(:domain, :isnumber)))))
    made = :(Elementwise($(esc(name)), $(esc(arity)), $(field(:attributes, ())),
        $(esc(kernel)), $accepts, $(field(:result, :same_dtype)),
        $(field(:tangents, nothing)), $(field(:transpose, nothing)), $(field(:cost, 1))))
    isempty(given) || error("@elementwise has no keyword $(join(keys(given), ", "))")
    :(register!($made))
end

# Domains: sets of dtypes, as predicates.
isfloat(T) = T <: AbstractFloat
isinteger_dtype(T) = T <: Integer && T !== Bool
isnumber(T) = T !== Bool
islogical_dtype(T) = T <: Integer
isordered(T) = !iscomplex(T)
isanything(T) = true
uniform(@nospecialize(domain)) = Uniform(domain)
struct Uniform <: Function
    domain::Function
end
(u::Uniform)(T, types...; attrs...) = all(==(T), types) && u.domain(T)
(u::Uniform)(T; attrs...) = u.domain(T)         # what every equation asks goes without a loop
(u::Uniform)(T, S; attrs...) = T === S && u.domain(T)

same_dtype(T, types...; attrs...) = T
same_dtype(T; attrs...) = T
same_dtype(T, S; attrs...) = T
bool_dtype(types...; attrs...) = Bool

"No derivative with respect to this operand is known."
const no_rule = missing

name(op::Elementwise) = op.name
attributes(op::Elementwise) = op.attributes
iselementwise(op::Elementwise) = true
iscommutative(op::Elementwise) = op.name in (:add, :mul, :max, :min, :and, :or, :xor, :eq, :ne)
# Only where the factor makes nothing smaller: u + v may be infinite where u w + v w is not, and
# costs no less than that, since sums take products in one instruction.
linear_slots(op::Elementwise, eqn) =
    op.name === :mul ? filter(k -> isliteral_where(w -> abs(w) >= 1, eqn.inputs[3-k]), [1, 2]) :
    op.name === :div && isliteral_where(w -> abs(w) <= 1, eqn.inputs[2]) ? [1] : Int[]
isliteral_where(holds, a) = a isa Literal && holds(a.value)
cost(op::Elementwise, eqn) = op.cost

haszerotangent(op::Elementwise) = op.tangents === nothing
hasjvp(op::Elementwise) = !haszerotangent(op) && length(underived_operands(op)) != op.arity
hastranspose(op::Elementwise) = op.transpose !== nothing
underived_operands(op::Elementwise) =
    op.tangents isa Tuple ? findall(t -> t === no_rule, collect(Any, op.tangents)) .- 1 : Int[]

function infer(op::Elementwise, types, attrs)
    op.arity in (nothing, length(types)) ||
        infer_error(op, "takes $(op.arity) operands, got $(length(types))")
    with_dtypes(op.accepts, types, attrs) ||
        infer_error(op, "is not defined for $(join(map(type_text, types), ", "))")
    [TensorType(with_dtypes(op.result, types, attrs), common_shape(op, types))]
end
"""
`f` of the dtypes, with the attributes as keywords; nearly every equation goes without
an array of them."""
with_dtypes(@nospecialize(f), types, attrs) =
    !isempty(attrs) || length(types) > 2 ? called(f, DataType[t.dtype for t in types], attrs) :
    length(types) == 2 ? f(types[1].dtype, types[2].dtype) : f(types[1].dtype)
# Making keywords takes longer than most rules do.
called(@nospecialize(f), x, attrs) = isempty(attrs) ? f(x...) : f(x...; attrs...)

"The one shape of elementwise operands; rank-0 operands go with any."
function common_shape(op, types)
    common = isempty(types) ? Dim[] : types[1].shape
    for t in types
        (isempty(t.shape) || t.shape === common) && continue
        isempty(common) || t.shape == common ||
            infer_error(op, "operands have different shapes: $(join(map(type_text, types), ", "))")
        common = t.shape
    end
    common
end

kernel(op::Elementwise, attrs) = isempty(op.attributes) ? op.kernel : op.kernel(; attrs...)

isnative(op::Elementwise, dtypes::DataType...; attrs...) = true

evaluate(op::Elementwise, x, attrs, types) =
    [map_numbers(kernel(op, attrs), types[1], works_on_bits(op), x)]

# Float16 and BFloat16 are computed in Float32 and rounded, as XLA's CPU compiler does, but for
# primitives that look at bits.
works_on_bits(op) = name(op) in (:nextafter, :reduce_precision)
function map_numbers(f, type::TensorType, bits::Bool, x)
    y = uninitialized(type)
    map_into!(f, bits ? identity : working, vec(y), map(vec, x)...)
    y
end
# A loop over vectors, which Julia compiles in a tenth of the time that a broadcast takes, and once
# for all shapes. A rank-0 operand goes with all elements of the others.
function map_into!(f, prepared, y, x...)
    for i in eachindex(y)
        @inbounds y[i] = f(map(v -> prepared(v[min(i, length(v))]), x)...)
    end
end

function jvp(op::Elementwise, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    operands = Traced[Traced(b, v) for v in (y[1], x...)]
    t = Union{Traced,Nothing}[v === nothing ? nothing : Traced(b, v) for v in ẋ]
    y, MaybeAtom[atom_of(tangent(op, op.tangents, eqn, t, operands))]
end

tangent(op, ::Nothing, eqn, ẋ, yx) = nothing
tangent(op, @nospecialize(rule::Function), eqn, ẋ, yx) = called(rule, (ẋ, yx...), eqn.attrs)
function tangent(op, @nospecialize(rules::Tuple), eqn, ẋ, yx)
    ẏ = nothing
    for (i, rule) in enumerate(rules)
        ẋ[i] === nothing && continue
        rule === no_rule &&
            throw(
                UnsupportedPrimitive(string(op.name),
                    "has no derivative with respect to operand $i of $(op.arity)", eqn.source)
            )
        term = called(rule, (ẋ[i], yx...), eqn.attrs)
        ẏ = ẏ === nothing ? term : term === nothing ? ẏ : ẏ + term
    end
    ẏ
end

function transpose(op::Elementwise, b, eqn, ȳ, x)
    op.transpose === nothing &&
        return invoke(transpose, Tuple{Primitive,Any,Any,Any,Any}, op, b, eqn, ȳ, x)
    operands = (v isa Undefined ? v : Traced(b, v) for v in x)
    MaybeAtom[atom_of(x̄) for x̄ in called(op.transpose, (Traced(b, ȳ[1]), operands...), eqn.attrs)]
end
atom_of(x::Traced) = x.atom
atom_of(::Nothing) = nothing
islinear(::Traced) = false
