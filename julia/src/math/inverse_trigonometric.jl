# Arcs by polynomials near 0, and the addition theorems that bring all arguments there (DLMF 4.24).

const QUARTER_PI_32, QUARTER_PI_64 = in_parts(() -> big(π) / 4, 2)
@inline quarter_pi(::Type{Float32}) = QUARTER_PI_32
@inline quarter_pi(::Type{Float64}) = QUARTER_PI_64

"""
The angle of (x, y), y ≥ 0. With t = y/|x|, (y-|x|)/(y+|x|) or -|x|/y, whichever is below tan(π/8),
it is atan t, π/4 + atan t or π/2 + atan t, or what is left of π.
"""
@inline function half_plane(y::T, x::T) where {T<:Binary}
    a, side = abs(x), sign_of(x)
    # Equal numbers are 1 and 1, so that ∞/∞ is no problem, but for 0 and 0, whose
    # angle is that of (1, 0).
    same = y == a
    y, a = ifelse(same, ifelse(y == 0, y, one(T)), y), ifelse(same, one(T), a)
    # Halves have no infinite sum.
    scale = ifelse((y > floatmax(T) / 4) | (a > floatmax(T) / 4), T(0.5), one(T))
    y, a = y * scale, a * scale
    low, high = y <= T(0.41421357) * a, a <= T(0.41421357) * y
    t = ifelse(low, y, ifelse(high, -a, y - a)) / ifelse(low, a, ifelse(high, y, y + a))
    eighths = ifelse(low, T(0), ifelse(high, T(2), T(1)))
    eighths, t = ifelse(side == 0, eighths, 4 - eighths), flipped(t, side)
    s = t * t
    π₁, π₂ = quarter_pi(T)
    eighths * π₁ + (t + muladd(t * s, atan_tail(s), eighths * π₂))
end

@inline atan(x::T) where {T<:Binary} = flipped(half_plane(abs(x), one(T)), sign_of(x))
@inline atan2(y::T, x::T) where {T<:Binary} = flipped(half_plane(abs(y), x), sign_of(y))

"""
asin of |x| ≤ 1/2, or half of acos |x|, of which the other is a right angle's rest: asin a = π/2 -
2 asin √((1-a)/2)."""
@inline function arc(x::T) where {T<:Binary}
    a = abs(x)
    steep = a > T(0.5)
    s = ifelse(steep, T(0.5) * (1 - a), a * a)
    z = ifelse(steep, sqrt(s), a)
    # The root's rounding error counts where a is little above 1/2: there this line is
    # near its factor 1/2z.
    rest = ifelse(steep, fma(-z, z, s) * muladd(T(-2.87), z, T(2.43)), zero(T))
    steep, z + muladd(z * s, asin_tail(s), rest)
end
@inline function asin(x::T) where {T<:Binary}
    steep, p = arc(x)
    π₁, π₂ = quarter_pi(T)
    flipped(ifelse(steep, 2π₁ - (2p - 2π₂), p), sign_of(x))
end
@inline function acos(x::T) where {T<:Binary}
    steep, p = arc(x)
    π₁, π₂ = quarter_pi(T)
    obtuse = x < 0
    ifelse(steep, ifelse(obtuse, 4π₁ - (2p - 4π₂), 2p), 2π₁ - (flipped(p, sign_of(x)) - 2π₂))
end
