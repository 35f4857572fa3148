# Floating-point numbers as bits, and the constants of their formats.

const Binary = Union{Float32,Float64}

@inline bits(x::Float32) = reinterpret(UInt32, x)
@inline bits(x::Float64) = reinterpret(UInt64, x)
@inline number(u::UInt32) = reinterpret(Float32, u)
@inline number(u::UInt64) = reinterpret(Float64, u)
@inline integer(u::UInt32) = reinterpret(Int32, u)
@inline integer(u::UInt64) = reinterpret(Int64, u)

@inline fraction_width(::Type{Float32}) = 23
@inline fraction_width(::Type{Float64}) = 52
@inline exponent_bias(::Type{Float32}) = Int32(127)
@inline exponent_bias(::Type{Float64}) = Int64(1023)
@inline sign_mask(::Type{Float32}) = 0x80000000
@inline sign_mask(::Type{Float64}) = 0x8000000000000000

"The smallest positive number with a full significand."
@inline smallest_normal(::Type{T}) where {T<:Binary} =
    number(one(bits(zero(T))) << fraction_width(T))
@inline infinity(::Type{Float32}) = Inf32
@inline infinity(::Type{Float64}) = Inf
@inline nan(::Type{Float32}) = NaN32
@inline nan(::Type{Float64}) = NaN

@inline sign_of(x::T) where {T<:Binary} = bits(x) & sign_mask(T)
"`x` with its sign changed where the bit is set in `s`, which is zero elsewhere."
@inline flipped(x::Binary, s) = number(bits(x) ⊻ s)

"2ᵏ for exponents of normal numbers."
@inline power_of_two(::Type{T}, k) where {T<:Binary} =
    number(((k + exponent_bias(T)) << fraction_width(T)) % typeof(bits(zero(T))))
"x·2ᵏ with one rounding, also where 2ᵏ itself is out of range or the result subnormal."
@inline function scaled(x::T, k) where {T<:Binary}
    half = k >> 1
    x * power_of_two(T, half) * power_of_two(T, k - half)
end

# Adding 1.5·2ᵖ⁻¹ to a number leaves its integer nearest in the lowest bits of the sum.
@inline shifter(::Type{Float32}) = 12582912.0f0
@inline shifter(::Type{Float64}) = 6755399441055744.0
"The integer in a shifted number, of both signs."
@inline shifted_integer(t::T) where {T<:Binary} = integer(bits(t)) - integer(bits(shifter(T)))
"A small integer as a float."
@inline small_float(k::Int32) =
    number((k + integer(bits(shifter(Float32)))) % UInt32) - shifter(Float32)
@inline small_float(k::Int64) =
    number((k + integer(bits(shifter(Float64)))) % UInt64) - shifter(Float64)

"""
A constant as a sum of floats, the first with its last `zeros` bits zero, so that its products with
small integers are exact."""
function parts(::Type{T}, value::BigFloat, count, zeros = 0) where {T<:Binary}
    first = number(bits(T(value)) & ~((one(bits(zero(T))) << zeros) - one(bits(zero(T)))))
    count == 1 ? (first,) : (first, parts(T, value - first, count - 1)...)
end
in_parts(value, count; zeros = (0, 0)) =
    setprecision(
        () ->
            (parts(Float32, value(), count, zeros[1]), parts(Float64, value(), count, zeros[2])),
        300)

"c₀ + c₁x + … by Horner's rule, written out: Base's `evalpoly` of many coefficients is a call."
macro polynomial(x, coefficients...)
    v = gensym(:x)
    :(
        $v = $(esc(x));
        $(foldr((c, rest) -> rest === nothing ? esc(c) :
                             :(muladd($v, $rest, $(esc(c)))), coefficients; init = nothing))
    )
end
