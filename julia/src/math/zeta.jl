# Hurwitz's zeta function and the derivatives of digamma.

# B₂ₖ/(2k)!, k = 1 … 12 (DLMF 24.2).
const BERNOULLI_OVER_FACTORIAL = Tuple(
    Float64[
        b / factorial(big(2k)) for (k, b) in enumerate(
            BigInt[1, -1, 1, -1, 5, -691, 7, -3617, 43867, -174611, 854513, -236364091] .//
            BigInt[6, 30, 42, 30, 66, 2730, 6, 510, 798, 330, 138, 2730])
    ]
)

"""
The Hurwitz zeta function Σ (q+k)⁻ˢ for s > 1 by Euler and Maclaurin (DLMF 25.11.28): ten terms, the
integral, half a term and the Bernoulli corrections. Infinite at the poles q = 0, -1, …; defined at
other negative q for integer s only.
"""
function zeta(s::Float64, q::Float64)
    (isnan(s) || isnan(q) || s < 1) && return NaN
    s == 1 && return Inf
    if q <= 0
        q == floor(q) && return iseven_number(s) ? Inf : NaN
        s == floor(s) || return NaN
    end
    total, a = 0.0, q
    for _ in 1:(q < 0 ? unsafe_trunc(Int, ceil(min(-q, 1e6))) : 0)+10
        term = signed_power(a, -s)
        total += term
        a += 1
        abs(term) < eps() * abs(total) / 4 && a > 0 && return total
    end
    power = pow(a, -s)
    total += power * a / (s - 1) + power / 2
    factor = s * power / a
    # Julia 1.12 checks the bounds of a tuple that is iterated, which a kernel may not.
    for k in 1:length(BERNOULLI_OVER_FACTORIAL)
        term = @inbounds(BERNOULLI_OVER_FACTORIAL[k]) * factor
        total += term
        abs(term) < eps() * abs(total) / 4 && break
        factor *= (s + 2k - 1) * (s + 2k) / (a * a)
    end
    total
end
iseven_number(s) = s == 2floor(s / 2)
signed_power(a, s) = a < 0 ? (iseven_number(s) ? 1.0 : -1.0) * pow(-a, s) : pow(a, s)

"ψ⁽ᵐ⁾(x) = (-1)ᵐ⁺¹ m! ζ(m+1, x) for integers m ≥ 1 (DLMF 25.11.12)."
function polygamma(m::Float64, x::Float64)
    m == 0 && return digamma(x)
    (m > 0 && m == floor(m)) || return NaN
    (iseven_number(m) ? -1.0 : 1.0) * exp(lgamma(m + 1)) * zeta(m + 1, x)
end
