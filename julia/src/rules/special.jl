# Special functions. All are computed in Float64 and rounded; the methods are textbook series, named beside each, with limits in accuracy
# of a few units in the last place of Float64 unless said otherwise.

special(f) = (x...) -> f(map(Float64, x)...)
const LIBM = isdefined(Base.Math, :libm) ? Base.Math.libm : Base.libm_name

erf(x::Float64) = ccall((:erf, LIBM), Float64, (Float64,), x)
erfc(x::Float64) = ccall((:erfc, LIBM), Float64, (Float64,), x)
lgamma(x::Float64) = isnan(x) ? x : ccall((:lgamma, LIBM), Float64, (Float64,), x)

"""
erf⁻¹: Winitzki's closed form (2008; relative error 2e-3) and Halley's steps on erf, on erfc where 1 - |x| is the better-conditioned
datum. With u = f/f′ and f″/f′ = -2z, Halley's step is u / (1 + zu).
"""
function erf_inv(x::Float64)
    abs(x) < 1 || return abs(x) == 1 ? copysign(Inf, x) : NaN
    abs(x) < 1e-8 && return x * (sqrt(π) / 2)
    p, a = abs(x), 0.147
    l = log1p(-p * p)
    z = sqrt(sqrt((2 / (π * a) + l / 2)^2 - l / a) - (2 / (π * a) + l / 2))
    for _ in 1:3
        u = (p > 0.5 ? (1 - p) - erfc(z) : erf(z) - p) * (sqrt(π) / 2) * exp(z * z)
        z -= u / (1 + z * u)
    end
    copysign(z, x)
end

"""
ψ: reflection ψ(1-x) = ψ(x) + π cot πx for x < 0, recurrence ψ(x) = ψ(x+1) - 1/x up to 10, then the asymptotic series
ln x - 1/2x - Σ B₂ₖ/(2k x²ᵏ) (DLMF 5.5.2, 5.5.4, 5.11.2). NaN at the poles.
"""
function digamma(x::Float64)
    x == -Inf && return NaN
    if x <= 0
        x == floor(x) && return NaN
        return digamma(1 - x) - π / tan(π * (x - round(x)))
    end
    shift = 0.0
    while x < 10
        shift += 1 / x
        x += 1
    end
    isinf(x) && return x
    w = 1 / (x * x)
    log(x) - 0.5 / x - w * evalpoly(w, (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)) - shift
end

# B₂ₖ/(2k)!, k = 1 … 12 (DLMF 24.2).
const BERNOULLI_OVER_FACTORIAL = Float64[b / factorial(big(2k)) for (k, b) in enumerate(
    BigInt[1, -1, 1, -1, 5, -691, 7, -3617, 43867, -174611, 854513, -236364091] .//
    BigInt[6, 30, 42, 30, 66, 2730, 6, 510, 798, 330, 138, 2730])]

"""
The Hurwitz zeta function Σ (q+k)⁻ˢ for s > 1 by Euler and Maclaurin (DLMF 25.11.28): ten terms, the integral, half a term and the
Bernoulli corrections. Infinite at the poles q = 0, -1, …; defined at other negative q for integer s only.
"""
function zeta(s::Float64, q::Float64)
    (isnan(s) || isnan(q) || s < 1) && return NaN
    s == 1 && return Inf
    if q <= 0
        q == floor(q) && return iseven_number(s) ? Inf : NaN
        s == floor(s) || return NaN
    end
    total, a = 0.0, q
    for _ in 1:(q < 0 ? ceil(Int, min(-q, 1e6)) : 0)+10
        term = signed_power(a, -s)
        total += term
        a += 1
        abs(term) < eps() * abs(total) / 4 && a > 0 && return total
    end
    power = a^(-s)
    total += power * a / (s - 1) + power / 2
    factor = s * power / a
    for (k, b) in enumerate(BERNOULLI_OVER_FACTORIAL)
        term = b * factor
        total += term
        abs(term) < eps() * abs(total) / 4 && break
        factor *= (s + 2k - 1) * (s + 2k) / (a * a)
    end
    total
end
iseven_number(s) = s == 2floor(s / 2)
signed_power(a, s) = a < 0 ? (iseven_number(s) ? 1.0 : -1.0) * (-a)^s : a^s

"ψ⁽ᵐ⁾(x) = (-1)ᵐ⁺¹ m! ζ(m+1, x) for integers m ≥ 1 (DLMF 25.11.12)."
function polygamma(m::Float64, x::Float64)
    m == 0 && return digamma(x)
    (m > 0 && m == floor(m)) || return NaN
    (iseven_number(m) ? -1.0 : 1.0) * exp(lgamma(m + 1)) * zeta(m + 1, x)
end

"""
e⁻ˣ Iₙ(x) for x ≥ 0, n = 0 or 1: the power series, all of one sign (DLMF 10.25.2), and from x = 30, where it is exact to rounding,
Hankel's expansion (DLMF 10.40.1).
"""
function scaled_bessel(n::Int, x::Float64)
    isinf(x) && return 0.0
    term, total, k = x < 30 ? ((x / 2)^n * exp(-x), 0.0, 0) : (1 / sqrt(2π * x), 0.0, 0)
    while abs(term) > eps() * abs(total) / 4
        total += term
        k += 1
        term *= x < 30 ? x * x / (4k * (k + n)) : -(4n^2 - (2k - 1)^2) / (8k * x)
    end
    total
end
bessel_i0e(x::Float64) = isnan(x) ? x : scaled_bessel(0, abs(x))
bessel_i1e(x::Float64) = isnan(x) ? x : copysign(scaled_bessel(1, abs(x)), x)

# xᵃ e⁻ˣ / Γ(a), the factor both expansions of the incomplete gamma function share; it loses digits as log Γ(a) grows.
gamma_factor(a, x) = exp(a * log(x) - x - lgamma(a))

"P(a, x) by Σ xⁿ / (a(a+1)…(a+n)) (DLMF 8.7.1)."
function gamma_series(a, x)
    term = total = 1 / a
    n = a
    while term > eps() * total / 4
        n += 1
        term *= x / n
        total += term
    end
    total * gamma_factor(a, x)
end

"Q(a, x) by the continued fraction of DLMF 8.9.2, 1/(x+1-a - 1(1-a)/(x+3-a - …))."
gamma_fraction(a, x) = gamma_factor(a, x) / lentz(k -> x + 2k + 1 - a, k -> -k * (k - a))

"b(0) + a(1)/(b(1) + a(2)/(b(2) + …)) by Lentz's method in the form of Thompson and Barnett (1986)."
function lentz(b, a)
    nonzero(v) = iszero(v) ? floatmin() : v
    value = c = nonzero(b(0))
    d = 0.0
    for k in 1:10_000
        d = 1 / nonzero(b(k) + a(k) * d)
        c = nonzero(b(k) + a(k) / c)
        value *= c * d
        abs(c * d - 1) < eps() && break
    end
    value
end

outside_gamma(a, x) = isnan(a) || isnan(x) || x < 0 || a < 0 || (a == 0 && x == 0)
uses_fraction(a, x) = x >= 1 && x > a
igamma(a::Float64, x::Float64) = outside_gamma(a, x) ? NaN : x == 0 ? 0.0 : isinf(x) || a == 0 ? 1.0 : isinf(a) ? 0.0 :
    uses_fraction(a, x) ? 1 - gamma_fraction(a, x) : gamma_series(a, x)
igammac(a::Float64, x::Float64) = outside_gamma(a, x) ? NaN : x == 0 ? 1.0 : isinf(x) || a == 0 ? 0.0 : isinf(a) ? 1.0 :
    uses_fraction(a, x) ? gamma_fraction(a, x) : 1 - gamma_series(a, x)

"I_x(a, b) by the continued fraction of DLMF 8.17.22, on the side of the mean where it converges fast (8.17.4)."
function betainc(a::Float64, b::Float64, x::Float64)
    (isnan(a) || isnan(b) || isnan(x) || a < 0 || b < 0 || !(0 <= x <= 1)) && return NaN
    zero_a, zero_b = a == 0 || b == Inf, b == 0 || a == Inf     # all the mass at 0, or at 1
    zero_a && zero_b && return NaN
    zero_a && return x > 0 ? 1.0 : 0.0
    zero_b && return x < 1 ? 0.0 : 1.0
    (x == 0 || x == 1) && return x
    x < (a + 1) / (a + b + 2) ? beta_fraction(a, b, x) : 1 - beta_fraction(b, a, 1 - x)
end
function beta_fraction(a, b, x)
    factor = exp(a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)) / a
    numerator(k) = (m = k ÷ 2; isodd(k) ? -(a + m) * (a + b + m) * x / ((a + 2m) * (a + 2m + 1)) :
                                           m * (b - m) * x / ((a + 2m - 1) * (a + 2m)))
    factor / lentz(k -> 1.0, numerator)
end

unary(:erf, special(erf); domain = isfloat, tangents = ((t, y, x) -> t * (2 / sqrt(π) * exp(-square(x))),))
unary(:erfc, special(erfc); domain = isfloat, tangents = ((t, y, x) -> t * (-2 / sqrt(π) * exp(-square(x))),))
unary(:erf_inv, special(erf_inv); domain = isfloat, tangents = ((t, y, x) -> t * (sqrt(π) / 2 * exp(square(y))),))
unary(:lgamma, special(lgamma); domain = isfloat, tangents = ((t, y, x) -> t * apply(:digamma, x),))
unary(:digamma, special(digamma); domain = isfloat, tangents = ((t, y, x) -> t * apply(:polygamma, literal(x, 1), x),))
binary(:polygamma, special(polygamma); domain = isfloat,
       tangents = (no_rule, (t, y, m, x) -> t * apply(:polygamma, m + 1, x)))
binary(:zeta, special(zeta); domain = isfloat,
       tangents = (no_rule, (t, y, s, q) -> t * (-s * apply(:zeta, s + 1, q))))

unary(:bessel_i0e, special(bessel_i0e); domain = isfloat,
      tangents = ((t, y, x) -> t * (apply(:bessel_i1e, x) - sign(x) * y),))
# I₁′ = I₀ - I₁/x, and 1/2 at 0.
function bessel_i1e_tangent(t, y, x)
    tiny = Float64(eps(dtype(x)))
    away = compare(:gt, abs(x), tiny)
    safe = where_(away, x, tiny)
    t * where_(away, apply(:bessel_i0e, safe) - y * (sign(safe) + 1 / safe), 0.5)
end
unary(:bessel_i1e, special(bessel_i1e); domain = isfloat, tangents = (bessel_i1e_tangent,))

# ∂P/∂x = xᵃ⁻¹ e⁻ˣ / Γ(a). The derivatives by a are not elementary: JAX has a primitive of its own for them, Programs have none.
gamma_density(a, x) = exp((a - 1) * log(x) - x - apply(:lgamma, a))
binary(:igamma, special(igamma); domain = isfloat, tangents = (no_rule, (t, y, a, x) -> t * gamma_density(a, x)))
binary(:igammac, special(igammac); domain = isfloat, tangents = (no_rule, (t, y, a, x) -> -(t * gamma_density(a, x))))
function beta_density(a, b, x)
    log_beta = apply(:lgamma, a) + apply(:lgamma, b) - apply(:lgamma, a + b)
    exp((b - 1) * log1p(-x) + (a - 1) * log(x) - log_beta)
end
elementwise(:regularized_incomplete_beta, 3, special(betainc); domain = isfloat,
            tangents = (no_rule, no_rule, (t, y, a, b, x) -> t * beta_density(a, b, x)))
