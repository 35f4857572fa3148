# Elementwise primitives of one operand. Tangents: (t, y, x) -> dy/dx · t. All are holomorphic where
# complex numbers are accepted.

# Kernels are heap-free and never throw, so that native code can use them: a Program's NaN is data,
# and no thread may meet an exception.

@unary(:neg, -; tangents = ((t, y, x) -> -t,), transpose = (ȳ, x) -> (-ȳ,))
unit(x) = sign(x)
@inline unit(z::Complex) =
    (m = NumberMath.magnitude(z); ifelse(m == 0, z, complex(real(z) / m, imag(z) / m)))
# z/|z| turns by the angle Im(z̄ ż)/|z|², with 0 at 0; a real number's sign stays.
function unit_tangent(t, y, x)
    iscomplex(dtype(x)) || return nothing
    r = abs(x)
    angle = imag(conj(y) * t) / where_(compare(:eq, r, 0), 1, r)
    y * apply(:complex, literal(angle, 0), angle)
end
@unary(:sign, unit; tangents = (unit_tangent,))
@unary(:floor, floor; domain = isfloat)
@unary(:ceil, ceil; domain = isfloat)
round_to_even(x) = round(x, RoundNearest)
round_away(x) = round(x, RoundNearestTiesAway)
@unary(:round, (; method) -> method == 1 ? round_to_even : round_away; attributes = (:method,),
    domain = isfloat)
@unary(:is_finite, isfinite; domain = isfloat, result = bool_dtype)

@unary(:exp, NumberMath.exp; cost = 10, domain = isinexact, tangents = ((t, y, x) -> t * y,))
@unary(:exp2, NumberMath.exp2; cost = 10, domain = isinexact,
    tangents = ((t, y, x) -> log(2) * (t * y),))
@unary(:log, NumberMath.log; cost = 10, domain = isinexact, tangents = ((t, y, x) -> t / x,))
@unary(:log2, NumberMath.log2; cost = 10, domain = isinexact,
    tangents = ((t, y, x) -> t / (log(2) * x),))
# y + 1 would have lost eˣ where that is small.
@unary(:expm1, NumberMath.expm1; cost = 12, domain = isinexact,
    tangents = ((t, y, x) -> t * exp(x),))
@unary(:log1p, NumberMath.log1p; cost = 12, domain = isinexact,
    tangents = ((t, y, x) -> t / (x + 1),))

# 1 - x², a primitive since the product (1 - x)(1 + x), which is exact where x² is near 1, has a
# derivative that cancels where x is near 0.
@unary(:one_minus_square, NumberMath.one_minus_square; tangents = ((t, y, x) -> t * (-2 * x),))
one_minus_square(x::Traced) = apply(:one_minus_square, x)
# 1 + z² = 1 - (iz)².
times_i(z::Traced) = apply(:complex, -imag(z), real(z))
one_plus_square(x::Traced) = iscomplex(dtype(x)) ? one_minus_square(times_i(x)) : square(x) + 1

@unary(:tanh, NumberMath.tanh; cost = 14, domain = isinexact,
    tangents = ((t, y, x) -> t * one_minus_square(y),))
# 1 - y is logistic(-x), which has digits where y rounds to 1.
logistic(x::Traced) = apply(:logistic, x)
@unary(:logistic, NumberMath.logistic; cost = 12, domain = isinexact,
    tangents = ((t, y, x) -> t * (y * logistic(-x)),))

@unary(:sin, NumberMath.sin; cost = 14, domain = isinexact, tangents = ((t, y, x) -> t * cos(x),))
@unary(:cos, NumberMath.cos; cost = 14, domain = isinexact,
    tangents = ((t, y, x) -> -(t * sin(x)),))
@unary(:tan, NumberMath.tan; cost = 20, domain = isinexact,
    tangents = ((t, y, x) -> t * one_plus_square(y),))
@unary(:asin, NumberMath.asin; cost = 12, domain = isinexact,
    tangents = ((t, y, x) -> t * arc_slope(x),))
@unary(:acos, NumberMath.acos; cost = 12, domain = isinexact,
    tangents = ((t, y, x) -> -(t * arc_slope(x)),))
@unary(:atan, NumberMath.atan; cost = 12, domain = isinexact,
    tangents = ((t, y, x) -> t / one_plus_square(x),))
@unary(:sinh, NumberMath.sinh; cost = 14, domain = isinexact,
    tangents = ((t, y, x) -> t * cosh(x),))
@unary(:cosh, NumberMath.cosh; cost = 14, domain = isinexact,
    tangents = ((t, y, x) -> t * sinh(x),))
@unary(:asinh, NumberMath.asinh; cost = 16, domain = isinexact,
    tangents = ((t, y, x) -> t * asinh_slope(x),))
# Two roots: of negative real parts x² - 1 has the other one, of large numbers it is infinite, and
# near 1 it has few digits. In x + 1 a complex number on the cut would lose the sign of its
# imaginary part, -0.
@unary(:acosh, NumberMath.acosh; cost = 16, domain = isinexact,
    tangents = ((t, y, x) -> t * (rsqrt(x - 1) * rsqrt(x - -1)),))
@unary(:atanh, NumberMath.atanh; cost = 16, domain = isinexact,
    tangents = ((t, y, x) -> t / one_minus_square(x),))

"Beyond it 1 no longer counts in a sum with a square, and up to it squares are finite."
without_one(T) = 4 / sqrt(Float64(eps(T)))

"1/√(1 + x²), where x² is infinite too."
function asinh_slope(x)
    iscomplex(dtype(x)) && return arc_slope(times_i(x))
    a = abs(x)
    far = compare(:gt, a, without_one(dtype(x)))
    r = rsqrt(where_(far, a, square(x) + 1))
    where_(far, square(r), r)
end

"""
1/√(1 - x²). Large complex numbers are scaled by a power of two c: c/√(-(cz)²), on both
sides of the cut."""
function arc_slope(x)
    iscomplex(dtype(x)) || return rsqrt(one_minus_square(x))
    re, im_ = real(x), imag(x)
    m, T = max(abs(re), abs(im_)), dtype(re)
    far, c = compare(:gt, m, without_one(T)), ldexp(1.0, -(exponent(floatmax(T)) ÷ 2 + 2))
    s =
        rsqrt(
            where_(far, -square(apply(:complex, c * re, c * im_)),
                one_minus_square(where_(far, 0, x)))
        )
    s * astype(where_(compare(:eq, m, Inf), 0, where_(far, literal(m, c), literal(m, 1))), dtype(x))
end

@unary(:sqrt, NumberMath.sqrt; cost = 4, domain = isinexact,
    tangents = ((t, y, x) -> t * (0.5 / y),))
@unary(:rsqrt, NumberMath.rsqrt; cost = 4, domain = isinexact,
    tangents = ((t, y, x) -> t * (-0.5 * (y / x)),))
@unary(:cbrt, NumberMath.cbrt; cost = 12, domain = isfloat,
    tangents = ((t, y, x) -> t * (1 / 3 * apply(:integer_pow, y; y = -2)),))
@unary(:square, x -> x * x; tangents = ((t, y, x) -> t * (2 * x),))

"xᴺ; the exponent is a type, so that the kernel is a straight line."
struct IntegerPower{N} <: Function end
(::IntegerPower{N})(x) where {N} = NumberMath.integer_pow(x, Val(N))
integer_pow_tangent(t, ans, x; y) =
    y == 0 ? nothing :
    y == 1 ? t : y == 2 ? t * (2 * x) :
    t * (y * apply(:integer_pow, x; y = y - 1))
@unary(:integer_pow, (; y) -> IntegerPower{y}(); attributes = (:y,),
    accepts = (T; y) -> isinexact(T) || (isnumber(T) && y >= 0), tangents = (integer_pow_tangent,))

# |z|' = Re(ż z̄) / |z|, and 0 at 0; the derivative of a real |x| at 0 is 1, as in JAX.
function abs_tangent(t, y, x)
    iscomplex(dtype(x)) || return where_(compare(:ge, x, 0), t, -t)
    r = where_(compare(:eq, y, 0), 1, y)
    real(t * (conj(x) / astype(r, dtype(x))))
end
absolute(x) = abs(x)
@inline absolute(z::Complex) = NumberMath.magnitude(z)
@unary(:abs, absolute; domain = T -> isinexact(T) || T <: Signed,
    result = (T; attrs...) -> real_dtype(T), tangents = (abs_tangent,))

@unary(:not, ~; domain = islogical_dtype)
@unary(:population_count, count_ones; domain = isinteger_dtype)
@unary(:clz, leading_zeros; domain = isinteger_dtype)

@unary(:copy, identity; domain = isanything, tangents = ((t, y, x) -> apply(:copy, t),),
    transpose = (ȳ, x) -> (apply(:copy, ȳ),))
@unary(:stop_gradient, identity; domain = isanything)
# Identities are for transforms only.
flatten_call!(op::Elementwise, b, e, x) = op.kernel === identity ? x : nothing

# Keeps what stands before it from being moved or merged past it: the identity on any number of
# operands of any types.
@primitive OptimizationBarrier optimization_barrier
infer(::OptimizationBarrier, types, attrs) = copy(types)
evaluate(::OptimizationBarrier, x, attrs, types) = map(copy, x)
flatten_call!(::OptimizationBarrier, b, e, x) = x
keepsvalues(::OptimizationBarrier) = true
jvp(op::OptimizationBarrier, b, eqn, x, ẋ) = emit!(b, op, x), barrier_present(b, ẋ)
transpose(::OptimizationBarrier, b, eqn, ȳ, x) = barrier_present(b, ȳ)
"""
Arrays that are each computed once. XLA may compute an operand anew for each that takes it, in one
place with fused multiplication and addition, so that what is chosen from its elements need not
equal any of them."""
computed_once(b, atoms) = emit!(b, OptimizationBarrier(), atoms)
function barrier_present(b, atoms)
    through =
        Iterators.Stateful(emit!(b, OptimizationBarrier(), [a for a in atoms if a !== nothing]))
    MaybeAtom[a === nothing ? nothing : popfirst!(through) for a in atoms]
end
