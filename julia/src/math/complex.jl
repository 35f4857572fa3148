# Complex numbers by their real parts (DLMF 4.21, 4.35; branch cuts and inverse functions after
# Kahan 1987, "Branch Cuts for Complex Elementary Functions"). Straight lines too, with errors of a
# few units in the last place of the larger part. Where a part is infinite or NaN, so are results,
# though not always those parts that C's annex G asks for.

"ab, and 0 for 0 · ∞ and 0 · NaN: sin 0 · cosh ∞ is the part of a number that has none."
@inline times(a, b) = (p = a * b; ifelse((p != p) & ((a == 0) | (b == 0)), zero(p), p))

# Squares of numbers beyond are scaled, by powers of two.
@inline squarable(::Type{Float32}) = (1.0f-15, 1.0f15, 2.0f0^100)
@inline squarable(::Type{Float64}) = (1.0e-150, 1.0e150, 2.0^600)
"A power of two by which |m|² neither overflows nor loses digits."
@inline function square_scale(m::T) where {T<:Binary}
    low, high, scale = squarable(T)
    ifelse(m > high, 1 / scale, ifelse(m < low, scale, one(T)))
end
@inline larger(a, b) = ifelse(a > b, a, b)

"1 - z² without the cancellations of (1 + z)(1 - z) near ±1 and, in the imaginary part, near 0."
@inline function one_minus_square(z::Complex)
    x, y = reim(z)
    complex(fma(y, y, one_minus_square(x)), -2 * x * y)
end

"√(x² + y²) without overflow on the way; infinite parts win over NaN."
@inline function hypot(x::T, y::T) where {T<:Binary}
    a, b = abs(x), abs(y)
    scale = square_scale(larger(a, b))
    u, v = a * scale, b * scale
    r = sqrt(fma(u, u, v * v)) / scale
    ifelse((a == infinity(T)) | (b == infinity(T)), infinity(T), r)
end
# Dividends with parts beyond are scaled, so that no product in a quotient overflows and none that
# matters is subnormal. The product with the divisor's scale comes first, and stays in range.
@inline dividend_limits(::Type{Float32}) = (2.0f0^-90, 2.0f0^64)
@inline dividend_limits(::Type{Float64}) = (2.0^-900, 2.0^300)
"Powers of two: by which a dividend whose larger part is m is scaled, and its inverse."
@inline function dividend_scale(m::T) where {T<:Binary}
    low, scale = dividend_limits(T)
    huge = m > floatmax(T) / 16
    (ifelse(huge, T(1 / 16), ifelse(m < low, scale, one(T))),
        ifelse(huge, T(16), ifelse(m < low, 1 / scale, one(T))))
end
"The power of two by which a normal m is in [2, 4); the largest one for less, and 0 for ∞."
@inline function divisor_scale(m::T) where {T<:Binary}
    least, all_ones = bits(smallest_normal(T)), bits(infinity(T))
    number(all_ones - ifelse(m < smallest_normal(T), least, bits(m) & all_ones))
end
"z/w = z w̄ / |w|², both scaled by powers of two; 1/∞ is 0, and by 0 the parts of z are divided."
@inline function quotient(z::Complex{T}, w::Complex{T}) where {T<:Binary}
    m = larger(abs(real(w)), abs(imag(w)))
    scale = divisor_scale(m)
    u, v = real(w) * scale, imag(w) * scale
    d = fma(u, u, v * v)
    u = ifelse(m == 0, flipped(one(T), sign_of(u)), u)
    there, back = dividend_scale(larger(abs(real(z)), abs(imag(z))))
    x, y = real(z) * there, imag(z) * there
    re = muladd(x, u, y * v) / d * scale * back
    im = muladd(y, u, -(x * v)) / d * scale * back
    endless = (m == infinity(T)) & (abs(x) < infinity(T)) & (abs(y) < infinity(T))
    complex(ifelse(endless, zero(T), re), ifelse(endless, zero(T), im))
end
@inline quotient(x, y) = x / y
@inline inverse(z) = quotient(one(z), z)
@inline magnitude(z::Complex) = hypot(real(z), imag(z))

@inline function sqrt(z::Complex{T}) where {T<:Binary}
    x, y = abs(real(z)), abs(imag(z))
    huge, tiny = ((x > floatmax(T) / 8) | (y > floatmax(T) / 8),
        (x < 4smallest_normal(T)) & (y < 4smallest_normal(T)))
    scale, back = (ifelse(huge, T(1 / 16), ifelse(tiny, T(2)^60, one(T))),
        ifelse(huge, T(4), ifelse(tiny, T(2)^-30, one(T))))
    u, v = x * scale, y * scale
    t = sqrt(T(0.5) * (u + hypot(u, v)))
    s = ifelse(t == 0, t, T(0.5) * v / t)
    t, s = t * back, s * back
    endless = y == infinity(T)
    t, s = (ifelse(endless, y, t),
        ifelse(endless, y, ifelse((x == infinity(T)) & !(y != y), zero(T), s)))
    left = sign_of(real(z)) != 0
    complex(ifelse(left, s, t), flipped(ifelse(left, t, s), sign_of(imag(z))))
end
@inline rsqrt(z::Complex) = inverse(sqrt(z))

@inline exp(z::Complex) = exp_of(z, sin(imag(z)), cos(imag(z)))
@inline exp_near(z::Complex) = exp_of(z, sin_near(imag(z)), cos_near(imag(z)))
@inline exp_of(z, s, c) = (e = exp(real(z)); complex(times(e, c), times(s, e)))
@inline exp_called(z::Complex) = exp_of(z, sin_called(imag(z)), cos_called(imag(z)))
near(::typeof(exp), ::Type{Complex{T}}) where {T<:Binary} = exp_near, near_limit(T)
called(::typeof(exp)) = exp_called

@inline exp2(z::Complex{T}) where {T} =
    (e = exp2(real(z)); y = imag(z) * ln2(T)[1]; complex(times(e, cos(y)), times(sin(y), e)))
@inline function expm1(z::Complex{T}) where {T}
    x, y = real(z), imag(z)
    h = sin(T(0.5) * y)
    complex(expm1(x) * cos(y) - 2 * h * h, times(sin(y), exp(x)))
end

# Near the unit circle the square of the magnitude differs from 1 by a difference
# without cancellation.
@inline function log(z::Complex{T}) where {T<:Binary}
    x, y = abs(real(z)), abs(imag(z))
    a, b = ifelse(x > y, x, y), ifelse(x > y, y, x)
    near = (a > T(0.5)) & (a < T(2))
    complex(ifelse(near, T(0.5) * log1p((a - 1) * (a + 1) + b * b), log(hypot(x, y))),
        atan2(imag(z), real(z)))
end
@inline log2(z::Complex{T}) where {T} =
    (w = log(z); complex(real(w) * log2_e(T)[1], imag(w) * log2_e(T)[1]))
@inline function log1p(z::Complex{T}) where {T<:Binary}
    x, y = real(z), imag(z)
    near = (abs(x) < T(0.5)) & (abs(y) < 1)
    complex(ifelse(near, T(0.5) * log1p(muladd(x, 2 + x, y * y)), log(hypot(1 + x, y))),
        atan2(y, 1 + x))
end

@inline sin(z::Complex) =
    ((x, y) = reim(z); complex(times(sin(x), cosh(y)), times(sinh(y), cos(x))))
@inline cos(z::Complex) = ((x, y) = reim(z); complex(cos(x) * cosh(y), -times(sin(x), sinh(y))))
@inline sinh(z::Complex) =
    ((x, y) = reim(z); complex(times(sinh(x), cos(y)), times(sin(y), cosh(x))))
@inline cosh(z::Complex) = ((x, y) = reim(z); complex(cosh(x) * cos(y), times(sinh(x), sin(y))))
@inline function tanh(z::Complex{T}) where {T<:Binary}
    x, y = reim(z)
    t, s = tan(y), sinh(ifelse(abs(x) > 20, T(1), x))
    β, ρ = 1 + t * t, sqrt(1 + s * s)
    below = 1 + β * s * s
    far = abs(x) > 20
    e = exp(-2 * abs(x))
    complex(ifelse(far, flipped(one(T), sign_of(x)), β * ρ * s / below),
        ifelse(far, times(e, 4 * sin(y) * cos(y)), t / below))
end
@inline by_i(z) = complex(-imag(z), real(z))
@inline by_minus_i(z) = complex(imag(z), -real(z))
@inline tan(z::Complex) = by_minus_i(tanh(by_i(z)))

@inline one_plus(z) = complex(1 + real(z), imag(z))
@inline one_minus(z) = complex(1 - real(z), -imag(z))
@inline function asin(z::Complex)
    p, q = sqrt(one_minus(z)), sqrt(one_plus(z))
    complex(atan2(real(z), real(p) * real(q) - imag(p) * imag(q)),
        asinh(real(p) * imag(q) - imag(p) * real(q)))
end
@inline function acos(z::Complex)
    p, q = sqrt(one_minus(z)), sqrt(one_plus(z))
    complex(2 * atan2(real(p), real(q)), asinh(real(q) * imag(p) - imag(q) * real(p)))
end
@inline function acosh(z::Complex)
    p, q = sqrt(complex(real(z) - 1, imag(z))), sqrt(one_plus(z))
    complex(asinh(real(p) * real(q) + imag(p) * imag(q)), 2 * atan2(imag(p), real(q)))
end
@inline asinh(z::Complex) = by_minus_i(asin(by_i(z)))
# By |x|, for the function is odd and 1 - |x| has no cancellation but at 1; huge numbers have no
# squares: atanh z = 1/z ± iπ/2.
@inline function atanh(z::Complex{T}) where {T<:Binary}
    x, y = abs(real(z)), flipped(imag(z), sign_of(real(z)))
    huge = hypot(x, y) > large(T)
    π₁ = half_pi(T)[1]
    u, v = ifelse(huge, one(T), x), ifelse(huge, one(T), y)
    re = T(0.25) * log1p(4u / ((1 - u) * (1 - u) + v * v))
    im = T(0.5) * atan2(2v, (1 - u) * (1 + u) - v * v)
    far = inverse(complex(x, y))
    flip = sign_of(real(z))
    complex(flipped(ifelse(huge, real(far), re), flip),
        flipped(ifelse(huge, flipped(π₁, sign_of(y)), im), flip))
end
@inline atan(z::Complex) = by_minus_i(atanh(by_i(z)))

@inline logistic(z::Complex) = inverse(1 + exp(-z))
@inline function pow(z::Complex{T}, w::Complex{T}) where {T<:Binary}
    y = exp(w * log(z))
    y = ifelse((z == 0) & (real(w) > 0), zero(z), y)
    ifelse(w == 0, one(z), y)
end
"The angle of a complex (b, a): -i log((b + ia) / √(a² + b²))."
@inline atan2(a::Complex, b::Complex) = by_minus_i(log(quotient(b + by_i(a), sqrt(a * a + b * b))))
