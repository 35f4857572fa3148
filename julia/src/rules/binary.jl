# Elementwise primitives of two operands. Tangents: (t, y, a, b) -> ∂y/∂a · t and ∂y/∂b · t.

@binary(:add, +; tangents = ((t, y, a, b) -> t, (t, y, a, b) -> t),
    transpose = (ȳ, a, b) -> (islinear(a) ? ȳ : nothing, islinear(b) ? ȳ : nothing))
@binary(:sub, -; tangents = ((t, y, a, b) -> t, (t, y, a, b) -> -t),
    transpose = (ȳ, a, b) -> (islinear(a) ? ȳ : nothing, islinear(b) ? -ȳ : nothing))
@binary(:mul, *; tangents = ((t, y, a, b) -> t * b, (t, y, a, b) -> a * t),
    transpose = (ȳ, a, b) -> islinear(a) ? (ȳ * b, nothing) : (nothing, a * ȳ))

# Integer division truncates; by zero it gives all ones (-1, or the largest unsigned number), and
# the remainder is the dividend. Divisors that the processor traps on are replaced first.
trapping(b::Signed) = (b == 0) | (b == -1)
trapping(b::Unsigned) = b == 0
harmless(b) = ifelse(trapping(b), one(b), b)
quotient(a, b) = a / b
@inline quotient(a::Complex, b::Complex) = NumberMath.quotient(a, b)
quotient(a::T, b::T) where {T<:Signed} =
    ifelse(b == 0, ~zero(T), ifelse(b == -1, -a, Core.Intrinsics.sdiv_int(a, harmless(b))))
quotient(a::T, b::T) where {T<:Unsigned} =
    ifelse(b == 0, ~zero(T), Core.Intrinsics.udiv_int(a, harmless(b)))
remainder(a, b) = NumberMath.rem(a, b)
remainder(a::T, b::T) where {T<:Signed} =
    ifelse(b == 0, a, Core.Intrinsics.srem_int(a, harmless(b)))
remainder(a::T, b::T) where {T<:Unsigned} =
    ifelse(b == 0, a, Core.Intrinsics.urem_int(a, harmless(b)))
NumberMath.near(::typeof(remainder), T::Type{<:AbstractFloat}) = NumberMath.near(NumberMath.rem, T)
NumberMath.called(::typeof(remainder)) = NumberMath.called(NumberMath.rem)

@binary(:div, quotient; cost = 4,
    tangents = ((t, y, a, b) -> t / b, (t, y, a, b) -> -(t * (y * (1 / b)))),
    transpose = (ȳ, a, b) ->
        islinear(b) ?
        throw(UnsupportedPrimitive("div", "is not linear in its denominator",
            "")) : (ȳ / b, nothing))
# a = trunc(a/b)·b + rem.
truncated(q::Traced) = sign(q) * floor(abs(q))
@binary(:rem, remainder; cost = 8, domain = T -> isnumber(T) && isordered(T),
    tangents = ((t, y, a, b) -> t, (t, y, a, b) -> -(t * truncated(a / b))))

@inline power(a, b) = NumberMath.pow(a, b)
@inline power(a::Union{AbstractFloat,Complex}, b::Integer) = power(a, oftype(a, b))
# With a float exponent the derivative at b = 0 is 0·a⁻¹, NaN at a = 0, as in JAX; an integer
# exponent 0 gives 0. The exponent of the derivative is an integer too, so that derivatives of any
# order are those of a polynomial: as a float it would be a^0.0 after a¹.
function pow_tangent_base(t, y, a, b)
    isinexact(dtype(b)) && return t * (b * a^(b - 1))
    n = one_less_fits(b)
    iszero_n = compare(:eq, n, 0)
    n = where_(iszero_n, 1, n)
    t * where_(iszero_n, 0, astype(n, dtype(a)) * a^(n - 1))
end
"""
The integer in a type with room for one less, but for the least Int32 or Int64, next to which 1
does not matter."""
function one_less_fits(n)
    T = dtype(n)
    sizeof(T) < 4 ? astype(n, Int32) : T <: Signed ? max(n, typemin(T) + 1) : n
end
pow_tangent_exponent(t, y, a, b) = t * (log(where_(compare(:eq, a, 0), 1, a)) * y)
@binary(:pow, power; cost = 24, accepts = (A, B) -> isinexact(A) && (A === B || isinteger_dtype(B)),
    tangents = (pow_tangent_base, pow_tangent_exponent))

# NaN wins over numbers; complex numbers are ordered by real part, then imaginary part. Equal
# operands share the tangent.
larger(a, b) = max(a, b)
larger(a::Complex, b::Complex) = ifelse(isnan(a) | (!isnan(b) & !comes_before(a, b)), a, b)
smaller(a, b) = min(a, b)
smaller(a::Complex, b::Complex) = ifelse(isnan(a) | (!isnan(b) & !comes_before(b, a)), a, b)
comes_before(a, b) = ifelse(real(a) == real(b), imag(a) < imag(b), real(a) < real(b))
"The number that is the least of its type, or the greatest; of complex ones that which JAX takes."
least(T) = typemin(T)
least(::Type{Complex{T}}) where {T} = complex(least(T), zero(T))
greatest(T) = typemax(T)
greatest(::Type{Complex{T}}) where {T} = complex(greatest(T), zero(T))
share(t, y, mine, other, beats) =
    t * where_(chosen(dtype(t), y, mine, other, beats),
        literal(t, 1), where_(compare(:eq, mine, other), literal(t, 0.5), literal(t, 0)))
# Not whether it equals the result: see `computed_once`. Complex numbers can only be asked that.
chosen(::Type, y, mine, other, beats) = compare(beats, mine, other)
chosen(::Type{<:Complex}, y, mine, other, beats) =
    compare(:eq, mine, y) & compare(:ne, other, y)
shares(beats) =
    ((t, y, a, b) -> share(t, y, a, b, beats), (t, y, a, b) -> share(t, y, b, a, beats))
@binary(:max, larger; domain = isanything, tangents = shares(:gt))
@binary(:min, smaller; domain = isanything, tangents = shares(:lt))

# (b ȧ - a ḃ) / (a² + b²).
function atan2_tangent((ȧ, ḃ), y, a, b)
    u, v, d = quotients(a, b)
    by_a, by_b = ȧ === nothing ? nothing : ȧ * u, ḃ === nothing ? nothing : ḃ * v
    (by_b === nothing ? by_a : by_a === nothing ? -by_b : by_a - by_b) / d
end
"""
(u, v, d) with u/d = b / (a² + b²) and v/d = a / (a² + b²): both over the larger operand, so
that squares neither overflow nor underflow."""
function quotients(a, b)
    iscomplex(dtype(a)) && return b, a, square(a) + square(b)
    steep = compare(:gt, abs(a), abs(b))
    p = where_(steep, a, b)
    q = where_(steep, b, a) / p
    where_(steep, q, 1), where_(steep, 1, q), p * (square(q) + 1)
end
@binary(:atan2, NumberMath.atan2; cost = 16, domain = isinexact, tangents = atan2_tangent)

# As a function of real numbers it is the identity of the first operand, but for
# less than any number.
@binary(:nextafter, (a, b) -> next_after(a, b); domain = isfloat,
    tangents = ((t, y, a, b) -> t, (t, y, a, b) -> nothing))
# Floats of one sign are ordered as their bits are.
function next_after(a::T, b::T) where {T<:AbstractFloat}
    (isnan(a) || isnan(b)) && return a + b
    a == b && return b
    bits = reinterpret(unsigned_of(T), a)
    iszero(a) && return copysign(reinterpret(T, one(bits)), b)
    reinterpret(T, (b > a) == (a > 0) ? bits + one(bits) : bits - one(bits))
end

@binary(:and, &; domain = islogical_dtype)
@binary(:or, |; domain = islogical_dtype)
@binary(:xor, xor; domain = islogical_dtype)

# A shift by the width or more leaves nothing, or copies of the sign; a negative one is
# a large unsigned one.
@binary(:shift_left, (x, n) -> x << unsigned(n); domain = isinteger_dtype)
@binary(:shift_right_logical, (x, n) -> x >>> unsigned(n); domain = isinteger_dtype)
@binary(:shift_right_arithmetic, (x, n) -> (signed(x) >> unsigned(n)) % typeof(x);
    domain = isinteger_dtype)
@binary(:mulhi, (a, b) -> (widemul(a, b) >> 8sizeof(a)) % typeof(a); domain = isinteger_dtype)

@binary(:eq, ==; domain = isanything, result = bool_dtype)
@binary(:ne, !=; domain = isanything, result = bool_dtype)
@binary(:lt, <; domain = isordered, result = bool_dtype)
@binary(:le, <=; domain = isordered, result = bool_dtype)
@binary(:gt, >; domain = isordered, result = bool_dtype)
@binary(:ge, >=; domain = isordered, result = bool_dtype)
