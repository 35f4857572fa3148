# Reductions over axes.

# f(a, b) and its neutral element for an accumulator of type T.
const REDUCTIONS = [(:ReduceSum, :reduce_sum, +, zero), (:ReduceProd, :reduce_prod, *, one),
    (:ReduceMax, :reduce_max, larger, least), (:ReduceMin, :reduce_min, smaller, greatest),
    (:ReduceAnd, :reduce_and, &, T -> ~zero(T)), (:ReduceOr, :reduce_or, |, zero),
    (:ReduceXor, :reduce_xor, ⊻, zero)]
for (type, title, f, neutral) in REDUCTIONS
    @eval begin
        @primitive $type $title(axes)
        combiner(::$type) = $f
        neutral(::$type, T) = $neutral(T)
    end
end
const LogicalReduction = Union{ReduceAnd,ReduceOr,ReduceXor}
const Reduction = Union{ReduceSum,ReduceProd,ReduceMax,ReduceMin,LogicalReduction}

isreduction(::Reduction) = true
haszerotangent(::LogicalReduction) = true
linear_operands(::ReduceSum, eqn) = (1,)

accepts(::Reduction, T) = true
accepts(::LogicalReduction, T) = T <: Integer
accepts(::Union{ReduceSum,ReduceProd}, T) = T !== Bool

function infer(op::Reduction, types, attrs)
    accepts(op, types[1].dtype) || infer_error(op, "does not take $(type_text(types[1]))")
    [reduced(op, types[1], attrs[:axes])]
end

"The type of a reduction's result: the axes are gone."
function reduced(op, x::TensorType, axes)
    check_axes(op, x, axes)
    TensorType(x.dtype, x.shape[axes_except(x, axes).+1])
end
"Julia's dimensions for JAX's axes of an array."
julia_dims(x::AbstractArray, axes) = Tuple(ndims(x) - k for k in axes)

function evaluate(op::Reduction, x, attrs, types)
    isempty(attrs[:axes]) && return [copy(x[1])]
    T = types[1].dtype
    A = accumulator(T)
    y = reduce(combiner(op), convert(Array{A}, x[1]); dims = julia_dims(x[1], attrs[:axes]),
        init = neutral(op, A))
    [reshape(convert(Array{T}, y), julia_size(types[1]))]
end

transpose(::ReduceSum, b, eqn, ȳ, x) = [spread_over(b, ȳ[1], aval(x[1]), eqn[:axes])]

# All elements that attain the extremum share the tangent equally.
function jvp(op::Union{ReduceMax,ReduceMin}, b, eqn, x, ẋ)
    x, axes = computed_once(b, x), eqn[:axes]
    y = emit!(b, op, x, eqn.attrs)
    attained = cast(b, emit(b, :eq, x[1], spread_over(b, y[1], aval(x[1]), axes)), dtype(x[1]))
    total = emit(b, :reduce_sum, emit(b, :mul, ẋ[1], attained); axes = axes)
    y, MaybeAtom[emit(b, :div, total, emit(b, :reduce_sum, attained; axes = axes))]
end

# ∂(∏x)/∂xᵢ = ∏_{j<i} xⱼ · ∏_{j>i} xⱼ: no division, so zeros do no harm.
function jvp(op::ReduceProd, b, eqn, x, ẋ)
    y, axes = emit!(b, op, x, eqn.attrs), eqn[:axes]
    isempty(axes) && return y, MaybeAtom[ẋ[1]]
    flat = flatten_axes(b, x[1], axes)
    axis = ndims(aval(flat)) - 1
    others = emit(b, :mul, product_before(b, flat, axis, false),
        product_before(b, flat, axis, true))
    ẏ = emit(b, :reduce_sum, emit(b, :mul, flatten_axes(b, ẋ[1], axes), others); axes = [axis])
    y, MaybeAtom[ẏ]
end

"The array with these axes moved to the end and made one."
function flatten_axes(b::Builder, x::Atom, axes)
    kept = axes_except(aval(x), axes)
    perm = vcat(kept, sort(axes))
    moved = issorted(perm) ? x : emit(b, :transpose, x; perm = perm)
    n = shape(x)
    length(axes) == 1 ? moved :
    emit(b, :reshape, moved; shape = Dim[n[kept.+1]..., size_of(n[axes.+1])])
end

"The product of all earlier elements along an axis (later ones when `reverse`); 1 for the first."
function product_before(b::Builder, x::Atom, axis, reverse)
    shift, none = zeros(Int, ndims(aval(x))), zeros(Int, ndims(aval(x)))
    shift[axis+1] = reverse ? -1 : 1
    shifted = emit(b, :pad, x, Literal(one(dtype(x))); low = shift, high = -shift, interior = none)
    emit(b, :cumprod, shifted; axis = axis, reverse = reverse)
end

# argmax, argmin: the first of the extrema, and the first NaN before all.

@primitive ArgMax argmax(axis, dtype)
@primitive ArgMin argmin(axis, dtype)
const ArgExtremum = Union{ArgMax,ArgMin}
haszerotangent(::ArgExtremum) = true
beats(::ArgMax) = >
beats(::ArgMin) = <

function infer(op::ArgExtremum, types, attrs)
    x, axis, T = types[1], attrs[:axis], dtype_named(attrs[:dtype])
    check_axis(op, x, axis)
    x.shape[axis+1] == 0 && infer_error(op, "axis $axis of $(type_text(x)) is empty")
    T <: Integer && T !== Bool ||
        infer_error(op, "the index dtype must be an integer, got $(attrs[:dtype])")
    [TensorType(T, reduced(op, x, [axis]).shape)]
end

function evaluate(op::ArgExtremum, x, attrs, types)
    T, parts = types[1].dtype, threefold(x[1], attrs[:axis])
    y = [
        (first_extremum(beats(op), view(parts, i, :, k)) - 1) % T
        for i in axes(parts, 1), k in axes(parts, 3)
    ]
    [reshape(y, julia_size(types[1]))]
end

function first_extremum(beats, x)
    best = 1
    for k in eachindex(x)
        isnan(x[best]) && break
        (isnan(x[k]) || beats(x[k], x[best])) && (best = k)
    end
    best
end
