# Incomplete gamma and beta functions: series and continued fractions, as long as they take.

# xᵃ e⁻ˣ / Γ(a), the factor both expansions of the incomplete gamma function share; it loses
# digits as log Γ(a) grows.
gamma_factor(a, x) = exp(a * log(x) - x - lgamma(a))

# Near x = a the series take some 6√a terms. Where these are too many, beyond some
# 10¹⁰, the result is NaN.
const MOST_TERMS = 2_000_000

"P(a, x) by Σ xⁿ / (a(a+1)…(a+n)) (DLMF 8.7.1)."
function gamma_series(a, x)
    term = total = 1 / a
    n = a
    for _ in 1:MOST_TERMS
        term > eps() * total / 4 || return total * gamma_factor(a, x)
        n += 1
        term *= x / n
        total += term
    end
    NaN
end

"Q(a, x) by the continued fraction of DLMF 8.9.2, 1/(x+1-a - 1(1-a)/(x+3-a - …))."
gamma_fraction(a, x) = gamma_factor(a, x) / lentz(k -> x + 2k + 1 - a, k -> -k * (k - a))

"b(0) + a(1)/(b(1) + a(2)/(b(2) + …)) by Lentz's method in the form of Thompson and Barnett (1986)."
@inline function lentz(b, a)
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

outside_gamma(a, x) =
    isnan(a) || isnan(x) || x < 0 || a < 0 || (a == 0 && x == 0) || (isinf(a) && isinf(x))
uses_fraction(a, x) = x >= 1 && x > a
igamma(a::Float64, x::Float64) =
    outside_gamma(a, x) ? NaN :
    x == 0 ? 0.0 :
    isinf(x) || a == 0 ? 1.0 :
    isinf(a) ? 0.0 :
    uses_fraction(a, x) ? 1 - gamma_fraction(a, x) : gamma_series(a, x)
igammac(a::Float64, x::Float64) =
    outside_gamma(a, x) ? NaN :
    x == 0 ? 1.0 :
    isinf(x) || a == 0 ? 0.0 :
    isinf(a) ? 1.0 :
    uses_fraction(a, x) ? gamma_fraction(a, x) :
    1 - gamma_series(a, x)

"""
∂P(a, x)/∂a, by the derivatives of the two expansions term by term, and that of their common
factor: with P = xᵃ e⁻ˣ / Γ(a+1) · T, ∂P/∂a = xᵃ e⁻ˣ / Γ(a+1) · (T (log x - ψ(a+1)) + ∂T/∂a), and
likewise for Q = 1 - P.
"""
function igamma_grad_a(a::Float64, x::Float64)
    (isnan(a) || isnan(x) || x < 0 || a <= 0) && return NaN
    (x == 0 || isinf(x) || isinf(a)) && return 0.0
    uses_fraction(a, x) ? -gamma_fraction_slope(a, x) : gamma_series_slope(a, x)
end

# T = Σ xⁿ / ((a+1)…(a+n)), all of whose terms decrease with a: unlike Σ xⁿ / (a…(a+n)), T loses no
# digits as a goes to 0.
function gamma_series_slope(a, x)
    term = total = 1.0
    slope = inverses = 0.0
    n = a
    for _ in 1:MOST_TERMS
        term > eps() * total / 4 || term * inverses > eps() * slope / 4 ||
            return exp(a * log(x) - x - lgamma(a + 1)) * (total * (log(x) - digamma(a + 1)) - slope)
        n += 1
        term *= x / n
        inverses += 1 / n
        total += term
        slope += term * inverses
    end
    NaN
end

"""
∂Q/∂a by Lentz's method (`lentz`, DLMF 8.9.2), each quantity of which goes with
its derivative by a."""
function gamma_fraction_slope(a, x)
    nonzero(v) = iszero(v) ? floatmin() : v
    value = c = nonzero(x + 1 - a)
    value_slope = c_slope = -1.0
    d = d_slope = 0.0
    for k in 1:10_000
        b, above = x + 2k + 1 - a, -k * (k - a)
        d_next = 1 / nonzero(b + above * d)
        d_slope = (1 - k * d - above * d_slope) * d_next * d_next
        c_next = nonzero(b + above / c)
        c_slope = -1 + k / c - above * c_slope / (c * c)
        c, d = c_next, d_next
        factor, factor_slope = c * d, c_slope * d + c * d_slope
        change = value_slope * (factor - 1) + value * factor_slope
        value_slope += change
        value *= factor
        abs(factor - 1) < eps() && abs(change) <= eps() * abs(value_slope) && break
    end
    gamma_factor(a, x) / value * (log(x) - digamma(a) - value_slope / value)
end

"""
I_x(a, b) by the continued fraction of DLMF 8.17.22, on the side of the mean where it
converges fast (8.17.4)."""
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
    @inline above(k) = beta_numerator(a, b, x, k)
    factor / lentz(k -> 1.0, above)
end
@inline function beta_numerator(a, b, x, k)
    m = k >> 1
    odd = -(a + m) * (a + b + m) * x / ((a + 2m) * (a + 2m + 1))
    even = m * (b - m) * x / ((a + 2m - 1) * (a + 2m))
    ifelse(isodd(k), odd, even)
end
