# The error function and its complement (DLMF 7.2).

@inline erf_small(x) = muladd(x, erf_tail(x * x), x)

# From 1 on 1 - exp(-q(a)) with a polynomial for q = -log erfc.
@inline function erf(x::Float32)
    a = abs(x)
    far = 1 - exp_normal(-minus_log_erfc(ifelse(a > 4, 4.0f0, a)))
    flipped(ifelse(a < 1, erf_small(a), far), sign_of(x))
end
@inline function erf(x::Float64)
    a = abs(x)
    flipped(ifelse(a < 1, erf_small(a), 1 - erfc_far(ifelse(a > 6, 6.0, a))), sign_of(x))
end

"""
erfc a for 1/2 ≤ a: exp(-a²)/(1 + 2a) times a smooth function that a polynomial in (a-4)/(a+4) gives
for all of them (Shepherd and Laframboise 1981). The square's rounding error goes into the
exponential's remainder.
"""
@inline function erfc_far(a::T) where {T<:Binary}
    square = a * a
    r, k = exp_reduced(-square)
    p = expm1_reduced(r - fma(a, a, -square))
    smooth, rest = smooth_erfc(a)
    scaled(smooth + muladd(smooth, p, rest), k)
end
@inline smooth_erfc(a::Float32) = scaled_erfc((a - 4) / (a + 4)) / muladd(2.0f0, a, 1.0f0), 0.0f0
"As a number and what rounding took of it."
@inline function smooth_erfc(a::Float64)
    t = (a - 4) / (a + 4)
    x, x_rest = fast_two_sum(SCALED_ERFC_AT_4, t * scaled_erfc_slope(t))
    y, y_rest = fast_two_sum(2a, 1.0)
    quotient_of_sums(x, x_rest + SCALED_ERFC_AT_4_REST, y, y_rest)
end
@inline erfc_end(::Type{Float32}) = 10.5f0
@inline erfc_end(::Type{Float64}) = 28.0

@inline function erfc(x::T) where {T<:Binary}
    a = abs(x)
    far = erfc_far(ifelse(a > erfc_end(T), erfc_end(T), a))
    ifelse((x > -1) & (x < T(0.5)), 1 - erf_small(x), ifelse(x < 0, 2 - far, far))
end

# erf⁻¹(x) = x p(w), w = -log(1 - x²), a polynomial for each stretch of w (Giles 2010).
@inline function erf_inv(x::Float32)
    w = -log((1 - x) * (1 + x))
    y = x * ifelse(w <= 6, erf_inv_middle(w - 3), erf_inv_outer(sqrt(w) - 3))
    ifelse(abs(x) == 1, flipped(Inf32, sign_of(x)), y)
end
# Values and their arguments are carried as a number and what rounding took of it: in the
# polynomials' middle part of it would be lost.
@inline function erf_inv(x::Float64)
    a = abs(x)
    w, w_rest = minus_log_complement(a)
    v = sqrt(w)
    v_rest = (fma(-v, v, w) + w_rest) / 2v
    z = w - 3
    s, u, t = a * a, v - 3, v - 5
    small = on_line(ERF_INV_SMALL, erf_inv_small_slope(s), s, 0.0)
    middle = on_line(ERF_INV_MIDDLE, erf_inv_middle_slope(z), z, (w - (z + 3)) + w_rest)
    outer = on_line(ERF_INV_OUTER, erf_inv_outer_slope(u), u, v_rest)
    far = on_line(ERF_INV_FAR, erf_inv_far_slope(t), t, v_rest)
    ratio, rest = chosen(a <= 0.5, small, chosen(w <= 6, middle, chosen(v <= 4, outer, far)))
    flipped(ifelse(a == 1, Inf, muladd(a, ratio, a * rest)), sign_of(x))
end
@inline chosen(condition, (x, x_rest), (y, y_rest)) =
    ifelse(condition, x, y), ifelse(condition, x_rest, y_rest)

"-log(1 - a²), for a from 1/2 to 1, where 1 - a is exact."
@inline function minus_log_complement(a::Float64)
    one_more, less = 1 + a, 1 - a
    u = less * one_more
    rest = fma(less, one_more, -u) + less * (a - (one_more - 1))
    -log(u), -rest / u
end
"constant + slope (z + z_rest); sums of these magnitudes lose nothing in `constant - y`."
@inline function on_line((constant, constant_rest), slope, z, z_rest)
    y = fma(z, slope, constant)
    y, fma(z, slope, constant - y) + muladd(z_rest, slope, constant_rest)
end
