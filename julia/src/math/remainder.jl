# a = trunc(a/b)·b + rem, exactly.

"Long division: quotients of 52 bits, until nothing is left to divide. The one loop of this module."
function rem(a::Float64, b::Float64)
    x, y = abs(a), abs(b)
    (y > 0) & (x < Inf) || return NaN
    e = binary_exponent(y)
    while x >= y
        divisor = scaled(y, max(binary_exponent(x) - e - 51, 0))
        x = fma(-trunc(x / divisor), divisor, x)
        x = ifelse(x < 0, x + divisor, x)       # the quotient was rounded up
    end
    flipped(ifelse(b != b, b, x), sign_of(a))
end
rem(a::Float32, b::Float32) = Float32(rem(Float64(a), Float64(b)))

"The exponent of a number > 0."
@inline function binary_exponent(x::Float64)
    lift = ifelse(x < smallest_normal(Float64), 54, 0)
    ((bits(x * power_of_two(Float64, lift)) >> 52) % Int64) - 1023 - lift
end
