# Traced numbers: Julia's arithmetic on them writes elementwise equations. Within a broadcast one of
# them stands for all elements of an array, so that a function of numbers is traced once for all.

"A real number (or Bool) of a trace, of element type `T`; a literal belongs to none."
struct TracedReal{T<:Real} <: Real
    atom::Atom
    recording::Union{OpenTrace,Nothing}
end
"A complex number of a trace."
struct TracedComplex{T<:Complex} <: Number
    atom::Atom
    recording::Union{OpenTrace,Nothing}
end
const TracedNumber = Union{TracedReal,TracedComplex}
const TracedBool = TracedReal{Bool}

traced_type(::Type{T}) where {T<:Real} = TracedReal{T}
traced_type(::Type{T}) where {T<:Complex} = TracedComplex{T}
"The type of number that a type stands for, or has traced."
plain_type(::Type{T}) where {T} = T
plain_type(::Type{TracedReal{T}}) where {T} = T
plain_type(::Type{TracedComplex{T}}) where {T} = T
dtype(::TracedReal{T}) where {T} = T
dtype(::TracedComplex{T}) where {T} = T

traced_number(a::Literal, r = nothing) = traced_type(dtype(a))(a, nothing)
traced_number(a::Var, r = open_recording()) = traced_type(dtype(a))(a, r)
atom_in(r, x::TracedNumber) = atom_in(r, x.atom, x.recording)
atom_here(x::TracedNumber) = atom_in(recording(), x)
isknown(x::TracedNumber) = x.atom isa Literal
isknown(x) = true

"The number itself where it is known: comparisons of these are Julia's own."
known_number(x::TracedBool) = isknown(x) ? x.atom.value : x
known_number(x) = x

Base.deepcopy_internal(x::TracedNumber, ::IdDict) = x

Base.show(io::IO, x::TracedNumber) =
    isknown(x) ? print(io, "traced ", x.atom.value) : print(io, "traced ", type_text(aval(x.atom)))

# ---- operations

"""
    number_op(op, x...; attributes...) -> number

An elementwise primitive of traced numbers. Where some stand for arrays, the others are spread over
them; what is known is computed at once."""
function number_op(op::Symbol, x::TracedNumber...; attrs...)
    p, given = primitive(op), as_attributes(values(attrs))
    atoms = Atom[atom_here(v) for v in x]
    all(a -> a isa Literal, atoms) && return traced_number(folded(p, atoms, given))
    k = findfirst(a -> !isscalar(a), atoms)
    k === nothing || (atoms = Atom[spread_lanes(a, shape(atoms[k])) for a in atoms])
    traced_number(only_one(emit_here(p, atoms, given)))
end
spread_lanes(a::Literal, n) = a
spread_lanes(a::Var, n) =
    isscalar(a) ? emit_here(:broadcast_in_dim, a; shape = n, dims = Int[]) : a

as_dtype(::Type{T}, x::TracedNumber) where {T} =
    dtype(x) === T ? x :
    isknown(x) ? traced_number(Literal(dtype_value(T, x.atom.value))) :
    number_op(:convert_element_type, x; dtype = dtype_name(T))
dtype_value(T, x) = convert(T, x)
dtype_value(::Type{T}, x::AbstractFloat) where {T<:Integer} = trunc(T, x)

# ---- conversion

const REAL_DTYPES = Tuple(T for (_, T) in DTYPES if T <: Real)
TracedReal{T}(x::TracedReal{T}) where {T} = x
TracedReal{T}(x::TracedReal) where {T} = as_dtype(T, x)
TracedReal{T}(x::Real) where {T} = TracedReal{T}(Literal(convert(T, x)), nothing)
TracedReal{T}(x::Rational) where {T} = TracedReal{T}(Literal(convert(T, x)), nothing)

for T in REAL_DTYPES
    T === Bool || @eval (::Type{$T})(x::TracedReal) = as_dtype($T, x)
    @eval Base.convert(::Type{$T}, x::TracedReal) =
        isknown(x) ? convert($T, x.atom.value) : conversion_error(x, $T)
end
Base.Bool(x::TracedReal) = isknown(x) ? Bool(x.atom.value) : conversion_error(x, Bool)
Base.AbstractFloat(x::TracedReal) = float(x)
Base.float(x::TracedReal{T}) where {T} = as_dtype(float(T), x)
Base.float(::Type{TracedReal{T}}) where {T} = TracedReal{float(T)}

Base.promote_rule(::Type{TracedReal{T}}, ::Type{TracedReal{S}}) where {T,S} =
    TracedReal{promote_type(T, S)}
Base.promote_rule(::Type{TracedReal{T}}, ::Type{S}) where {T,S<:Real} =
    TracedReal{promote_type(T, S)}
Base.promote_rule(::Type{S}, ::Type{TracedReal{T}}) where {T,S<:AbstractIrrational} =
    TracedReal{promote_type(T, S)}
Base.promote_rule(::Type{TracedReal{T}}, ::Type{S}) where {T,S<:AbstractIrrational} =
    TracedReal{promote_type(T, S)}

for f in (:zero, :one, :oneunit)
    @eval Base.$f(::Type{S}) where {S<:TracedNumber} = S($f(plain_type(S)))
    @eval Base.$f(x::TracedNumber) = $f(typeof(x))
end
for f in (:typemin, :typemax, :eps, :floatmin, :floatmax)
    @eval Base.$f(::Type{TracedReal{T}}) where {T} = $f(T)
end
Base.precision(::Type{TracedReal{T}}) where {T} = precision(T)
Base.nextfloat(x::TracedReal{T}) where {T<:AbstractFloat} = number_op(:nextafter, x, oftype(x, Inf))
Base.prevfloat(x::TracedReal{T}) where {T<:AbstractFloat} =
    number_op(:nextafter, x, oftype(x, -Inf))
Base.eps(x::TracedReal{T}) where {T<:AbstractFloat} = nextfloat(abs(x)) - abs(x)

# ---- arithmetic: operands of one type; Julia's promotion brings others to that

for (f, op) in ((:+, :add), (:-, :sub), (:*, :mul))
    # The type is asserted for `Base.promote_op`, which chooses the element types of arrays.
    @eval Base.$f(x::TracedReal{T}, y::TracedReal{T}) where {T} =
        number_op($(QuoteNode(op)), x, y)::TracedReal{T}
end
for (f, op) in ((:+, :add), (:-, :sub), (:*, :mul))      # Julia's Bools are counted
    @eval Base.$f(x::TracedBool, y::TracedBool) =
        number_op($(QuoteNode(op)), as_dtype(Int, x), as_dtype(Int, y))
end
Base.:/(x::TracedReal{T}, y::TracedReal{T}) where {T<:AbstractFloat} = number_op(:div, x, y)
Base.:/(x::TracedReal{T}, y::TracedReal{T}) where {T} = float(x) / float(y)
Base.:\(x::TracedReal{T}, y::TracedReal{T}) where {T} = y / x
Base.inv(x::TracedNumber) = one(x) / x
Base.:+(x::TracedNumber) = x
Base.:-(x::TracedNumber) = number_op(:neg, x)

Base.:^(x::TracedReal{T}, y::TracedReal{T}) where {T<:AbstractFloat} = number_op(:pow, x, y)
Base.:^(x::TracedReal{T}, y::TracedReal{S}) where {T<:AbstractFloat,S<:Integer} =
    isknown(y) ? x^Int(y.atom.value) : number_op(:pow, x, y)
Base.:^(x::TracedNumber, n::Integer) =
    n == 0 ? one(x) : n == 1 ? +x : n == 2 ? x * x : number_op(:integer_pow, x; y = Int(n))
Base.:^(x::TracedReal, y::Rational) = x^float(y)
Base.:^(::Irrational{:ℯ}, x::TracedReal) = exp(x)
Base.literal_pow(::typeof(^), x::TracedNumber, ::Val{n}) where {n} = x^n

Base.abs2(x::TracedReal) = x * x
Base.muladd(x::TracedReal{T}, y::TracedReal{T}, z::TracedReal{T}) where {T} = x * y + z
Base.fma(x::TracedReal{T}, y::TracedReal{T}, z::TracedReal{T}) where {T} = x * y + z
Base.conj(x::TracedReal) = x
Base.real(x::TracedReal) = x
Base.imag(x::TracedReal) = zero(x)
Base.real(::Type{TracedReal{T}}) where {T} = TracedReal{T}
Base.adjoint(x::TracedNumber) = conj(x)
LinearAlgebra.transpose(x::TracedNumber) = x
Base.isreal(::TracedReal) = true

# ---- functions of numbers

for (f, op) in ((:exp, :exp), (:exp2, :exp2), (:log, :log), (:log2, :log2), (:expm1, :expm1),
    (:log1p, :log1p), (:sqrt, :sqrt), (:sin, :sin), (:cos, :cos), (:tan, :tan), (:asin, :asin),
    (:acos, :acos), (:atan, :atan), (:sinh, :sinh), (:cosh, :cosh), (:tanh, :tanh),
    (:asinh, :asinh), (:acosh, :acosh), (:atanh, :atanh))
    @eval Base.$f(x::TracedNumber) = number_op($(QuoteNode(op)), float(x))
end
Base.cbrt(x::TracedReal) = number_op(:cbrt, float(x))
Base.exp10(x::TracedReal{T}) where {T} = exp(x * log(float(T)(10)))
Base.log10(x::TracedReal{T}) where {T} = log(x) / log(float(T)(10))
Base.log(b::Real, x::TracedReal) = log(x) / log(b)
Base.log(b::Number, x::TracedReal) = log(x) / log(b)
Base.sincos(x::TracedReal) = sin(x), cos(x)
Base.atan(y::TracedReal{T}, x::TracedReal{T}) where {T} = number_op(:atan2, float(y), float(x))
Base.hypot(x::TracedReal, y::TracedReal) = scaled_hypot(promote(x, y)...)
Base.hypot(x::TracedReal, y::Real) = scaled_hypot(promote(x, y)...)
Base.hypot(x::Real, y::TracedReal) = scaled_hypot(promote(x, y)...)
Base.hypot(x::TracedReal, y::Real, more::Real...) = hypot(hypot(x, y), more...)
"`hypot` divides by the larger number, since the squares of large and small ones are out of range."
function scaled_hypot(x::TracedReal, y::TracedReal)
    a, b = abs(float(x)), abs(float(y))
    large, small = max(a, b), min(a, b)
    ratio = small / select((large == 0) | isinf(large), one(large), large)
    select(isinf(a) | isinf(b), oftype(large, Inf), large * sqrt(1 + ratio * ratio))
end
Base.abs(x::TracedReal{T}) where {T<:Unsigned} = x
Base.abs(x::TracedNumber) = number_op(:abs, x)
Base.sign(x::TracedNumber) = number_op(:sign, x)
Base.signbit(x::TracedReal) = x < 0
Base.copysign(x::TracedReal, y::Real) = select(y < 0, -abs(x), abs(x))
Base.flipsign(x::TracedReal, y::Real) = select(y < 0, -x, x)
for T in (Float32, Float64)
    @eval Base.copysign(x::$T, y::TracedReal) = copysign(TracedReal{$T}(x), y)
    @eval Base.flipsign(x::$T, y::TracedReal) = flipsign(TracedReal{$T}(x), y)
end
Base.max(x::TracedReal{T}, y::TracedReal{T}) where {T} = number_op(:max, x, y)
Base.min(x::TracedReal{T}, y::TracedReal{T}) where {T} = number_op(:min, x, y)
Base.minmax(x::TracedReal, y::TracedReal) = min(x, y), max(x, y)
Base.clamp(x::TracedReal, low::Real, high::Real) = min(max(x, low), high)

# ---- rounding, division with remainder

Base.floor(x::TracedReal{T}) where {T<:AbstractFloat} = number_op(:floor, x)
Base.ceil(x::TracedReal{T}) where {T<:AbstractFloat} = number_op(:ceil, x)
Base.round(x::TracedReal{T}) where {T<:AbstractFloat} = number_op(:round, x; method = 1)
Base.trunc(x::TracedReal{T}) where {T<:AbstractFloat} = select(x < 0, ceil(x), floor(x))
for f in (:floor, :ceil, :round, :trunc)
    @eval Base.$f(x::TracedReal{T}) where {T<:Integer} = x
    @eval Base.$f(::Type{S}, x::TracedReal) where {S<:Integer} = as_dtype(S, $f(x))
    @eval Base.$f(x::TracedReal; digits::Integer, base = 10) = at_digits($f, x, digits, base)
end
"Rounded by `f` to so many digits after the point, or before it where they are negative."
function at_digits(f, x, digits, base)
    x = float(x)
    unit = oftype(x, float(base)^abs(digits))
    y = digits < 0 ? f(x / unit) * unit : f(x * unit) / unit
    select(isfinite(y), y, x)
end
Base.ldexp(x::TracedReal{T}, n::Integer) where {T<:AbstractFloat} =
    (half = div(n, 2); x * T(2)^half * T(2)^(n - half))         # 2^n itself may be out of range
Base.rem(x::TracedReal{T}, y::TracedReal{T}) where {T} = number_op(:rem, x, y)
Base.div(x::TracedReal{T}, y::TracedReal{T}) where {T<:Integer} = number_op(:div, x, y)
Base.div(x::TracedReal{T}, y::TracedReal{T}) where {T<:AbstractFloat} = trunc(x / y)
Base.div(x::TracedReal, y::TracedReal, mode::RoundingMode) = quotient(mode, promote(x, y)...)
# By `div` too, but Julia 1.5 does not always find it from there.
Base.fld(x::TracedReal, y::TracedReal) = quotient(RoundDown, promote(x, y)...)
Base.fld(x::TracedReal, y::Real) = quotient(RoundDown, promote(x, y)...)
Base.fld(x::Real, y::TracedReal) = quotient(RoundDown, promote(x, y)...)
Base.cld(x::TracedReal, y::TracedReal) = quotient(RoundUp, promote(x, y)...)
Base.cld(x::TracedReal, y::Real) = quotient(RoundUp, promote(x, y)...)
Base.cld(x::Real, y::TracedReal) = quotient(RoundUp, promote(x, y)...)
quotient(::RoundingMode{:ToZero}, x::T, y::T) where {T<:TracedReal} = div(x, y)
quotient(::RoundingMode{:Down}, x::T, y::T) where {T<:TracedReal{<:AbstractFloat}} = floor(x / y)
quotient(::RoundingMode{:Up}, x::T, y::T) where {T<:TracedReal{<:AbstractFloat}} = ceil(x / y)
quotient(::RoundingMode{:Down}, x::T, y::T) where {T<:TracedReal{<:Integer}} =
    div(x - mod(x, y), y)
quotient(::RoundingMode{:Up}, x::T, y::T) where {T<:TracedReal{<:Integer}} =
    -div(mod(x, -y) - x, y)
function Base.mod(x::TracedReal{T}, y::TracedReal{T}) where {T}
    r = rem(x, y)
    select((r != 0) & ((r < 0) != (y < 0)), r + y, r)
end
Base.mod1(x::TracedReal{T}, y::TracedReal{T}) where {T<:Integer} = mod(x - 1, y) + 1

# ---- comparisons and logic

for (f, op) in ((:<, :lt), (:<=, :le), (:(==), :eq))
    @eval Base.$f(x::TracedReal{T}, y::TracedReal{T}) where {T} =
        known_number(number_op($(QuoteNode(op)), x, y))
end
Base.isless(x::TracedReal, y::TracedReal) = x < y
Base.isless(x::TracedReal, y::Real) = x < y
Base.isless(x::Real, y::TracedReal) = x < y
Base.isless(x::TracedReal, y::AbstractFloat) = x < y
Base.isless(x::AbstractFloat, y::TracedReal) = x < y
Base.isequal(x::TracedReal, y::TracedReal) = x == y
Base.iszero(x::TracedNumber) = x == zero(x)
Base.isone(x::TracedNumber) = x == one(x)
Base.isnan(x::TracedReal) = x != x
Base.isfinite(x::TracedReal{T}) where {T<:AbstractFloat} =
    known_number(number_op(:is_finite, x))
Base.isfinite(x::TracedReal{T}) where {T<:Integer} = true
Base.isinf(x::TracedReal) = abs(x) == Inf
Base.isodd(x::TracedReal{T}) where {T<:Integer} = rem(x, 2) != 0
Base.iseven(x::TracedReal{T}) where {T<:Integer} = rem(x, 2) == 0
Base.isinteger(x::TracedReal) = x == floor(x)
"What `isapprox` allows, as Julia has it: half of the digits of the less precise type."
relative_tolerance(S, T, atol) =
    atol > 0 ? 0.0 : max(half_of_digits(plain_type(S)), half_of_digits(plain_type(T)))
half_of_digits(::Type{T}) where {T<:Number} =
    real(T) <: AbstractFloat ? Float64(sqrt(eps(real(T)))) : 0.0
for (X, Y) in ((TracedNumber, TracedNumber), (TracedNumber, Number), (Number, TracedNumber))
    @eval Base.isapprox(x::$X, y::$Y; atol::Real = 0,
        rtol::Real = relative_tolerance(typeof(x), typeof(y), atol)) =
        (x == y) | (isfinite(x) & isfinite(y) &
                    (abs(x - y) <= max(atol, rtol * max(abs(x), abs(y)))))
end
Base.:!(x::TracedBool) = known_number(number_op(:not, x))
Base.:~(x::TracedReal{T}) where {T<:Integer} = number_op(:not, x)
for (f, op) in ((:&, :and), (:|, :or), (:xor, :xor))
    @eval Base.$f(x::TracedReal{T}, y::TracedReal{T}) where {T<:Integer} =
        known_number(number_op($(QuoteNode(op)), x, y))
    @eval Base.$f(x::TracedReal, y::Integer) = $f(promote(x, y)...)
    @eval Base.$f(x::Integer, y::TracedReal) = $f(promote(x, y)...)
end

"""
    select(condition, a, b)

`condition ? a : b` where the condition may be traced: both are computed. With arrays, element by
element (`select.(x .> 0, x, 0)` does the same)."""
select(condition::Bool, a, b) = condition ? a : b
select(condition::Bool, a::Number, b::Number) = ((c, d) = promote(a, b); condition ? c : d)
function select(condition::TracedBool, a::Number, b::Number)
    isknown(condition) && return select(condition.atom.value, a, b)
    S = traced_type(promote_type(plain_type(typeof(a)), plain_type(typeof(b))))
    which, off, on = atom_here(condition), atom_here(S(b)), atom_here(S(a))
    k = findfirst(v -> !isscalar(v), (which, off, on))
    n = k === nothing ? Dim[] : shape((which, off, on)[k])
    off isa Literal && on isa Literal && off == on && return S(a)
    traced_number(emit_here(:select_n, (spread_lanes(v, n) for v in (which, off, on))...))
end
select(condition::TracedBool, a::Tuple, b::Tuple) = map((u, v) -> select(condition, u, v), a, b)
# Julia's own ifelse is a function that takes methods since 1.8.
if !(ifelse isa Core.Builtin)
    Base.ifelse(condition::TracedBool, a, b) = select(condition, a, b)
end
