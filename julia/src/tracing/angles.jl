# Functions of angles that are given in degrees or in multiples of π, and sinc.

Base.deg2rad(x::TracedReal{T}) where {T} = x * (float(T)(pi) / 180)
Base.rad2deg(x::TracedReal{T}) where {T} = x * (180 / float(T)(pi))

"""
The sine of an angle, of which `quarter` is a quarter turn, and of `ahead` quarter turns more. What
remains beyond whole quarters is exact before π comes in, as large as the angle may be."""
function sine_by_quarters(x::TracedReal, quarter, ahead)
    x = rem(float(x), oftype(float(x), 4quarter))
    k = round(x / quarter)
    r, k = (x - k * quarter) * oftype(x, pi / 2quarter), mod(k + ahead, 4)
    y = select((k == 1) | (k == 3), cos(r), sin(r))
    select(k >= 2, -y, y)
end
for (sine, cosine, quarter) in ((:sinpi, :cospi, 0.5), (:sind, :cosd, 90.0))
    @eval Base.$sine(x::TracedReal) = sine_by_quarters(x, $quarter, 0)
    @eval Base.$cosine(x::TracedReal) = sine_by_quarters(x, $quarter, 1)
end
Base.tand(x::TracedReal) = sind(x) / cosd(x)
for (both, sine, cosine) in ((:sincosd, :sind, :cosd), (:sincospi, :sinpi, :cospi))
    isdefined(Base, both) && @eval Base.$both(x::TracedReal) = $sine(x), $cosine(x)
end

# What the sine and the cosine of an angle leave of it, which are right for large ones too.
Base.rem2pi(x::TracedReal, ::RoundingMode{:Nearest}) = (y = float(x); atan(sin(y), cos(y)))
function Base.rem2pi(x::TracedReal, ::RoundingMode{:Down})
    r = rem2pi(x, RoundNearest)
    select(r < 0, r + oftype(r, 2pi), r)
end
function Base.rem2pi(x::TracedReal, ::RoundingMode{:Up})
    r = rem2pi(x, RoundNearest)
    select(r > 0, r - oftype(r, 2pi), r)
end
Base.rem2pi(x::TracedReal, ::RoundingMode{:ToZero}) =
    select(x < 0, rem2pi(x, RoundUp), rem2pi(x, RoundDown))

# ---- sinc and its derivative

"""
The coefficients of sin(z)/z = Σ (-1)^k z^2k / (2k + 1)!, multiplied by 2k each for those of its
derivative by log z. After these ten less than 2^-60 is left where |z| ≤ 1."""
sinc_series(T, of_derivative::Bool) =
    Tuple(T((-1)^k * (of_derivative ? 2k : 1) / factorial(2k + 1)) for k in 0:9)

"""
Near 0 a polynomial, since derivatives of the quotient divide differences of nearly equal numbers.
Each has a number of its own range where the other is taken, so that its derivatives are finite."""
function near_or_far(series, quotient, x::TracedReal{T}) where {T<:AbstractFloat}
    near = abs(x) <= T(1 / pi)
    y = select(near, series(select(near, x, zero(x))), quotient(select(near, one(x), x)))
    select(isinf(x), zero(x), y)
end
near_or_far(series, quotient, x::TracedReal) = near_or_far(series, quotient, float(x))
Base.sinc(x::TracedReal) = near_or_far(x -> evalpoly((pi * x)^2, sinc_series(dtype(x), false)),
    x -> sinpi(x) / (pi * x), x)
Base.Math.cosc(x::TracedReal) = near_or_far(
    x -> pi^2 * x * evalpoly((pi * x)^2, sinc_series(dtype(x), true)[2:end]),
    x -> (cospi(x) - sinpi(x) / (pi * x)) / x, x)
