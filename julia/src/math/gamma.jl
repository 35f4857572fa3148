# log Γ and its derivative, in Float64, with loops and branches but no heap and no exceptions.

"""
log |Γ(x)|: near 2 by a polynomial, from there by recurrence between 0 and 8, then by
Stirling's series, and by reflection for x < 0 (DLMF 5.5.1, 5.5.3, 5.11.1). Near its zeros at
negative x only the absolute error is small.
"""
function lgamma(x::Float64)
    isnan(x) && return x
    isinf(x) && return Inf
    if x <= 0
        x == floor(x) && return Inf
        x > -1e-20 && return -log(-x)               # where s * -x may underflow, Γ(x) = 1/x
        s = abs(sin(π * (x - round(x))))
        return LOG_PI - log(s * -x) - lgamma_positive(-x)       # Γ(x) Γ(-x) = -π / (x sin πx)
    end
    lgamma_positive(x)
end
function lgamma_positive(x::Float64)
    x < 0.5 && return x * lgamma_tail(x) - log(x * (1 + x))
    x < 1.5 && return (x - 1) * lgamma_tail(x - 1) - log1p(x - 1)
    if x < 8
        product = 1.0
        while x > 2.5
            x -= 1
            product *= x
        end
        return log(product) + (x - 2) * lgamma_tail(x - 2)
    end
    w = 1 / (x * x)
    series =
        @polynomial(w, 1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360,
            1 / 156) / x
    x > 1e300 ? x * (log(x) - 1) : (x - 0.5) * (log(x) - 1) + (HALF_LOG_TAU_LESS_HALF + series)
end
const LOG_PI, HALF_LOG_TAU_LESS_HALF = Base.log(π), Float64((Base.log(2 * big(π)) - 1) / 2)

"""
ψ: reflection ψ(1-x) = ψ(x) + π cot πx for x < 0, recurrence ψ(x) = ψ(x+1) - 1/x up to 10, then the
asymptotic series ln x - 1/2x - Σ B₂ₖ/(2k x²ᵏ) (DLMF 5.5.2, 5.5.4, 5.11.2). At the poles it is NaN,
but -∞ at 0, as XLA's.
"""
function digamma(x::Float64)
    x == -Inf && return NaN
    if x <= 0
        x == floor(x) && return iszero(x) ? -Inf : NaN
        return digamma(1 - x) - π / tan(π * (x - round(x)))
    end
    shift = 0.0
    while x < 10
        shift += 1 / x
        x += 1
    end
    isinf(x) && return x
    w = 1 / (x * x)
    log(x) - 0.5 / x -
    w *
    @polynomial(w, 1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760,
        1 / 12) - shift
end
