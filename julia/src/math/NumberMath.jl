"""
    NumberMath

Functions of Float32 and Float64, and of complex numbers of these, as straight lines of arithmetic:
no branch, call, table look-up (but for trigonometric reduction of huge arguments), allocation or
exception, so that LLVM makes vectors of loops over them. The names are Base's, and not exported:
write `NumberMath.exp(x)`. They hold for all arguments, with C's values at the special ones (C11
annex F.10); docs/number_math.md has errors and speeds, measured.

`muladd` is used where it does not matter whether the product is rounded, `fma` where an
error bound rests on it.
"""
module NumberMath

# These are numbers' inner loops, whatever the latency that the package around chose.
Base.Experimental.@optlevel 2

# Names of this module's own, before any use could take them for Base's.
for f in (:exp, :exp2, :expm1, :log, :log2, :log1p, :sin, :cos, :tan, :asin, :acos, :atan, :sinh,
    :cosh, :tanh, :asinh, :acosh, :atanh, :sqrt, :cbrt, :rem, :hypot)
    @eval function $f end
end

include("bits.jl")
include("coefficients.jl")
include("exponential.jl")
include("logarithm.jl")
include("reduction.jl")
include("trigonometric.jl")
include("inverse_trigonometric.jl")
include("hyperbolic.jl")
include("roots.jl")
include("powers.jl")
include("remainder.jl")
include("error_function.jl")
include("complex.jl")
include("gamma.jl")
include("zeta.jl")
include("bessel.jl")
include("incomplete.jl")

end
