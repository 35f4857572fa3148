# Traced complex numbers. Base makes a complex number of any two reals; of traced ones it is a
# TracedComplex, one value of a Program, and `Complex{<:TracedReal}` never arises.

# ---- conversion

TracedComplex{T}(x::TracedComplex{T}) where {T} = x
TracedComplex{T}(x::TracedNumber) where {T} = as_dtype(T, x)
TracedComplex{T}(x::Number) where {T} = TracedComplex{T}(Literal(convert(T, x)), nothing)
TracedReal{T}(x::Complex) where {T} = TracedReal{T}(Literal(convert(T, x)), nothing)

Base.Complex(x::TracedReal{T}, y::TracedReal{T}) where {T<:Real} =
    number_op(:complex, float(x), float(y))
Base.Complex(x::TracedReal, y::TracedReal) = Complex(promote(x, y)...)
Base.Complex(x::TracedReal, y::Real) = Complex(promote(x, y)...)
Base.Complex(x::Real, y::TracedReal) = Complex(promote(x, y)...)
Base.Complex(x::TracedReal) = Complex(x, zero(x))
Base.Complex(x::TracedComplex) = x
Base.complex(x::TracedNumber) = Complex(x)
for T in (Float32, Float64)
    @eval (::Type{Complex{$T}})(x::TracedNumber) = as_dtype(Complex{$T}, x)
    for (X, Y) in ((TracedReal, TracedReal), (TracedReal, Real), (Real, TracedReal))
        @eval (::Type{Complex{$T}})(x::$X, y::$Y) = as_dtype(Complex{$T}, Complex(x, y))
    end
    @eval Base.convert(::Type{Complex{$T}}, x::TracedNumber) =
        isknown(x) ? convert(Complex{$T}, x.atom.value) : conversion_error(x, Complex{$T})
end
Base.float(x::TracedComplex) = x
Base.float(::Type{S}) where {S<:TracedComplex} = S
Base.complex(::Type{TracedReal{T}}) where {T} = TracedComplex{complex(float(T))}
Base.complex(::Type{S}) where {S<:TracedComplex} = S
Base.real(::Type{TracedComplex{Complex{T}}}) where {T} = TracedReal{T}

for S in (TracedComplex, TracedReal)
    @eval Base.promote_rule(::Type{TracedComplex{T}}, ::Type{$S{R}}) where {T,R} =
        TracedComplex{promote_type(T, R)}
end
Base.promote_rule(::Type{TracedComplex{T}}, ::Type{S}) where {T,S<:Number} =
    TracedComplex{promote_type(T, S)}
Base.promote_rule(::Type{TracedReal{T}}, ::Type{Complex{S}}) where {T,S<:Real} =
    TracedComplex{Complex{float(promote_type(T, S))}}
Base.promote_rule(C::Type{Complex{S}}, R::Type{TracedReal{T}}) where {T,S<:Real} =
    Base.promote_rule(R, C)

# ---- arithmetic

for (f, op) in ((:+, :add), (:-, :sub), (:*, :mul), (:/, :div), (:^, :pow))
    @eval Base.$f(x::TracedComplex{T}, y::TracedComplex{T}) where {T} =
        number_op($(QuoteNode(op)), x, y)
end
# Base has methods of its own for Complex with Real, and for `im`, a Complex{Bool}.
for f in (:+, :-, :*, :/), Z in (Complex, Complex{Bool})
    @eval Base.$f(x::TracedReal, y::$Z) = $f(promote(x, y)...)
    @eval Base.$f(x::$Z, y::TracedReal) = $f(promote(x, y)...)
end
Base.:^(x::TracedNumber, y::Complex) = ^(promote(x, y)...)
Base.:^(x::Complex, y::TracedReal) = ^(promote(x, y)...)
Base.:^(x::TracedComplex, y::Union{AbstractFloat,TracedReal}) = ^(promote(x, y)...)
Base.:^(x::TracedReal, y::TracedComplex) = ^(promote(x, y)...)

# LinearAlgebra infers the elements of an adjoint from what `adjoint` of a number gives.
Base.conj(x::TracedComplex{T}) where {T} = number_op(:conj, x)::TracedComplex{T}
Base.real(x::TracedComplex) = number_op(:real, x)
Base.imag(x::TracedComplex) = number_op(:imag, x)
Base.abs2(x::TracedComplex) = abs2(real(x)) + abs2(imag(x))
Base.angle(x::TracedComplex) = atan(imag(x), real(x))

# ---- comparisons

Base.:(==)(x::TracedComplex{T}, y::TracedComplex{T}) where {T} =
    known_number(number_op(:eq, x, y))
Base.:(==)(x::TracedReal, y::Complex) = ==(promote(x, y)...)
Base.:(==)(x::Complex, y::TracedReal) = ==(promote(x, y)...)
Base.isreal(x::TracedComplex) = imag(x) == 0
Base.isnan(x::TracedComplex) = isnan(real(x)) | isnan(imag(x))
Base.isinf(x::TracedComplex) = isinf(real(x)) | isinf(imag(x))
Base.isfinite(x::TracedComplex) = isfinite(real(x)) & isfinite(imag(x))
