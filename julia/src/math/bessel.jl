# Modified Bessel functions.

"""
e⁻ˣ Iₙ(x) for x ≥ 0, n = 0 or 1: the power series, all of one sign (DLMF 10.25.2), and from x = 30,
where it is exact to rounding, Hankel's expansion (DLMF 10.40.1).
"""
function scaled_bessel(n::Int, x::Float64)
    isinf(x) && return 0.0
    term, total, k =
        x < 30 ? ((n == 0 ? 1.0 : x / 2) * exp(-x), 0.0, 0) :
        (1 / (sqrt(2π) * sqrt(x)), 0.0, 0)      # 2πx may overflow
    while abs(term) > eps() * abs(total) / 4
        total += term
        k += 1
        term *= x < 30 ? x * x / (4k * (k + n)) : -(4n^2 - (2k - 1)^2) / (8k * x)
    end
    total
end
bessel_i0e(x::Float64) = isnan(x) ? x : scaled_bessel(0, abs(x))
bessel_i1e(x::Float64) = isnan(x) ? x : copysign(scaled_bessel(1, abs(x)), x)
