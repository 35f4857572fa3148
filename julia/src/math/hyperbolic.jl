# Hyperbolic functions from exponentials (DLMF 4.28, 4.37), and from polynomials where those cancel.

"eᵃ/2, infinite only where the result is, and e⁻ᵃ/2."
@inline function half_exponentials(a::T) where {T<:Binary}
    h = exp_scaled(a, -one(exponent_bias(T)))
    h, T(0.25) / h
end
@inline cosh(x::Binary) = ((grow, fall) = half_exponentials(abs(x)); grow + fall)
@inline function sinh(x::T) where {T<:Binary}
    a = abs(x)
    grow, fall = half_exponentials(a)
    s = a * a
    flipped(ifelse(a < 1, muladd(a * s, sinh_tail(s), a), grow - fall), sign_of(x))
end

# tanh a = -m / (2 + m) with m = e⁻²ᵃ - 1: two units in the last place in Float32, for one
# exponential and one division.
@inline function tanh(x::Float32)
    a = abs(x)
    m = expm1_normal(-2 * ifelse(a > 20, 20.0f0, a))
    flipped(abs(m) / (2 + m), sign_of(x))
end
@inline function tanh(x::Float64)
    a = abs(x)
    s = a * a
    far = 1 - 2 / (1 + exp_normal(2 * ifelse(a > 20, 20.0, a)))
    flipped(ifelse(a < 0.6, muladd(a * s, tanh_tail(s), a), far), sign_of(x))
end

# From here on the 1 in √(a² ± 1) and in 1 + 2a no longer counts, and up to here squares are finite.
@inline large(::Type{Float32}) = 1.0f10
@inline large(::Type{Float64}) = 1.0e18

"asinh a = log(1 + a + a²/(1 + √(1+a²))), and log 2a for large a."
@inline function asinh(x::T) where {T<:Binary}
    a = abs(x)
    far = a > large(T)
    w = ifelse(far, zero(T), a * a)
    u, rest = two_sum(ifelse(far, one(T), a), w / (1 + sqrt(1 + w)))
    u, rest = ifelse(far, a, u), ifelse(far, zero(T), rest)
    y = log1p_sum(u, rest, ifelse(far, one(exponent_bias(T)), zero(exponent_bias(T))))
    flipped(ifelse((a < smallest_linear(T)) | !(a < infinity(T)), a, y), sign_of(x))
end

"acosh x = log(1 + t + √(t(t+2))), t = x - 1, and log 2x for large x."
@inline function acosh(x::T) where {T<:Binary}
    far = x > large(T)
    t = ifelse(far, zero(T), x - 1)
    u, rest = two_sum(t, sqrt(t * (t + 2)))
    y = log1p_sum(ifelse(far, x, u), rest,
        ifelse(far, one(exponent_bias(T)), zero(exponent_bias(T))))
    ifelse(x >= 1, ifelse(x < infinity(T), y, x), nan(T))
end

"atanh a = log(1 + 2a/(1-a)) / 2, with the rounding errors of difference and quotient."
@inline function atanh(x::T) where {T<:Binary}
    a = abs(x)
    d, d_rest = fast_two_sum(one(T), -a)
    u = 2a / d
    rest = (fma(-u, d, 2a) - u * d_rest) / d
    y = T(0.5) * log1p_sum(u, rest, zero(exponent_bias(T)))
    y = ifelse(a < smallest_linear(T), a, ifelse(a < 1, y, ifelse(a == 1, infinity(T), nan(T))))
    flipped(y, sign_of(x))
end
