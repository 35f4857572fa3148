# a = trunc(a/b)·b + rem, exactly.

"Long division: quotients of 52 bits, until nothing is left to divide. The one loop of this module."
function rem(a::Float64, b::Float64)
    x, y = abs(a), abs(b)
    (y > 0) & (x < Inf) || return NaN
    e = binary_exponent(y)
    while x >= y
        divisor = scaled(y, max(binary_exponent(x) - e - 51, 0))
        x = after_division(x, divisor)
    end
    flipped(ifelse(b != b, b, x), sign_of(a))
end
rem(a::Float32, b::Float32) = Float32(rem(Float64(a), Float64(b)))

"""
What one division leaves of x ≥ 0, exactly where the quotient is small: it is rounded up to the next
whole number at most, and the difference is a multiple of the smaller unit in the last place, of no
more digits than `x` or `y`."""
@inline function after_division(x, y)
    r = fma(-trunc(x / y), y, x)
    ifelse(r < 0, r + y, r)
end

# Where the quotient is small, one division will do.
@inline function rem_near(a::Binary, b::Binary)
    x, y = abs(a), abs(b)
    r = after_division(x, y)
    flipped(ifelse(x < y, x, r), sign_of(a))    # infinity times 0 is NaN
end
@inline extent(a::T, b::T) where {T<:Binary} = abs(a / b)
near(::typeof(rem), ::Type{T}) where {T<:Binary} = rem_near, inv(eps(T)) / 4
@noinline rem_called(a::Binary, b::Binary) = rem(a, b)
called(::typeof(rem)) = rem_called

"The exponent of a number > 0."
@inline function binary_exponent(x::Float64)
    lift = ifelse(x < smallest_normal(Float64), 54, 0)
    ((bits(x * power_of_two(Float64, lift)) >> 52) % Int64) - 1023 - lift
end
