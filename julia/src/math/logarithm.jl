# x = 2ᵏ m with m from √½ to √2, log x = k ln 2 + log m (Tang 1990, without his table).

# The first part's products with exponents are exact.
const LN2_EXACT_32, LN2_EXACT_64 = in_parts(() -> Base.log(big(2)), 2; zeros = (9, 12))
@inline ln2_exact(::Type{Float32}) = LN2_EXACT_32
@inline ln2_exact(::Type{Float64}) = LN2_EXACT_64
@inline root_half(::Type{Float32}) = 0.70710677f0
@inline root_half(::Type{Float64}) = 0.7071067811865475

"(k, m) for a normal x > 0."
@inline function exponent_and_significand(x::T) where {T<:Binary}
    above = bits(x) - bits(root_half(T))
    fraction = (one(above) << fraction_width(T)) - one(above)
    integer(above) >> fraction_width(T), number((above & fraction) + bits(root_half(T)))
end
"(k, m) for any x > 0: subnormal numbers are normalised first."
@inline function exponent_and_significand_of_any(x::T) where {T<:Binary}
    lift = oftype(exponent_bias(T), fraction_width(T) + 1)
    subnormal = x < smallest_normal(T)
    k, m = exponent_and_significand(ifelse(subnormal, x * power_of_two(T, lift), x))
    ifelse(subnormal, k - lift, k), m
end

"""
log(1+f) - f for 1+f from √½ to √2. In Float64 by s = f/(2+f): log(1+f) = 2 atanh s
and 2s = f - s f."""
@inline log1p_rest(f::Float32) = muladd(f * f * f, log_tail(f), -0.5f0 * (f * f))
@inline function log1p_rest(f::Float64)
    s = f / (2 + f)
    w = s * s
    half_square = 0.5 * f * f
    s * muladd(w, log_tail(w), half_square) - half_square
end

"k ln 2 + log(1 + f + c) where c is below f's last place."
@inline function log_sum(k, f::T, c) where {T<:Binary}
    n = small_float(k)
    high, low = ln2_exact(T)
    n * high + (f + (muladd(n, low, c) + log1p_rest(f)))
end

"`y` for 0 < x < ∞, and C's values of a logarithm with its pole at 0 elsewhere."
@inline log_domain(x::T, y) where {T<:Binary} =
    ifelse(x > 0, ifelse(x < infinity(T), y, infinity(T)), ifelse(x == 0, -infinity(T), nan(T)))

@inline function log(x::T) where {T<:Binary}
    k, m = exponent_and_significand_of_any(x)
    log_domain(x, log_sum(k, m - 1, zero(T)))
end

"""
log₂ x = k + log₂e log m. What rounding takes of log₂e (m-1) and of its sum with k is
added at the end."""
@inline function log2(x::T) where {T<:Binary}
    k, m = exponent_and_significand_of_any(x)
    high, low = log2_e(T)
    f = m - 1
    p = f * high
    s, c = fast_two_sum(small_float(k), p)
    log_domain(x, s + (c + (fma(f, high, -p) + muladd(f, low, high * log1p_rest(f)))))
end

"The sum and its rounding error (Knuth, TAOCP 2, theorem 4.2.2B)."
@inline function two_sum(a, b)
    s = a + b
    v = s - a
    s, (a - (s - v)) + (b - v)
end
"The same where |a| ≥ |b| or a = 0 (Dekker 1971)."
@inline function fast_two_sum(a, b)
    s = a + b
    s, b - (s - a)
end

"j ln 2 + log(1 + u + low), where `low` is below the last place of 1 + u, for u > -1."
@inline function log1p_sum(u::T, low, j) where {T<:Binary}
    s, c = two_sum(one(T), u)
    k, m = exponent_and_significand(s)
    # Where the significand is that of u alone, c no longer counts.
    c = (c + low) * power_of_two(T, -ifelse(k > 100, oftype(k, 100), k))
    f, rest = fast_two_sum(m - 1, c)
    log_sum(k + j, f, rest)
end

@inline function log1p(x::T) where {T<:Binary}
    y = log_domain(1 + x, log1p_sum(x, zero(T), zero(exponent_bias(T))))
    ifelse(abs(x) < smallest_linear(T), x, y)
end
