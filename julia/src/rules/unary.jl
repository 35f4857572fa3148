# Elementwise primitives of one operand. Tangents: (t, y, x) -> dy/dx · t. All are holomorphic where complex numbers are accepted.

# Julia throws where other languages give NaN; a Program's NaN is data.
"`f` with NaN for the real numbers outside its domain."
within(domain, f) = x -> x isa Real && !domain(x) ? oftype(float(x), NaN) : f(x)
not_infinite(x) = !isinf(x)
not_below(bound) = x -> !(x < bound)
not_beyond_one(x) = !(abs(x) > 1)

unary(:neg, -; tangents = ((t, y, x) -> -t,), transpose = (ȳ, x) -> (-ȳ,))
unary(:sign, x -> iszero(x) ? x : sign(x))
unary(:floor, floor; domain = isfloat)
unary(:ceil, ceil; domain = isfloat)
round_to_even(x) = round(x, RoundNearest)
round_away(x) = round(x, RoundNearestTiesAway)
unary(:round, (; method) -> method == 1 ? round_to_even : round_away; attributes = (:method,), domain = isfloat)
unary(:is_finite, isfinite; domain = isfloat, result = bool_dtype)

unary(:exp, exp; domain = isinexact, tangents = ((t, y, x) -> t * y,))
unary(:exp2, exp2; domain = isinexact, tangents = ((t, y, x) -> log(2) * (t * y),))
unary(:log, within(not_below(0), log); domain = isinexact, tangents = ((t, y, x) -> t / x,))
unary(:expm1, expm1; domain = isinexact, tangents = ((t, y, x) -> t * (y + 1),))
unary(:log1p, within(not_below(-1), log1p); domain = isinexact, tangents = ((t, y, x) -> t / (x + 1),))

# (1 - y)(1 + y) keeps the digits that 1 - y² loses where |y| is near 1.
unary(:tanh, tanh; domain = isinexact, tangents = ((t, y, x) -> t * ((1 - y) * (1 + y)),))
logistic(x::Real) = x < 0 ? (e = exp(x); e / (1 + e)) : 1 / (1 + exp(-x))
logistic(z::Complex) = 1 / (1 + exp(-z))
unary(:logistic, logistic; domain = isinexact, tangents = ((t, y, x) -> t * (y * (1 - y)),))

unary(:sin, within(not_infinite, sin); domain = isinexact, tangents = ((t, y, x) -> t * cos(x),))
unary(:cos, within(not_infinite, cos); domain = isinexact, tangents = ((t, y, x) -> -(t * sin(x)),))
unary(:tan, within(not_infinite, tan); domain = isinexact, tangents = ((t, y, x) -> t * (square(y) + 1),))
unary(:asin, within(not_beyond_one, asin); domain = isinexact, tangents = ((t, y, x) -> t * rsqrt(1 - square(x)),))
unary(:acos, within(not_beyond_one, acos); domain = isinexact, tangents = ((t, y, x) -> -(t * rsqrt(1 - square(x))),))
unary(:atan, atan; domain = isinexact, tangents = ((t, y, x) -> t / (square(x) + 1),))
unary(:sinh, sinh; domain = isinexact, tangents = ((t, y, x) -> t * cosh(x),))
unary(:cosh, cosh; domain = isinexact, tangents = ((t, y, x) -> t * sinh(x),))
unary(:asinh, asinh; domain = isinexact, tangents = ((t, y, x) -> t * rsqrt(square(x) + 1),))
unary(:acosh, within(not_below(1), acosh); domain = isinexact, tangents = ((t, y, x) -> t * rsqrt(square(x) - 1),))
unary(:atanh, within(not_beyond_one, atanh); domain = isinexact, tangents = ((t, y, x) -> t / ((1 - x) * (1 + x)),))

real_sqrt = within(not_below(0), sqrt)
unary(:sqrt, real_sqrt; domain = isinexact, tangents = ((t, y, x) -> t * (0.5 / y),))
unary(:rsqrt, x -> inv(real_sqrt(x)); domain = isinexact, tangents = ((t, y, x) -> t * (-0.5 * (y / x)),))
unary(:cbrt, cbrt; domain = isfloat, tangents = ((t, y, x) -> t * (1 / 3 * apply(:integer_pow, y; y = -2)),))
unary(:square, x -> x * x; tangents = ((t, y, x) -> t * (2 * x),))

# Repeated squaring in the order of XLA's expansion; a negative exponent divides once, at the end.
function integer_power(x, y)
    result, base, n = one(x), x, unsigned(abs(y))
    while n > 0
        isodd(n) && (result *= base)
        n >>= 1
        n > 0 && (base *= base)
    end
    y < 0 ? one(x) / result : result
end
integer_pow_tangent(t, ans, x; y) =
    y == 0 ? nothing : y == 1 ? t : y == 2 ? t * (2 * x) : t * (y * apply(:integer_pow, x; y = y - 1))
unary(:integer_pow, (; y) -> x -> integer_power(x, y); attributes = (:y,), accepts = (T; y) -> isinexact(T) || (isnumber(T) && y >= 0),
      tangents = (integer_pow_tangent,))

# |z|' = Re(ż z̄) / |z|, and 0 at 0; the derivative of a real |x| at 0 is 1, as in JAX.
function abs_tangent(t, y, x)
    iscomplex(dtype(x)) || return where_(compare(:ge, x, 0), t, -t)
    r = where_(compare(:eq, y, 0), 1, y)
    real(t * (conj(x) / astype(r, dtype(x))))
end
unary(:abs, abs; domain = T -> isinexact(T) || T <: Signed, result = (T; attrs...) -> real_dtype(T), tangents = (abs_tangent,))

unary(:not, ~; domain = islogical_dtype)
unary(:population_count, count_ones; domain = isinteger_dtype)
unary(:clz, leading_zeros; domain = isinteger_dtype)

unary(:copy, identity; domain = isanything, tangents = ((t, y, x) -> apply(:copy, t),), transpose = (ȳ, x) -> (apply(:copy, ȳ),))
unary(:stop_gradient, identity; domain = isanything)

# Keeps what stands before it from being moved or merged past it: the identity on any number of operands of any types.
@primitive OptimizationBarrier optimization_barrier
infer(::OptimizationBarrier, types, attrs) = copy(types)
evaluate(::OptimizationBarrier, x, attrs, types) = map(copy, x)
jvp(op::OptimizationBarrier, b, eqn, x, ẋ) = emit!(b, op, x), barrier_present(b, ẋ)
transpose(::OptimizationBarrier, b, eqn, ȳ, x) = barrier_present(b, ȳ)
function barrier_present(b, atoms)
    through = Iterators.Stateful(emit!(b, OptimizationBarrier(), [a for a in atoms if a !== nothing]))
    MaybeAtom[a === nothing ? nothing : popfirst!(through) for a in atoms]
end
