"""
    BFloat16 <: AbstractFloat

The upper half of a Float32. Arithmetic is done in Float32 and rounded to nearest even, as XLA does.
"""
primitive type BFloat16 <: AbstractFloat 16 end

function BFloat16(x::Float32)
    isnan(x) && return reinterpret(BFloat16, 0x7fc0 | (UInt16(signbit(x)) << 15))
    bits = reinterpret(UInt32, x)
    rounding = 0x00007fff + ((bits >> 16) & 0x00000001)
    reinterpret(BFloat16, ((bits + rounding) >> 16) % UInt16)
end
BFloat16(x::Union{Float64,Float16,Integer}) = BFloat16(Float32(x))
BFloat16(x::BFloat16) = x
BFloat16(x::Bool) = BFloat16(Float32(x))

Base.Float32(x::BFloat16) = reinterpret(Float32, UInt32(reinterpret(UInt16, x)) << 16)
Base.Float64(x::BFloat16) = Float64(Float32(x))
Base.Float16(x::BFloat16) = Float16(Float32(x))
(::Type{T})(x::BFloat16) where {T<:Integer} = T(Float32(x))
Base.Bool(x::BFloat16) = Bool(Float32(x))

Base.promote_rule(::Type{BFloat16}, ::Type{T}) where {T<:Union{Float32,Float64}} = T
Base.promote_rule(::Type{BFloat16}, ::Type{T}) where {T<:Integer} = BFloat16

for op in (:+, :-, :*, :/, :^, :rem, :atan)
    @eval Base.$op(x::BFloat16, y::BFloat16) = BFloat16($op(Float32(x), Float32(y)))
end
for op in (:-, :abs, :sign, :floor, :ceil, :trunc, :exp, :exp2, :log, :log2, :expm1, :log1p, :sin,
    :cos, :tan, :asin, :acos, :atan, :sinh, :cosh, :tanh, :asinh, :acosh, :atanh, :sqrt, :cbrt)
    @eval Base.$op(x::BFloat16) = BFloat16($op(Float32(x)))
end
for op in (:(==), :<, :<=, :isless)
    @eval Base.$op(x::BFloat16, y::BFloat16) = $op(Float32(x), Float32(y))
end
for op in (:isnan, :isinf, :isfinite, :signbit, :isinteger)
    @eval Base.$op(x::BFloat16) = $op(Float32(x))
end
Base.round(x::BFloat16, r::RoundingMode) = BFloat16(round(Float32(x), r))
Base.copysign(x::BFloat16, y::BFloat16) = BFloat16(copysign(Float32(x), Float32(y)))
Base.ldexp(x::BFloat16, n::Integer) = BFloat16(ldexp(Float32(x), n))

Base.zero(::Type{BFloat16}) = reinterpret(BFloat16, 0x0000)
Base.one(::Type{BFloat16}) = reinterpret(BFloat16, 0x3f80)
Base.typemax(::Type{BFloat16}) = reinterpret(BFloat16, 0x7f80)
Base.typemin(::Type{BFloat16}) = reinterpret(BFloat16, 0xff80)
Base.floatmax(::Type{BFloat16}) = reinterpret(BFloat16, 0x7f7f)
Base.floatmin(::Type{BFloat16}) = reinterpret(BFloat16, 0x0080)
Base.eps(::Type{BFloat16}) = reinterpret(BFloat16, 0x3c00)
Base.hash(x::BFloat16, h::UInt) = hash(Float32(x), h)
Base.show(io::IO, x::BFloat16) = print(io, "BFloat16(", Float32(x), ")")

# The layout of a float's bits: sign, exponent, fraction.
unsigned_of(::Type{T}) where {T<:AbstractFloat} =
    sizeof(T) == 2 ? UInt16 : sizeof(T) == 4 ? UInt32 : UInt64
fraction_bits(::Type{Float16}) = 10
fraction_bits(::Type{BFloat16}) = 7
fraction_bits(::Type{Float32}) = 23
fraction_bits(::Type{Float64}) = 52
