# Changes of dtype and of precision.

# As XLA: a float goes to the nearest integer towards zero that fits, NaN to 0; an integer to a
# narrower one loses its high bits; a bool is what differs from 0; a complex number loses its
# imaginary part first, for a bool too.
converted(::Type{T}, x) where {T} = convert(T, x)
converted(::Type{T}, x::Complex) where {T<:Real} = converted(T, real(x))
converted(::Type{T}, x::Integer) where {T<:Integer} = x % T
converted(::Type{Bool}, x::Integer) = x != 0
function converted(::Type{T}, x::AbstractFloat) where {T<:Integer}
    above, below = x >= oftype(x, typemax(T)), x <= oftype(x, typemin(T))
    inside = unsafe_trunc(T, ifelse(above | below | isnan(x), zero(x), x))
    ifelse(above, typemax(T), ifelse(below, typemin(T), inside))
end
converted(::Type{Bool}, x::AbstractFloat) = x != 0

converter(::Type{T}) where {T} = x -> converted(T, x)
@unary(:convert_element_type, (; dtype) -> converter(dtype_named(dtype)); attributes = (:dtype,),
    domain = isanything, result = (T; dtype) -> dtype_named(dtype),
    tangents = (
        (t, y, x; dtype) -> isinexact(dtype_named(dtype)) ? astype(t, dtype_named(dtype)) :
                            nothing,
    ),
    transpose = (ȳ, x; attrs...) -> (astype(ȳ, dtype(x)),))

"""
Rounds the significand to `mantissa_bits` (to even), sends what exceeds the exponent's range to
infinity and what falls below it to zero: a format with e exponent bits reaches 2^±(2^(e-1) - 1) and
has no subnormals here, as in XLA.
"""
function rounded_to(x::T, exponent_bits, mantissa_bits) where {T<:AbstractFloat}
    isfinite(x) || return x
    U, fraction, exponent = unsigned_of(T), fraction_bits(T), 8sizeof(T) - 1 - fraction_bits(T)
    bits, sign = reinterpret(U, abs(x)), x
    dropped = fraction - mantissa_bits
    if dropped > 0
        odd = (bits >> dropped) & one(U)
        bits = (bits + (one(U) << (dropped - 1)) - one(U) + odd) & ~((one(U) << dropped) - one(U))
    end
    if exponent_bits < exponent
        bias, reach = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        e = (bits >> fraction) % Int
        e > bias + reach && return copysign(T(Inf), sign)
        e <= bias - reach && return copysign(zero(T), sign)
    end
    copysign(reinterpret(T, bits), sign)
end
reduce_precision(t; attrs...) = apply(:reduce_precision, t; attrs...)
@unary(:reduce_precision,
    (; exponent_bits, mantissa_bits) -> x ->
        rounded_to(x, exponent_bits, mantissa_bits); attributes = (:exponent_bits, :mantissa_bits),
    domain = isfloat,
    tangents = ((t, y, x; attrs...) -> reduce_precision(t; attrs...),),
    transpose = (ȳ, x; attrs...) -> (reduce_precision(ȳ; attrs...),))

# The same bits as another dtype. A narrower one adds a last axis, a wider one takes the last axis;
# the lowest bits come first.

@primitive BitcastConvertType bitcast_convert_type(dtype)
haszerotangent(::BitcastConvertType) = true

function infer(op::BitcastConvertType, types, attrs)
    x, T = types[1], dtype_named(attrs[:dtype])
    from, to = sizeof(x.dtype), sizeof(T)
    plain(U) = U !== Bool && !iscomplex(U)
    (plain(x.dtype) && plain(T)) || x.dtype === T ||
        infer_error(op, "$(type_text(x)) has no bits to be read as $(attrs[:dtype])")
    from < to && (isempty(x.shape) || x.shape[end] * from != to) &&
        infer_error(op, "the last axis of $(type_text(x)) does not fill a $(attrs[:dtype])")
    [TensorType(T, from == to ? x.shape : from > to ? vcat(x.shape, from ÷ to) : x.shape[1:end-1])]
end

evaluate(::BitcastConvertType, x, attrs, types) =
    [reshape(collect(reinterpret(types[1].dtype, vec(x[1]))), julia_size(types[1]))]
