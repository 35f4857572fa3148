# a = (4j + q) π/2 + r, |r| ≤ π/4 and a little, for a ≥ 0. Only the lowest two bits of q count. The
# remainder comes as r + tail, where `nothing` is a tail that does not count.

const HALF_PI_32, HALF_PI_64 = in_parts(() -> big(π) / 2, 3)
@inline half_pi(::Type{Float32}) = HALF_PI_32
@inline half_pi(::Type{Float64}) = HALF_PI_64
@inline two_over_pi(::Type{Float32}) = 0.63661975f0
@inline two_over_pi(::Type{Float64}) = 0.6366197723675814

"""
The largest |x| of the near functions. Cody and Waite (1980): `fma` makes the first difference exact
while it is below 1; the three parts of π/2 together leave an error of 2⁻⁷² n (Float32) and 2⁻¹⁶¹ n,
and no float in range comes closer to a multiple of π/2 than 2⁻³³, or 2⁻⁶².
"""
near_limit(::Type{Float32}) = 131072.0f0
near_limit(::Type{Float64}) = 1073741824.0

@inline function reduced_near(a::Float32)
    t = fma(a, two_over_pi(Float32), shifter(Float32))
    n = t - shifter(Float32)
    high, middle, low = half_pi(Float32)
    bits(t), fma(-n, low, fma(-n, middle, fma(-n, high, a))), nothing
end
@inline function reduced_near(a::Float64)
    t = fma(a, two_over_pi(Float64), shifter(Float64))
    n = t - shifter(Float64)
    high, middle, low = half_pi(Float64)
    first = fma(-n, high, a)
    r = fma(-n, middle, first)
    bits(t), r, fma(-n, low, fma(-n, middle, first - r))
end

# Payne and Hanek (1983): a = 2ᵘ m with an integer m, and since m times 4 quadrants is nothing, m
# times what 2ᵘ leaves of them is enough. That is tabled: 2ᵘ·2/π mod 4 as a sum of four Float64. It
# is the one table here, and read only for huge arguments.
const LEAST_UNIT, GREATEST_UNIT = -23, 971
const QUADRANTS = setprecision(2400) do
    [
        part for u in LEAST_UNIT:GREATEST_UNIT
        for part in parts(Float64, mod(big(2.0)^u * 2 / big(π), 4), 4)
    ]
end
@inline quadrants(u::Int64, part) = unsafe_load(pointer(QUADRANTS), 4 * (u - LEAST_UNIT) + part)

"""
(m, u) for an `a` with `digits` bits after the first; garbage but no access out of bounds where a is
small, infinite or NaN."""
@inline function integer_and_unit(a::Float64, digits)
    e = (bits(a) >> 52) % Int64 - 1023
    e = ifelse(e < 0, 0, ifelse(e > 1023, 1023, e))
    u = ifelse(e < digits + LEAST_UNIT, LEAST_UNIT, e - digits)
    a * number(((1023 - u) << 52) % UInt64), u
end
@inline two_product(a, b) = (p = a * b; (p, fma(a, b, -p)))

@inline function reduced_far(a::Float32)
    m, u = integer_and_unit(Float64(a), 23)
    p, rest = two_product(m, quadrants(u, 1))
    t = p + shifter(Float64)
    part = (p - (t - shifter(Float64))) + muladd(m, quadrants(u, 2), rest)
    bits(t) % UInt32, Float32(part * half_pi(Float64)[1]), nothing
end
# Cancellation may leave 62 bits fewer than the parts hold; `two_sum` keeps all that it uncovers.
@inline function reduced_far(a::Float64)
    m, u = integer_and_unit(a, 52)
    p₁, r₁ = two_product(m, quadrants(u, 1))
    p₂, r₂ = two_product(m, quadrants(u, 2))
    p₃, r₃ = two_product(m, quadrants(u, 3))
    s, c₁ = two_sum(p₁ - 4 * round(p₁ / 4), r₁)
    s, c₂ = two_sum(s, p₂)
    t = s + shifter(Float64)
    c, d₁ = two_sum(c₁, c₂)
    c, d₂ = two_sum(c, r₂)
    c, d₃ = two_sum(c, p₃)
    part, tail = two_sum(s - (t - shifter(Float64)), c)
    part, tail = fast_two_sum(part, tail + ((d₁ + d₂) + (d₃ + muladd(m, quadrants(u, 4), r₃))))
    π₁, π₂, _ = half_pi(Float64)
    r, rest = two_product(part, π₁)
    bits(t), r, rest + muladd(part, π₂, tail * π₁)
end

"Both reductions, and the one that holds."
@inline function reduced(a::T) where {T<:Binary}
    near = a <= near_limit(T)
    q, r, tail = reduced_near(a)
    far_q, far_r, far_tail = reduced_far(a)
    tail = tail === nothing ? nothing : ifelse(near, tail, far_tail)
    # ∞ - ∞ makes NaN of infinity, as of NaN.
    ifelse(near, q, far_q), ifelse(near, r, far_r + (a - a)), tail
end
