# The elementwise primitives, one line each: derivative checks at safe points against references in
# BigFloat, then the conventions at special points.

one_op(op, T, n; attrs = "", result = T, operands = 1) = string("(",
    join(["%$k: $T[$n]" for k in 0:operands-1], ", "),
    ") { %$operands: $result[$n] = $op ", join(["%$k" for k in 0:operands-1], " "), attrs,
    " return
%$operands }")
big_reference(f) = (x...) -> (Float64.(f.(map(v -> big.(v), x)...)),)

const ANYWHERE, POSITIVE, UNIT = ([-2.3, -0.7, 0.4, 1.9], [0.3, 0.9, 1.7, 4.2],
    [-0.8, -0.3, 0.2, 0.7])
const ABOVE_ONE = [1.3, 1.8, 2.5, 4.0]

const LIBMPFR = isdefined(Base.MPFR, :libmpfr) ? Base.MPFR.libmpfr : :libmpfr
# Base has no BigFloat methods of these; MPFR, which it ships, does
for f in (:erf, :erfc, :gamma, :digamma)
    @eval function $(Symbol(:big_, f))(x::BigFloat)
        z = BigFloat()
        ccall(($(QuoteNode(Symbol(:mpfr_, f))), LIBMPFR), Int32,
            (Ref{BigFloat}, Ref{BigFloat}, Int32), z, x, 0)
        z
    end
end
big_lgamma(x) = log(abs(big_gamma(x)))

const UNARY = [
    :neg => (ANYWHERE, -), :exp => (ANYWHERE, exp), :exp2 => (ANYWHERE, exp2),
    :log => (POSITIVE, log), :log2 => (POSITIVE, log2), :expm1 => (ANYWHERE, expm1),
    :log1p => (POSITIVE, log1p), :tanh => (ANYWHERE, tanh),
    :logistic => (ANYWHERE, x -> 1 / (1 + exp(-x))), :sin => (ANYWHERE, sin),
    :cos => (ANYWHERE, cos), :tan => (UNIT, tan), :asin => (UNIT, asin), :acos => (UNIT, acos),
    :atan => (ANYWHERE, atan),
    :sinh => (ANYWHERE, sinh), :cosh => (ANYWHERE, cosh), :asinh => (ANYWHERE, asinh),
    :acosh => (ABOVE_ONE, acosh),
    :atanh => (UNIT, atanh), :sqrt => (POSITIVE, sqrt), :rsqrt => (POSITIVE, x -> 1 / sqrt(x)),
    :cbrt => (POSITIVE, cbrt),
    :square => (ANYWHERE, x -> x^2), :one_minus_square => (ANYWHERE, x -> 1 - x^2),
    :erf => (ANYWHERE, big_erf), :erfc => (ANYWHERE, big_erfc),
    :lgamma => (POSITIVE, big_lgamma),
    :digamma => (POSITIVE, big_digamma), :abs => (ANYWHERE, abs), :copy => (ANYWHERE, identity),
    :sign => (ANYWHERE, sign),
    :floor => (ANYWHERE, floor), :ceil => (ANYWHERE, ceil),
    :bessel_i0e => (ANYWHERE,
        x -> exp(-abs(x)) * sum((x / 2)^(2k) / factorial(big(k))^2 for k in 0:60)),
    :bessel_i1e => (
        ANYWHERE,
        x ->
            exp(-abs(x)) *
            sum((x / 2)^(2k + 1) / factorial(big(k)) / factorial(big(k + 1))
                for k in 0:60)
    ),
]
@testset "unary" begin
    for (op, (x, reference)) in UNARY
        check(one_op(op, "f64", 4), x; reference = big_reference(reference), name = string(op),
            tolerance = op === :neg ? nothing : 1e-8)
    end
    # its tangent is zero by decree
    check_value(one_op(:stop_gradient, "f64", 4), x -> (x,), ANYWHERE)
    check(one_op(:erf_inv, "f64", 4), UNIT; tolerance = 1e-8)
    for y in (-3, -1, 0, 1, 2, 3, 6)
        check(one_op(:integer_pow, "f64", 4; attrs = " {y=$y}"), ANYWHERE;
            reference = big_reference(x -> x^y), tolerance = 1e-7)
    end
end

const BINARY = [
    :add => (ANYWHERE, POSITIVE, +), :sub => (ANYWHERE, POSITIVE, -),
    :mul => (ANYWHERE, POSITIVE, *), :div => (ANYWHERE, POSITIVE, /),
    :rem => ([55.0, -55, 5, 34], [20.0, 20, 10, 20], rem), :pow => (POSITIVE, ANYWHERE, ^),
    :max => (ANYWHERE, POSITIVE, max),
    :min => (ANYWHERE, UNIT, min), :atan2 => (ANYWHERE, POSITIVE, atan),
]
@testset "binary" begin
    for (op, (x, y, reference)) in BINARY
        check(one_op(op, "f64", 4; operands = 2), x, y; reference = big_reference(reference),
            name = string(op), tolerance = 1e-8)
    end
    check(one_op(:zeta, "f64", 4; operands = 2), ABOVE_ONE, POSITIVE; active = [false, true],
        second = false, tolerance = 1e-7)
    for op in (:igamma, :igammac)
        check(one_op(op, "f64", 4; operands = 2), POSITIVE, ABOVE_ONE; second = false,
            tolerance = 1e-7)
        check(one_op(op, "f64", 4; operands = 2), POSITIVE, ABOVE_ONE; active = [false, true],
            second = false, tolerance = 1e-7, name = "$op by x")
    end
    check(one_op(:igamma_grad_a, "f64", 4; operands = 2), POSITIVE, ABOVE_ONE;
        active = [false, true], second = false, tolerance = 1e-7)
    # Where the two expansions meet, at small and large arguments: against differences of P itself.
    for a in (1e-3, 0.4, 1.0, 3.0, 40.0), x in (0.05, 0.999, 1.001, a * 0.999, a * 1.001, 3a)
        h = 1e-4 * a
        p(a) = JaxprAD.NumberMath.igamma(a, x)
        slope = (8 * (p(a + h) - p(a - h)) - (p(a + 2h) - p(a - 2h))) / 12h
        @test isapprox(JaxprAD.NumberMath.igamma_grad_a(a, x), slope; rtol = 1e-8, atol = 1e-9)
    end
    @test isequal(
        JaxprAD.NumberMath.igamma_grad_a.([1.0, 1.0, 0.0, 1.0, NaN, 2.0],
            [0.0, Inf, 1.0, -1.0, 1.0, NaN]), [0.0, 0.0, NaN, NaN, NaN, NaN])
    check(one_op(:polygamma, "f64", 4; operands = 2), [0.0, 1, 2, 3], POSITIVE .+ 1;
        active = [false, true], second = false, tolerance = 1e-7)
    check(one_op(:regularized_incomplete_beta, "f64", 4; operands = 3), POSITIVE, ABOVE_ONE,
        abs.(UNIT);
        active = [false, false, true], second = false, tolerance = 1e-7)
end

const PLANE = [0.7 + 0.4im, -0.6 + 0.3im, 0.2 - 0.5im, -0.3 - 0.8im]
@testset "complex" begin
    for op in (:exp, :exp2, :log, :log2, :sin, :cos, :tan, :tanh, :sinh, :cosh, :asinh, :acosh,
        :atanh, :sqrt, :rsqrt, :square, :one_minus_square, :expm1, :log1p, :logistic, :neg, :atan,
        :asin, :acos, :sign)
        check(one_op(op, "c128", 4), PLANE; tolerance = 1e-7, name = "complex $op")
    end
    for op in (:add, :sub, :mul, :div, :pow)
        check(one_op(op, "c128", 4; operands = 2), PLANE, reverse(PLANE) .+ 1; tolerance = 1e-7,
            name = "complex $op")
    end
    check(one_op(:abs, "c128", 4; result = "f64"), PLANE; reference = z -> (abs.(z),),
        tolerance = 1e-8)
    check(one_op(:real, "c128", 4; result = "f64"), PLANE; reference = z -> (real.(z),))
    check(one_op(:imag, "c128", 4; result = "f64"), PLANE; reference = z -> (imag.(z),))
    check(one_op(:conj, "c128", 4), PLANE; reference = z -> (conj.(z),))
    check(one_op(:conj, "f64", 4; result = "c128"), ANYWHERE; reference = x -> (complex.(x),))
    # Below the negative axis a root would be another.
    below = program("(%0: f64[]) { %1: c128[] = conj %0 %2: c128[] = sqrt %1 return %2 }")
    @test run(below, -1.5)[1][] == im * sqrt(1.5) && native_agrees(below, Any[fill(-1.5)])
    check(one_op(:complex, "f64", 4; result = "c128", operands = 2), ANYWHERE, POSITIVE;
        reference = (x, y) -> (complex.(x, y),))
end

@testset "conversion and choice" begin
    check(one_op(:convert_element_type, "f64", 4; result = "c128", attrs = " {dtype=c128}"),
        ANYWHERE)
    check(one_op(:convert_element_type, "c128", 4; result = "f64", attrs = " {dtype=f64}"), PLANE)
    check(one_op(:convert_element_type, "f64", 4; result = "f32", attrs = " {dtype=f32}"), ANYWHERE;
        tolerance = 2e-3)
    check(one_op(:reduce_precision, "f64", 4; attrs = " {exponent_bits=11, mantissa_bits=52}"),
        ANYWHERE)
    which = [true, false, true, false]
    check("(%0: bool[4], %1: f64[4], %2: f64[4]) {
      %3: f64[4] = select_n %0 %1 %2 return %3 }", which, ANYWHERE, POSITIVE;
        reference = (w, a, b) -> (ifelse.(w, b, a),))
    check("(%0: bool[4], %1: f64[4]) { %2: f64[4] = select_n %0 %1 1.0:f64 return %2 }", which,
        ANYWHERE)
    check("(%0: i32[4], %1: f64[4], %2: f64[4], %3: f64[4]) {
      %4: f64[4] = select_n %0 %1 %2 %3 return %4 }", Int32[2, 0, 1, 1],
        ANYWHERE, POSITIVE, UNIT; reference = (w, x...) -> ([x[w[k]+1][k] for k in 1:4],))
    check("(%0: f64[4]) { %1: f64[4] = clamp -1.0:f64 %0 1.0:f64 return %1 }",
        ANYWHERE; reference = x -> (clamp.(x, -1, 1),))
    check("(%0: f64[4], %1: f64[4], %2: f64[4]) {
      %3: f64[4] = clamp %0 %1 %2 return %3 }", UNIT .- 1, ANYWHERE, UNIT .+ 1.5)
    check("(%0: f64[4], %1: i32[2], %2: f64[]) { %3: f64[4], %4: i32[2],
      %5: f64[] = optimization_barrier %0 %1 %2 return %3 %4 %5 }",
        ANYWHERE, Int32[1, 2], fill(0.3))
    check("(%0: f64[4]) { %1: f64[4] = pow %0 2.5:f64
      %2: f64[4] = pow 3.0:f64 %1 return %2 }", POSITIVE; tolerance = 1e-6,
        name = "pow of literals")
    check("(%0: f64[4]) { %1: f64[4] = max %0 0.0:f64
      %2: f64[4] = div 1.0:f64 %1 return %2 }", POSITIVE; tolerance = 1e-7, name = "max literal")
end

@testset "small floats" begin
    for (T, type) in (Float32 => "f32", Float16 => "f16", JaxprAD.BFloat16 => "bf16"),
        op in (:sin, :exp, :tanh, :log, :erf, :square)

        text = one_op(op, type, 4)
        x = T.(POSITIVE ./ 2)
        p, wide_p = jvp(program(text)), jvp(program(replace(text, type => "f64")))
        @test relative_error(run(p, Any[x, x]),
            run(wide_p, Any[Float64.(x), Float64.(x)])) <= 8eps(T)
    end
end

"The derivative of a Program of f64 scalars at a point, along its inputs in turn."
function slopes(text, x...)
    p = program(text)
    [
        run(typecheck(jvp(p, eachindex(x) .== i)), Any[map(fill, x)..., fill(1.0)])[2][]
        for i in eachindex(x)
    ]
end
scalar_op(op, n; attrs = "") =
    replace(one_op(op, "f64", 0; operands = n, attrs = attrs), "[0]" => "[]")

@testset "conventions at kinks and edges" begin
    @test slopes(scalar_op(:abs, 1), 0.0) == [1.0]
    @test slopes(scalar_op(:sign, 1), 2.0) == [0.0]
    @test slopes(scalar_op(:max, 2), 1.5, 1.5) == [0.5, 0.5] == slopes(scalar_op(:min, 2), 1.5, 1.5)
    @test slopes(scalar_op(:max, 2), 2.0, 1.5) == [1.0, 0.0]
    @test slopes(scalar_op(:clamp, 3), 1.0, 1.0, 2.0) == [0.0, 0.0, 0.0]
    @test slopes(scalar_op(:clamp, 3), 1.0, 3.0, 2.0) == [0.0, 0.0, 1.0]
    @test slopes(scalar_op(:sqrt, 1), 0.0) == [Inf]
    @test isequal(slopes(scalar_op(:pow, 2), 0.0, 0.0), [NaN, 0.0])
    @test slopes(scalar_op(:pow, 2), 0.0, 2.0) == [0.0, 0.0]
    @test slopes(scalar_op(:integer_pow, 1; attrs = " {y=0}"), 0.0) == [0.0]
    @test slopes(scalar_op(:integer_pow, 1; attrs = " {y=1}"), 0.0) == [1.0]
    @test slopes(scalar_op(:rem, 2), -7.5, 2.0) == [1.0, 3.0]
    @test slopes(scalar_op(:bessel_i1e, 1), 0.0) == [0.5]
    @test_throws JaxprAD.UnsupportedPrimitive slopes(scalar_op(:zeta, 2), 3.0, 2.0)
    @test slopes(scalar_op(:nextafter, 2), 1.0, 2.0) == [1.0, 0.0]
end

# ---- derivatives to the last digits, where formulas overflow or cancel; true ones in BigFloat

const TYPE_NAMES = Dict(Float32 => "f32", Float64 => "f64", Float16 => "f16", ComplexF32 => "c64",
    ComplexF64 => "c128")
"""
The first and second derivatives of an operation by one operand, at each of the numbers in
the direction of 1."""
function two_slopes(op, x::AbstractVector{T}; operands = 1) where {T}
    p = program(one_op(op, TYPE_NAMES[T], length(x); operands = operands))
    ones_, first_ = fill(one(T), length(x)), jvp(p)
    second = jvp(first_, [true, false])
    (run(first_, Any[x, ones_])[2], run(second, Any[x, ones_, ones_])[4])
end
"""
How far numbers are from the true ones, in units of roundoff; what is infinite, zero or NaN must be
so, or below the normal numbers."""
roundoffs(y::AbstractVector{T}, truth) where {T} =
    largest(Float64[off(a, b) for (a, b) in zip(y, truth)])
function off(y::T, truth) where {T}
    R = real(T)
    (y == T(truth) || isnan(y) && isnan(truth)) && return 0.0
    abs(truth) < floatmin(R) && return abs(y) <= floatmin(R) ? 0.0 : Inf
    isfinite(y) ? Float64(abs(big(y) - truth) / abs(truth)) / eps(R) : Inf
end
wide_range(T) =
    T[floatmin(T), sqrt(floatmin(T)), eps(T)^2, eps(T)/3, sqrt(eps(T))/7, 0.1, 0.9, 3, 77,
        1/sqrt(eps(T)), 1/eps(T), sqrt(floatmax(T))*3, floatmax(T)/5]
below_one(T) = T[filter(<(1), wide_range(T)); 0.99; 1 - sqrt(eps(T)); prevfloat(one(T))]
above_one(T) = T[nextfloat(one(T)); 1 + sqrt(eps(T)); 1.01; filter(>(1), wide_range(T))]
both_signs(x) = [x; -x]

# (the operation, numbers, the first derivative, the second)
const EXACT_SLOPES = [
    (:expm1, T -> T[both_signs(below_one(T)); -3; -30; -80], exp, exp),
    (:log2, wide_range, x -> 1 / (x * log(big(2))), x -> -1 / (x^2 * log(big(2)))),
    (:one_minus_square, T -> both_signs(wide_range(T)), x -> -2x, x -> big(-2)),
    (:asin, T -> both_signs(below_one(T)), x -> 1 / sqrt(1 - x^2), x -> x / sqrt(1 - x^2)^3),
    (:acos, T -> both_signs(below_one(T)), x -> -1 / sqrt(1 - x^2), x -> -x / sqrt(1 - x^2)^3),
    (:atan, T -> both_signs(wide_range(T)), x -> 1 / (1 + x^2), x -> -2x / (1 + x^2)^2),
    (:asinh, T -> both_signs(wide_range(T)), x -> 1 / sqrt(1 + x^2), x -> -x / sqrt(1 + x^2)^3),
    (:acosh, above_one, x -> 1 / sqrt(x^2 - 1), x -> -x / sqrt(x^2 - 1)^3),
    (:atanh, T -> both_signs(below_one(T)), x -> 1 / (1 - x^2), x -> 2x / (1 - x^2)^2),
    (:tanh, T -> both_signs(filter(<(0.2), wide_range(T))), x -> 1 / cosh(x)^2,
        x -> -2tanh(x) / cosh(x)^2),
]
@testset "derivatives of $op $T" for (op, numbers, slope, bend) in EXACT_SLOPES,
    T in (Float64, Float32)

    x = numbers(T)
    first_, second = setprecision(() -> (slope.(big.(x)), bend.(big.(x))), 2500)
    found = two_slopes(op, x)
    @test roundoffs(found[1], first_) <= 6
    @test roundoffs(found[2], second) <= 16
end

@testset "derivatives of atan2 $T" for T in (Float64, Float32)
    parts =
        both_signs(
            T[floatmin(T)*8, sqrt(floatmin(T)), 1e-3, 1, 1e3, sqrt(floatmax(T))*3,
                floatmax(T)/8]
        )
    a, b = vec([a for a in parts, b in parts]), vec([b for a in parts, b in parts])
    p = jvp(program(one_op(:atan2, TYPE_NAMES[T], length(a); operands = 2)))
    norm = big.(a) .^ 2 .+ big.(b) .^ 2
    one_, none = fill(one(T), length(a)), fill(zero(T), length(a))
    @test roundoffs(run(p, Any[a, b, one_, none])[2], big.(b) ./ norm) <= 4
    @test roundoffs(run(p, Any[a, b, none, one_])[2], -big.(a) ./ norm) <= 4
    @test isequal(slopes(scalar_op(:atan2, 2), 0.0, 0.0), [NaN, NaN]) &&
          slopes(scalar_op(:atan2, 2), 2.0, Inf) == [0.0, 0.0]
end
@testset "half precision, whose squares are infinite from 256 on" begin
    x = Float16[300, -3000, 60000]
    @test two_slopes(:asinh, x)[1] ≈ 1 ./ abs.(x)
    @test two_slopes(:acosh, abs.(x))[1] ≈ 1 ./ abs.(x)
    p = jvp(program(one_op(:atan2, "f16", 3; operands = 2)))
    @test run(p, Any[x, x, one.(x), zero.(x)])[2] ≈ 1 ./ 2x
end

# On both sides of cuts, left of them too, and where squares overflow.
const CIRCLES = [
    r * cis(ϕ) for r in (1e-12, 0.3, 0.999, 1.001, 3, 1e5, 1e9)
    for ϕ in (0.1, 1.4, 1.6, 3.0, -0.2, -1.5, -1.7, -3.1)
]
const ON_AXES = [
    complex(x, y) for x in (2.5, -2.5, 0.4, 0.0, -0.0)
    for y in (2.5, -2.5, 0.4, 0.0, -0.0) if (x == 0) != (y == 0)
]
const COMPLEX_SLOPES = [
    (:asin, z -> 1 / (sqrt(1 - z) * sqrt(1 + z))),
    (:acos, z -> -1 / (sqrt(1 - z) * sqrt(1 + z))),
    (:atan, z -> 1 / (1 + z^2)),
    (:acosh, z -> 1 / (sqrt(z - 1) * sqrt(z + 1))), (:atanh, z -> 1 / (1 - z^2)),
    (:asinh, z -> 1 / (sqrt(1 + 1im * z) * sqrt(1 - 1im * z))),
    (:log2, z -> 1 / (z * log(big(2)))), (:tan, z -> 1 / cos(z)^2),
    (:one_minus_square, z -> -2z),
]
@testset "derivatives of complex $op" for (op, slope) in COMPLEX_SLOPES
    for T in (ComplexF64, ComplexF32)
        z = T.(op === :tan ? filter(z -> abs(imag(z)) < 2 && abs(z) < 4, CIRCLES) : CIRCLES)
        @test roundoffs(two_slopes(op, z)[1], [slope(ComplexF64(v)) for v in z]) <=
              (T === ComplexF32 ? 12 : 60)
    end
end
@testset "derivatives of $op on the side of its cut that a zero's sign says" for op in
                                                                                 (:asin, :acos,
    :atan, :asinh, :acosh, :atanh, :log, :log2, :sqrt)
    f, h = JaxprAD.kernel(JaxprAD.primitive(op), JaxprAD.NO_ATTRIBUTES), 1e-6
    along(z, s) = iszero(imag(z)) ? complex(real(z) + s, imag(z)) : complex(real(z), imag(z) + s)
    measured = [(f(along(z, h)) - f(along(z, -h))) / (iszero(imag(z)) ? 2h : 2h * im)
     for z in ON_AXES]
    @test isapprox(two_slopes(op, ON_AXES)[1], measured; rtol = 1e-7)
end

ill_typed(op, T; options...) = refuses(one_op(op, T, 3; options...))
@testset "dtypes are checked" begin
    @test ill_typed(:sin, "i32") && ill_typed(:floor, "c64") && ill_typed(:neg, "bool") &&
          ill_typed(:not, "f32")
    @test ill_typed(:real, "f32") && ill_typed(:cbrt, "c64") && ill_typed(:clz, "f32") &&
          ill_typed(:integer_pow, "i32"; attrs = " {y=-1}")
    @test ill_typed(:add, "bool"; operands = 2) &&
          ill_typed(:lt, "c64"; operands = 2, result = "bool")
    @test ill_typed(:complex, "f16"; operands = 2, result = "c64") &&
          ill_typed(:sin, "f32"; operands = 2)
    @test refuses("(%0: f32[3], %1: f64[3]) { %2: f32[3] = add %0 %1 return %2 }")
    @test refuses("(%0: f32[3], %1: f64[3]) { %2: f64[3] = select_n %0 %1 %1 return %2 }")
    @test refuses("(%0: bool[3], %1: f64[3]) { %2: f64[3] = select_n %0 %1 %1 %1 return %2 }")
end

@testset "integers, bits and conversions" begin
    value(op, result, T, x...; attrs = "") =
        vec(
            run(
                program(
                    one_op(op, T, length(x[1]); operands = length(x), result = result,
                        attrs = attrs)
                ), Any[x...])[1]
        )
    low, high = typemin(Int32), typemax(Int32)
    @test value(:div, "i32", "i32", Int32[7, -7, 5, low], Int32[2, 2, 0, -1]) == [3, -3, -1, low]
    @test value(:rem, "i32", "i32", Int32[7, -7, 5, low], Int32[2, 2, 0, -1]) == [1, -1, 5, 0]
    @test value(:div, "u8", "u8", UInt8[7, 200], UInt8[0, 3]) == [0xff, 66]
    @test value(:add, "i32", "i32", Int32[high], Int32[1]) == [low]
    @test value(:abs, "i32", "i32", Int32[low, -3]) == [low, 3]
    @test value(:shift_left, "i32", "i32", Int32[1, 1, 1], Int32[31, 32, -1]) == [low, 0, 0]
    @test value(:shift_right_arithmetic, "i32", "i32", Int32[-8, -8, 8], Int32[1, 40, 40]) ==
          [-4, -1, 0]
    @test value(:shift_right_logical, "i32", "i32", Int32[-8, -8], Int32[1, 40]) == [0x7ffffffc, 0]
    @test value(:mulhi, "i64", "i64", [typemax(Int64), -1], [4, 1]) == [1, -1]
    @test value(:population_count, "i8", "i8", Int8[-1, 3]) == [8, 2] &&
          value(:clz, "i8", "i8", Int8[1, -1]) == [7, 0]
    to(T) = " {dtype=$T}"
    @test value(:convert_element_type, "i32", "f64", [NaN, 1e20, -1e20, -2.7]; attrs = to("i32")) ==
          [0, high, low, -2]
    @test value(:convert_element_type, "u8", "f64", [-3.0, 300.0, 3.9]; attrs = to("u8")) ==
          [0, 255, 3]
    @test value(:convert_element_type, "i8", "i32", Int32[300, -129]; attrs = to("i8")) == [44, 127]
    @test value(:convert_element_type, "bool", "f64", [0.0, -0.0, 0.1, NaN]; attrs = to("bool")) ==
          [false, false, true, true]
    @test value(:round, "f64", "f64", [0.5, 1.5, -2.5]; attrs = " {method=0}") == [1, 2, -3]
    @test value(:round, "f64", "f64", [0.5, 1.5, -2.5]; attrs = " {method=1}") == [0, 2, -2]
    @test isequal(value(:max, "f64", "f64", [NaN, 1.0], [1.0, NaN]), [NaN, NaN])
    @test value(:nextafter, "f32", "f32", Float32[0, 1, 1], Float32[-1, 2, 1]) ==
          [-1.0f-45, nextfloat(1.0f0), 1]
    @test isequal(
        value(:pow, "f64", "f64", [-2.0, -2.0, -Inf, 0.0, -1.0],
            [3.0, 0.5, 0.5, 0.0, NaN]), [-8.0, NaN, Inf, 1.0, NaN])
    @test isequal(value(:log, "f64", "f64", [-1.0, 0.0]), [NaN, -Inf]) &&
          isequal(value(:sin, "f64", "f64", [Inf]), [NaN])
    @test value(:erf_inv, "f64", "f64", [1.0, -1.0, 0.5]) ≈ [Inf, -Inf, 0.4769362762044699]
    @test value(:reduce_precision, "f32", "f32", Float32[1.00390625, 1e30, 1e-30];
        attrs = " {exponent_bits=5, mantissa_bits=7}") == [1.0, Inf, 0.0]
end

@testset "special functions against closed forms" begin
    f(op, x...) = run(program(scalar_op(op, length(x))), Any[map(fill, x)...])[1][]
    for x in (0.2, 1.0, 3.7, 20.0)
        @test f(:igamma, 1.0, x) ≈ 1 - exp(-x) && f(:igammac, 1.0, x) ≈ exp(-x)
        @test f(:igamma, 2.5, x) + f(:igammac, 2.5, x) ≈ 1 && f(:igamma, 0.5, x) ≈ f(:erf, sqrt(x))
        @test f(:digamma, 1.1 - x) ≈ f(:digamma, 0.1 - x) + 1 / (0.1 - x)
        @test f(:erf, f(:erf_inv, exp(-x))) ≈ exp(-x)
    end
    @test f(:zeta, 2.0, 1.0) ≈ π^2 / 6 ≈ f(:polygamma, 1.0, 1.0) &&
          f(:polygamma, 1.0, 0.5) ≈ π^2 / 2
    @test f(:polygamma, 0.0, 1.0) ≈ -Base.MathConstants.eulergamma ≈ f(:digamma, 1.0)
    @test f(:regularized_incomplete_beta, 2.0, 3.0, 0.4) ≈ 6 * 0.4^2 - 8 * 0.4^3 + 3 * 0.4^4
    @test f(:regularized_incomplete_beta, 5.0, 1.0, 0.9) ≈ 0.9^5 &&
          f(:regularized_incomplete_beta, 1.0, 1.0, 0.0) == 0
    @test f(:digamma, 0.0) == f(:digamma, -0.0) == f(:polygamma, 0.0, 0.0) == -Inf
    @test isnan(f(:digamma, -2.0)) && f(:lgamma, -2.0) == Inf && isnan(f(:igamma, -1.0, 1.0)) &&
          isnan(f(:igammac, Inf, Inf)) && f(:igamma, Inf, 1.0) == 0 &&
          isnan(f(:igamma, 1e300, 1e300)) && f(:zeta, 1.0, 2.0) == Inf
    # On either side of the change from series to Hankel's expansion.
    @test f(:bessel_i0e, prevfloat(30.0)) ≈ f(:bessel_i0e, 30.0) &&
          f(:bessel_i1e, prevfloat(30.0)) ≈ f(:bessel_i1e, 30.0)
    @test f(:bessel_i0e, floatmax()) ≈ -f(:bessel_i1e, -floatmax()) ≈
          1 / (sqrt(2π) * sqrt(floatmax()))
end
