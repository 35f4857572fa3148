# Cumulative reductions along an axis, from its start or (`reverse`) from its end.

"log(exp(a) + exp(b)), without overflow."
function logaddexp(a, b)
    a == b && return a + oftype(a, log(2))
    m = max(a, b)
    isnan(m) ? m : m + log1p(exp(-abs(a - b)))
end
logaddexp(a::Complex, b::Complex) = complex_logaddexp(exp, log1p, a, b)
"As JAX has it: the larger number is the one that comes later in order."
@inline function complex_logaddexp(exp, log1p, a, b)
    m = larger(a, b)
    z = ifelse(a == b, a + oftype(a, log(2)), m + log1p(exp(a + b - 2m)))
    complex(real(z), turned(imag(z)))
end
"The angle in -π … π."
function turned(y)
    half = oftype(y, π)
    r = NumberMath.rem(y + half, 2half)
    ifelse(r < 0, r + 2half, r) - half
end

const CUMULATIVE = [(:CumSum, :cumsum, +), (:CumProd, :cumprod, *), (:CumMax, :cummax, larger),
    (:CumMin, :cummin, smaller), (:CumLogSumExp, :cumlogsumexp, logaddexp)]
for (type, title, f) in CUMULATIVE
    @eval begin
        @primitive $type $title(axis, reverse)
        combiner(::$type) = $f
    end
end
const Cumulative = Union{CumSum,CumProd,CumMax,CumMin,CumLogSumExp}

"Whether running totals of this type are the same in whatever order elements are combined."
combines_exactly(::Cumulative, T) = T <: Integer
combines_exactly(::Union{CumMax,CumMin}, T) = true

function infer(op::Cumulative, types, attrs)
    check_axis(op, types[1], attrs[:axis])
    [types[1]]
end

function evaluate(op::Cumulative, x, attrs, types)
    y = uninitialized(types[1])
    accumulate_along!(combiner(op), threefold(y, attrs[:axis]), threefold(x[1], attrs[:axis]),
        attrs[:reverse])
    [y]
end

function accumulate_along!(f, y, x, reverse)
    along = reverse ? (size(x, 2):-1:1) : (1:1:size(x, 2))
    isempty(along) && return
    for k in axes(x, 3), i in axes(x, 1)
        running_totals!(f, view(y, i, along, k), view(x, i, along, k), nothing, 1:length(along))
    end
end

"""
The total of these elements, and in y the running totals, after that of all before; by halves, so
that errors grow with the logarithm of how many there are."""
function running_totals!(f, y, x, before, places)
    A = accumulator(eltype(x))
    if length(places) > FEW_TERMS
        middle = (first(places) + last(places)) ÷ 2
        left = running_totals!(f, y, x, before, first(places):middle)
        right = running_totals!(f, y, x, joined(f, before, left), middle+1:last(places))
        return f(left, right)
    end
    total = A(x[first(places)])
    y[first(places)] = joined(f, before, total)
    for j in places[2:end]
        total = f(total, A(x[j]))
        y[j] = joined(f, before, total)
    end
    total
end
const FEW_TERMS = 16
joined(f, ::Nothing, total) = total
joined(f, before, total) = f(before, total)

linear_operands(::CumSum, eqn) = (1,)
transpose(::CumSum, b, eqn, ȳ, x) =
    [emit(b, :cumsum, ȳ[1]; axis = eqn[:axis], reverse = !eqn[:reverse])]

# cummax, cummin: the tangent of the latest element that attains the running extremum. Where that is
# at position p, p is the running maximum of the positions that attain it (running minimum from the
# end). Behind the first element it is 0 where that is NaN, as in JAX.
function jvp(op::Union{CumMax,CumMin}, b, eqn, x, ẋ)
    x, axis, reverse = computed_once(b, x), eqn[:axis], eqn[:reverse]
    y = emit!(b, op, x, eqn.attrs)
    n = shape(x[1])[axis+1]
    T = index_dtype(n)
    position = Traced(b, iota(b, T, shape(x[1]), axis))
    origin = reverse ? filled_with_size(b, TensorType(T, shape(x[1])), n - 1) : 0
    attained = where_(Traced(b, emit(b, :eq, x[1], y[1])), position, origin)
    index = apply(reverse ? :cummin : :cummax, attained; axis = axis, reverse = reverse)
    ẏ = Traced(b, take_along(b, ẋ[1], index.atom, axis; unique = false))
    isnumber = compare(:eq, Traced(b, y[1]), Traced(b, y[1]))
    y, MaybeAtom[where_(apply(:or, isnumber, compare(:eq, position, origin)), ẏ, 0).atom]
end
filled_with_size(b::Builder, type::TensorType, n::Int) = n
filled_with_size(b::Builder, type::TensorType, n::DimExpr) =
    Traced(b,
        emit(b, :broadcast_in_dim, emit(b, :dim_size; dim = n, dtype = dtype_name(type.dtype));
            shape = type.shape, dims = Int[]))

# cumprod, cumlogsumexp: the scan on pairs (value, tangent), by doubling (Hillis and Steele, 1986):
# when element i has combined the s elements up to its own, joining it with element i - s makes that
# 2s. Elements without a partner stay as they are, so no neutral element is needed.

function jvp(op::Union{CumProd,CumLogSumExp}, b, eqn, x, ẋ)
    y, axis, n = emit!(b, op, x, eqn.attrs), eqn[:axis], shape(x[1])[eqn[:axis]+1]
    n isa Int ||
        throw(
            UnsupportedPrimitive(string(name(op)),
                "its derivative needs an axis of known size, got $n", eqn.source)
        )
    part(v, from, to) = Traced(b, slice_axis(b, v.atom, axis, from, to))
    together(u, v) = Traced(b, emit(b, :concatenate, u.atom, v.atom; dim = axis))
    p, ṗ, s = Traced(b, x[1]), Traced(b, ẋ[1]), 1
    while s < n
        lower(v) = part(v, 0, n - s)
        upper(v) = part(v, s, n)
        earlier, later = eqn[:reverse] ? (upper, lower) : (lower, upper)
        q, q̇ = combine_dual(op, earlier(p), earlier(ṗ), later(p), later(ṗ))
        join(v, combined) =
            eqn[:reverse] ? together(combined, part(v, n - s, n)) :
            together(part(v, 0, s), combined)
        p, ṗ, s = join(p, q), join(ṗ, q̇), 2s
    end
    y, MaybeAtom[ṗ.atom]
end

combine_dual(::CumProd, a, ȧ, b, ḃ) = a * b, ȧ * b + a * ḃ

# log(eᵃ + eᵇ) = m + log(eᵃ⁻ᵐ + eᵇ⁻ᵐ) for every finite m, so m = max(a, b) is a constant to further
# differentiation. Where both are -inf the weights are 0/0 and taken as 0.
function combine_dual(::CumLogSumExp, a, ȧ, b, ḃ)
    m = apply(:stop_gradient, max(a, b))
    m = where_(apply(:is_finite, iscomplex(dtype(m)) ? real(m) : m), m, 0)
    eᵃ, eᵇ = exp(a - m), exp(b - m)
    total = eᵃ + eᵇ
    weight = where_(compare(:eq, total, 0), 1, total)
    m + log(total), ȧ * (eᵃ / weight) + ḃ * (eᵇ / weight)
end
