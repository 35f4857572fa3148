# Powers.

"""
log x as a sum of two Float64, to some 65 bits, for 0 < x < ∞: with s = (m-1)/(m+1), log m = 2s (1 +
s²/3 + …) (DLMF 4.6.4), whose first two terms are computed in pairs.
"""
@inline function log_pair(x::Float64)
    k, m = exponent_and_significand_of_any(x)
    f = m - 1
    d, d_rest = fast_two_sum(2.0, f)
    s = f / d
    s_rest = (fma(-s, d, f) - s * d_rest) / d
    w = s * s
    w_rest = fma(s, s, -w) + 2s * s_rest
    third, third_rest = THIRD
    g = w * third
    g, g_rest = fast_two_sum(g,
        fma(w, third, -g) + muladd(w, third_rest, w_rest * third) + w * w * atanh_tail(w))
    a = 2s
    p = a * g
    p_rest = fma(a, g, -p) + muladd(a, g_rest, 2s_rest * g)
    n = small_float(k)
    high, low = LN2_EXACT_64
    h, r₁ = fast_two_sum(n * high, a)
    h, r₂ = fast_two_sum(h, p)
    fast_two_sum(h, r₁ + (r₂ + (p_rest + muladd(n, low, 2s_rest))))
end
const THIRD = in_parts(() -> 1 / big(3), 2)[2]

"aᵇ for 0 < a < ∞ and any b."
@inline function power_of_positive(a::Float64, b::Float64)
    h, l = log_pair(a)
    v = b * h
    inside = abs(v) < 800
    v_rest = ifelse(inside, fma(b, h, -v) + b * l, 0.0)
    r, k = exp_reduced(bounded(v, exp_limits(Float64)))
    scaled(1 + expm1_reduced(r + v_rest), k)
end
@inline function power_of_positive(a::Float32, b::Float32)
    k, m = exponent_and_significand(Float64(a))
    v = Float64(b) * log_sum(k, m - 1, 0.0)
    Float32(exp_normal(bounded(v, (-200.0, 200.0))))
end

@inline is_whole(b) = b == trunc(b)
@inline is_odd(b) = is_whole(b) & !is_whole(b / 2)

"""
aᵇ with C's special values: 1 for b = 0 and for a = 1 whatever the other, NaN for a negative
number's fractional power."""
@inline function pow(a::T, b::T) where {T<:Binary}
    m = abs(a)
    y = power_of_positive(m, b)
    # 0 and ∞ go to 0 or ∞; -1 to the power ∞ is 1.
    y = ifelse((m == 0) | (m == infinity(T)), ifelse((m == 0) == (b < 0), infinity(T), zero(T)), y)
    y = ifelse(m == 1, one(T), y)
    y = flipped(y, ifelse(is_odd(b), sign_of(a), zero(bits(a))))
    y = ifelse((a < 0) & (m < infinity(T)) & !is_whole(b), nan(T), y)
    y = ifelse(isnan(a) | isnan(b), nan(T), y)
    ifelse((b == 0) | (a == 1), one(T), y)
end

"1 - x², without rounding x²."
@inline one_minus_square(x::Binary) = fma(-x, x, one(x))
@inline one_minus_square(x) = (one(x) - x) * (one(x) + x)

"""
xⁿ by repeated squaring, in the order of XLA's expansion; a negative exponent divides once, at the
end. The exponent is a type, so that the products are a straight line.
"""
@inline integer_pow(x, ::Val{N}) where {N} =
    N < 0 ? quotient(one(x), whole_power(x, Val(-N))) : whole_power(x, Val(N))
@generated function whole_power(x, ::Val{N}) where {N}
    steps, n, power = Expr[], N, nothing
    while n > 0
        if isodd(n)     # not 1 · base at first, which is NaN where a complex number is infinite
            push!(steps, :(power = $(power === nothing ? :base : :(power * base))))
            power = :power
        end
        n >>= 1
        n > 0 && push!(steps, :(base = base * base))
    end
    Expr(:block, Expr(:meta, :inline), :(base = x), steps...,
        power === nothing ? :(one(x)) : power)
end
