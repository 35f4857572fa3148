# Special functions. Those without vectors are computed in Float64 and rounded; the methods are
# textbook series (src/math), with limits in accuracy of a few units in the last place of Float64
# unless said otherwise.

# Were it not inlined, a call of a function of any number of arguments would box them.
special(f) = (@inline in_double(x...) = f(map(Float64, x)...); in_double)

@unary(:erf, NumberMath.erf; cost = 14, domain = isfloat,
    tangents = ((t, y, x) -> t * (2 / sqrt(π) * exp(-square(x))),))
@unary(:erfc, NumberMath.erfc; cost = 20, domain = isfloat,
    tangents = ((t, y, x) -> t * (-2 / sqrt(π) * exp(-square(x))),))
@unary(:erf_inv, NumberMath.erf_inv; cost = 40, domain = isfloat,
    tangents = ((t, y, x) -> t * (sqrt(π) / 2 * exp(square(y))),))
@unary(:lgamma, special(NumberMath.lgamma); cost = 60, domain = isfloat,
    tangents = ((t, y, x) -> t * apply(:digamma, x),))
@unary(:digamma, special(NumberMath.digamma); cost = 60, domain = isfloat,
    tangents = ((t, y, x) -> t * apply(:polygamma, literal(x, 1), x),))
@binary(:polygamma, special(NumberMath.polygamma); cost = 200, domain = isfloat,
    tangents = (no_rule, (t, y, m, x) -> t * apply(:polygamma, m + 1, x)))
@binary(:zeta, special(NumberMath.zeta); cost = 200, domain = isfloat,
    tangents = (no_rule, (t, y, s, q) -> t * (-s * apply(:zeta, s + 1, q))))

@unary(:bessel_i0e, special(NumberMath.bessel_i0e); cost = 30, domain = isfloat,
    tangents = ((t, y, x) -> t * (apply(:bessel_i1e, x) - sign(x) * y),))
# I₁′ = I₀ - I₁/x, and 1/2 at 0.
function bessel_i1e_tangent(t, y, x)
    tiny = Float64(eps(dtype(x)))
    away = compare(:gt, abs(x), tiny)
    safe = where_(away, x, tiny)
    t * where_(away, apply(:bessel_i0e, safe) - y * (sign(safe) + 1 / safe), 0.5)
end
@unary(:bessel_i1e, special(NumberMath.bessel_i1e); cost = 30, domain = isfloat,
    tangents = (bessel_i1e_tangent,))

# ∂P/∂x = xᵃ⁻¹ e⁻ˣ / Γ(a). The derivative by a is not elementary, and a primitive of its own.
gamma_density(a, x) = exp((a - 1) * log(x) - x - apply(:lgamma, a))
@binary(:igamma, special(NumberMath.igamma); cost = 200, domain = isfloat,
    tangents = ((t, y, a, x) -> t * apply(:igamma_grad_a, a, x),
        (t, y, a, x) -> t * gamma_density(a, x)))
@binary(:igammac, special(NumberMath.igammac); cost = 200, domain = isfloat,
    tangents = ((t, y, a, x) -> -(t * apply(:igamma_grad_a, a, x)),
        (t, y, a, x) -> -(t * gamma_density(a, x))))
# ∂²P/∂a∂x is the density's derivative by a.
@binary(:igamma_grad_a, special(NumberMath.igamma_grad_a); cost = 400, domain = isfloat,
    tangents = (no_rule, (t, y, a, x) -> t * (gamma_density(a, x) * (log(x) - apply(:digamma, a)))))
function beta_density(a, b, x)
    log_beta = apply(:lgamma, a) + apply(:lgamma, b) - apply(:lgamma, a + b)
    exp((b - 1) * log1p(-x) + (a - 1) * log(x) - log_beta)
end
@elementwise(:regularized_incomplete_beta, 3, special(NumberMath.betainc); cost = 200,
    domain = isfloat, tangents = (no_rule, no_rule, (t, y, a, b, x) -> t * beta_density(a, b, x)))
