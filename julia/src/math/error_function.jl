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
erfc a for 1/2 ≤ a: exp(-a²)/(1 + 2a) times a smooth function that a polynomial in (a-4)/(a+4) gives for all of them (Shepherd and
Laframboise 1981). The square's rounding error goes into the exponential's remainder.
"""
@inline function erfc_far(a::T) where {T<:Binary}
    square = a * a
    r, k = exp_reduced(-square)
    p = expm1_reduced(r - fma(a, a, -square))
    smooth = scaled_erfc((a - 4) / (a + 4)) / muladd(T(2), a, one(T))
    scaled(muladd(smooth, p, smooth), k)
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
@inline function erf_inv(x::Float64)
    w = -log((1 - x) * (1 + x))
    v = sqrt(w)
    y = x * ifelse(w <= 6, erf_inv_middle(w - 3), ifelse(v <= 4, erf_inv_outer(v - 3), erf_inv_far(v - 5)))
    ifelse(abs(x) == 1, flipped(Inf, sign_of(x)), y)
end
