# Roots. The processor's square root is correctly rounded and makes NaN where Base's throws.

@inline sqrt(x::Binary) = Core.Intrinsics.sqrt_llvm(x)
@inline rsqrt(x::Binary) = 1 / sqrt(x)

"""
A third of the exponent and a line for the significand: ∛a within 3.2 % for a normal a
> 0 (Kahan, 1991)."""
@inline cbrt_guess(a::Float64) =
    number((((((bits(a) >> 32) * 0x00000000aaaaaaab) >> 33) + 0x000000002a9f7893) << 32))
"Halley's step for t³ = a: three times the digits."
@inline cbrt_step(t, a) = (c = t * t * t; t * (c + 2a) / (2c + a))

@inline cbrt_positive(a::Float32) =
    (w = Float64(a); Float32(cbrt_step(cbrt_step(cbrt_guess(w), w), w)))
# Newton's last step, with a residual free of rounding errors; numbers near the ends of the range go
# to its middle for that.
@inline function cbrt_positive(a::Float64)
    tiny, huge = a < 1e-200, a > 1e200
    a *= ifelse(tiny, power_of_two(Float64, 540), ifelse(huge, power_of_two(Float64, -540), 1.0))
    t = cbrt_step(cbrt_step(cbrt_guess(a), a), a)
    square = t * t
    residual = fma(square, t, -a) + fma(t, t, -square) * t
    (t - residual / (3 * square)) *
    ifelse(tiny, power_of_two(Float64, -180), ifelse(huge, power_of_two(Float64, 180), 1.0))
end
@inline function cbrt(x::T) where {T<:Binary}
    a = abs(x)
    flipped(ifelse((a > 0) & (a < infinity(T)), cbrt_positive(a), a), sign_of(x))
end
