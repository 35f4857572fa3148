# x = k ln 2 + r with |r| ≤ ln(2)/2, eˣ = 2ᵏ (1 + (eʳ - 1)) (Tang 1989, without his table).

const LN2_32, LN2_64 = in_parts(() -> Base.log(big(2)), 2)
@inline ln2(::Type{Float32}) = LN2_32
@inline ln2(::Type{Float64}) = LN2_64
const LOG2_E_32, LOG2_E_64 = in_parts(() -> 1 / Base.log(big(2)), 2)
@inline log2_e(::Type{Float32}) = LOG2_E_32
@inline log2_e(::Type{Float64}) = LOG2_E_64

# Beyond these the result, and its half, is infinite, or zero.
@inline exp_limits(::Type{Float32}) = (-104.0f0, 90.0f0)
@inline exp_limits(::Type{Float64}) = (-746.0, 711.0)
@inline exp2_limits(::Type{Float32}) = (-151.0f0, 129.0f0)
@inline exp2_limits(::Type{Float64}) = (-1076.0, 1025.0)

"x between the bounds; NaN stays."
@inline function bounded(x, (low, high))
    x = ifelse(x < low, low, x)
    ifelse(x > high, high, x)
end

"""
(r, k). `fma` makes the first difference exact, as r is small and its last bit no
lower than ln 2's."""
@inline function exp_reduced(x::T) where {T<:Binary}
    t = muladd(x, log2_e(T)[1], shifter(T))
    n = t - shifter(T)
    high, low = ln2(T)
    fma(-n, low, fma(-n, high, x)), shifted_integer(t)
end
"eʳ - 1."
@inline expm1_reduced(r) = muladd(r * r, exp_tail(r), r)

"eˣ 2ʲ, for any x."
@inline function exp_scaled(x::T, j) where {T<:Binary}
    r, k = exp_reduced(bounded(x, exp_limits(T)))
    scaled(1 + expm1_reduced(r), k + j)
end
@inline exp(x::T) where {T<:Binary} = exp_scaled(x, zero(exponent_bias(T)))

"eˣ where it is a normal number."
@inline function exp_normal(x::T) where {T<:Binary}
    r, k = exp_reduced(x)
    (1 + expm1_reduced(r)) * power_of_two(T, k)
end

@inline function exp2(x::T) where {T<:Binary}
    x = bounded(x, exp2_limits(T))
    t = x + shifter(T)
    r = x - (t - shifter(T))
    scaled(muladd(r, exp2_tail(r), one(T)), shifted_integer(t))
end

"eˣ - 1 = 2ᵏ(eʳ - 1) + (2ᵏ - 1), for x with 2ᵏ normal."
@inline function expm1_normal(x::T) where {T<:Binary}
    r, k = exp_reduced(x)
    s = power_of_two(T, k)
    muladd(s, expm1_reduced(r), s - 1)
end

# Half of it, doubled, for 2ᵏ may be infinite where eˣ is not. Below the lower bound all results are
# -1, rounded; the upper one is infinity's.
@inline function expm1(x::T) where {T<:Binary}
    r, k = exp_reduced(bounded(x, (T(-50), exp_limits(T)[2] - 1)))
    half = power_of_two(T, k - oftype(k, 1))
    y = 2 * muladd(half, expm1_reduced(r), half - T(0.5))
    ifelse(abs(x) < smallest_linear(T), x, y)
end
"""
Below it f(x) = x for the odd functions of slope one, where subnormal numbers and the sign of zero
would suffer in the sums."""
@inline smallest_linear(::Type{Float32}) = 1.0f-20
@inline smallest_linear(::Type{Float64}) = 1.0e-150

"1/(1 + e⁻ˣ), by e^-|x|, which cannot overflow."
@inline function logistic(x::T) where {T<:Binary}
    e = exp(-abs(x))
    ifelse(x < 0, e, one(T)) / (1 + e)
end
