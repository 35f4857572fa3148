# How far the functions of NumberMath are from the true values, in units in the last place, by MPFR.
# What is found among random arguments of all exponents is a lower bound for the worst of all;
# docs/number_math.md tabulates it.

using Random
using JaxprAD
const NM = JaxprAD.NumberMath
const LIBRARY_MPFR = isdefined(Base.MPFR, :libmpfr) ? Base.MPFR.libmpfr : :libmpfr
for f in (:erf, :erfc, :gamma)        # Base has no BigFloat methods of these
    @eval function $(Symbol(:exact_, f))(x::BigFloat)
        z = BigFloat()
        ccall(($(QuoteNode(Symbol(:mpfr_, f))), LIBRARY_MPFR), Int32,
            (Ref{BigFloat}, Ref{BigFloat}, Int32), z, x, 0)
        z
    end
end

"erf⁻¹ by Newton's method on erfc, from Winitzki's closed form."
function exact_erf_inv(x::BigFloat)
    abs(x) < 1 || return abs(x) == 1 ? x / 0 : big(NaN)
    iszero(x) && return x
    abs(x) < 1e-60 && return x * sqrt(big(π)) / 2
    q = 1 - abs(x)
    l, a = log(q * (2 - q)), 0.147
    z = sqrt(sqrt((2 / (π * a) + l / 2)^2 - l / a) - (2 / (π * a) + l / 2))
    for _ in 1:7
        z += (exact_erfc(z) - q) * sqrt(big(π)) / 2 * exp(z^2)
    end
    copysign(z, x)
end

"Exact values by MPFR; NaN outside the domain, where Base throws."
exact(f, x...) =
    try
        f(map(big, x)...)
    catch e
        e isa DomainError ? big(NaN) : rethrow()
    end

"""
The error |y - r| in units in the last place of T(r); infinite for a wrong zero's sign, infinity or
NaN. Beyond the range counts as its end."""
function ulps(y::T, r::BigFloat) where {T}
    (isnan(r) || isnan(y)) && return isnan(r) && isnan(y) ? 0.0 : Inf
    rounded = T(r)
    (isinf(y) || iszero(y)) && rounded == y &&
        return iszero(r) && signbit(y) != signbit(r) ?
               Inf : 0.0
    isinf(r) && return Inf
    Float64(abs(clamped(T, big(y)) - clamped(T, r)) / ulp(T, rounded))
end
clamped(::Type{T}, r) where {T} =
    clamp(r, -2big(2.0)^exponent(floatmax(T)), 2big(2.0)^exponent(floatmax(T)))
ulp(::Type{T}, r) where {T} = big(isfinite(r) ? eps(r) : eps(floatmax(T)))

special_positive(::Type{T}) where {T} =
    T[0, 1, 0.5, 2, Inf, NaN, 1.5, 3, 709, 88, 4, 6, 0.6, floatmin(T), floatmax(T), nextfloat(T(0)),
        prevfloat(floatmin(T)), nextfloat(T(1)), prevfloat(T(1)), (T(π) .* (1:8) ./ 4)...]
special(::Type{T}) where {T} = [special_positive(T); -special_positive(T)]
# Floats next to multiples of π/2 (Muller et al., Handbook of Floating-Point Arithmetic, 11.1).
hard(::Type{Float32}) = Float32[16367173*2.0^72, 7.1476e15]
hard(::Type{Float64}) = [6381956970095103 * 2.0^797, 6381956970095103 * 2.0^796]

"Numbers of all exponents between those of the bounds, or all that there are."
function spread(rng, ::Type{T}, n, (low, high)) where {T}
    exponents = (low, high) .|> x -> iszero(x) ? exponent(floatmin(T)) - 20 : exponent(T(x))
    T[
        rand(rng, (-1, 1)) * ldexp(1 + rand(rng, T), rand(rng, exponents[1]:exponents[2]))
        for _ in 1:n
    ]
end

"""
name => (the function of BigFloat, range of magnitudes where something happens, arity, bounds for
Float32 and Float64)"""
const FUNCTIONS = [
    (:exp, exp, (1e-2, 700), 1, 1.0, 1.0), (:exp2, exp2, (1e-2, 1000), 1, 1.25, 1.25),
    (:expm1, expm1, (1e-5, 40), 1, 1.5, 2.0),
    (:log, log, (0.1, 4), 1, 1.0, 1.0), (:log2, log2, (0.1, 4), 1, 1.0, 1.25),
    (:log1p, log1p, (1e-5, 4), 1, 1.0, 1.0),
    (:logistic, x -> 1 / (1 + exp(-x)), (1e-3, 700), 1, 2.25, 2.25),
    (:sin, sin, (1e-2, 1e5), 1, 1.75, 1.75), (:cos, cos, (1e-2, 1e5), 1, 1.75, 1.75),
    (:tan, tan, (1e-2, 1e5), 1, 3.0, 1.5),
    (:asin, asin, (1e-3, 1), 1, 2.5, 2.0), (:acos, acos, (1e-3, 1), 1, 1.5, 1.5),
    (:atan, atan, (1e-3, 100), 1, 2.0, 2.0),
    (:atan2, atan, (1e-3, 100), 2, 2.0, 2.0), (:sinh, sinh, (1e-2, 700), 1, 2.0, 2.0),
    (:cosh, cosh, (1e-2, 700), 1, 1.5, 1.5),
    (:tanh, tanh, (1e-3, 16), 1, 3.0, 1.5), (:asinh, asinh, (1e-3, 100), 1, 1.5, 1.5),
    (:acosh, acosh, (1, 100), 1, 1.5, 1.5),
    (:atanh, atanh, (1e-3, 1), 1, 1.5, 1.5), (:sqrt, sqrt, (1e-3, 100), 1, 0.5, 0.5),
    (:rsqrt, x -> 1 / sqrt(x), (1e-3, 100), 1, 1.5, 1.5),
    (:cbrt, cbrt, (1e-3, 100), 1, 1.0, 1.0),
    (:one_minus_square, x -> 1 - x^2, (1e-3, 100), 1, 0.5, 0.5),
    (:pow, ^, (1e-2, 200), 2, 1.0, 1.5),
    (:erf, exact_erf, (1e-3, 6), 1, 1.25, 1.25), (:erfc, exact_erfc, (1e-3, 26), 1, 4.0, 2.0),
    (:erf_inv, exact_erf_inv, (1e-3, 1), 1, 3.5, 1.5),
]
const REFERENCES = Dict(name => (f, range, arity) for (name, f, range, arity, _, _) in FUNCTIONS)

function arguments(rng, T, n, (low, high))
    high = min(high, T === Float32 ? 130 : Inf)
    [
        special(T);
        hard(T);
        spread(rng, T, n ÷ 2, (0, floatmax(T)));
        spread(rng, T, n - n ÷ 2,
            (low, high))
    ]
end
arguments(rng, T, n, range, arity) =
    arity == 1 ? [(x,) for x in arguments(rng, T, n, range)] :
    vcat(vec([(a, b) for a in special(T), b in special(T)]),
        collect(zip((shuffle(rng, arguments(rng, T, n, range)) for _ in 1:2)...)))

"""
The worst error of `n` arguments in `range`, `n` of all exponents and the special
ones, and where it is."""
function worst(name, T, n)
    reference, range, arity = REFERENCES[name]
    f, worst_error, place = getfield(NM, name), -1.0, ()
    for x in arguments(MersenneTwister(n), T, 2n, range, arity)
        e = ulps(f(x...), exact(reference, x...))
        e > worst_error && ((worst_error, place) = (e, x))
    end
    worst_error, place
end
