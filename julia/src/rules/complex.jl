# Real and imaginary parts. Transposition does not conjugate: ⟨ȳ, Lẋ⟩ is Re Σ ȳ·Lẋ, so that real and
# imag, linear over the reals, transpose as well: Re(ȳ · Re z) = Re((ȳ + 0i) z) and Re(ȳ · Im z) =
# Re((0 - ȳi) z).

makes_complex(T) = T in (Float32, Float64)
real_part_dtype(T; attrs...) = real_dtype(T)
complexes(T...; attrs...) = complex_dtype(first(T))

@unary(:real, real; domain = iscomplex, result = real_part_dtype,
    tangents = ((t, y, x) -> real(t),),
    transpose = (ȳ, x) -> (apply(:complex, ȳ, 0),))
@unary(:imag, imag; domain = iscomplex, result = real_part_dtype,
    tangents = ((t, y, x) -> imag(t),),
    transpose = (ȳ, x) -> (apply(:complex, literal(ȳ, 0), -ȳ),))
# Of a real number the imaginary part is +0, as in JAX: which zero it is tells on which side of a
# branch cut it lies.
conjugate(x::Real) = complex(x)
conjugate(z::Complex) = conj(z)
@unary(:conj, conjugate; domain = T -> iscomplex(T) || makes_complex(T),
    result = complexes, tangents = ((t, y, x) -> conj(t),),
    transpose = (ȳ, x) -> (iscomplex(dtype(x)) ? conj(ȳ) : real(ȳ),))
@binary(:complex, complex; domain = makes_complex, result = complexes,
    tangents = ((t, y, a, b) -> apply(:complex, t, 0),
        (t, y, a, b) -> apply(:complex, literal(t, 0), t)),
    transpose = (ȳ, a, b) -> (islinear(a) ? real(ȳ) : nothing, islinear(b) ? -imag(ȳ) : nothing))
