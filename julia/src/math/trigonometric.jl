# sin, cos and tan from the reduced argument. All three make the same instructions of it, which LLVM
# merges where they have one argument.

@inline sin_reduced(r::Float32, ::Nothing) = (s = r * r; muladd(r * s, sin_tail(s), r))
@inline cos_reduced(r::Float32, ::Nothing) =
    (s = r * r; muladd(s, muladd(s, cos_tail(s), -0.5f0), 1.0f0))
@inline sin_reduced(r, tail) = (s = r * r; r + muladd(r * s, sin_tail(s), tail))
@inline cos_reduced(r, tail) = (s = r * r; 1 + muladd(s, muladd(s, cos_tail(s), -0.5), -(r * tail)))

"The sign bit, where bit 1 of q is set."
@inline sign_of_quadrant(::Type{T}, q) where {T} = (q << (8sizeof(T) - 2)) & sign_mask(T)
@inline isodd_quadrant(q) = q & one(q) != zero(q)

@inline function sin_of(x::T, (q, r, tail)) where {T}
    y = ifelse(isodd_quadrant(q), cos_reduced(r, tail), sin_reduced(r, tail))
    flipped(y, sign_of_quadrant(T, q) ⊻ sign_of(x))
end
@inline function cos_of(x::T, (q, r, tail)) where {T}
    y = ifelse(isodd_quadrant(q), sin_reduced(r, tail), cos_reduced(r, tail))
    flipped(y, sign_of_quadrant(T, q + one(q)))
end
@inline function tan_of(x::T, (q, r, tail)) where {T}
    odd = isodd_quadrant(q)
    flipped(tan_reduced(odd, r, tail), sign_of_quadrant(T, q + q) ⊻ sign_of(x))
end
@inline function tan_reduced(odd, r::Float32, tail)
    s, c = sin_reduced(r, tail), cos_reduced(r, tail)
    ifelse(odd, c, s) / ifelse(odd, s, c)
end
# With what rounding took of sine, cosine and quotient.
@inline function tan_reduced(odd, r::Float64, tail)
    z = r * r
    s, s_rest = fast_two_sum(r, muladd(r * z, sin_tail(z), tail))
    c, c_rest = fast_two_sum(1.0, muladd(z, muladd(z, cos_tail(z), -0.5), -(r * tail)))
    q, rest = quotient_of_sums(ifelse(odd, c, s), ifelse(odd, c_rest, s_rest), ifelse(odd, s, c),
        ifelse(odd, s_rest, c_rest))
    q + rest
end
"(x + x_rest) / (y + y_rest) as a number and what rounding took of it."
@inline function quotient_of_sums(x, x_rest, y, y_rest)
    inverse = 1 / y
    q = x * inverse
    q, ((fma(-q, y, x) + x_rest) - q * y_rest) * inverse
end

@inline sin(x::Binary) = sin_of(x, reduced(abs(x)))
@inline cos(x::Binary) = cos_of(x, reduced(abs(x)))
@inline tan(x::Binary) = tan_of(x, reduced(abs(x)))

# For |x| ≤ near_limit(T), much faster.
@inline sin_near(x::Binary) = sin_of(x, reduced_near(abs(x)))
@inline cos_near(x::Binary) = cos_of(x, reduced_near(abs(x)))
@inline tan_near(x::Binary) = tan_of(x, reduced_near(abs(x)))

"""
    near(f, T) -> (f_near, limit)

A faster function of numbers of type T that equals `f` where the `extent` of these is ≤ limit;
`nothing` where there is none."""
near(f, ::Type) = nothing
@inline extent(x::Real) = abs(x)
@inline extent(z::Complex) = larger(abs(real(z)), abs(imag(z)))
near(::typeof(sin), ::Type{T}) where {T<:Binary} = sin_near, near_limit(T)
near(::typeof(cos), ::Type{T}) where {T<:Binary} = cos_near, near_limit(T)
near(::typeof(tan), ::Type{T}) where {T<:Binary} = tan_near, near_limit(T)

@noinline sin_called(x::Binary) = sin(x)
@noinline cos_called(x::Binary) = cos(x)
@noinline tan_called(x::Binary) = tan(x)

"""
    called(f) -> function

`f`, which has a near form, as a function whose code is not where it is called: it is several times
as long as the near form's."""
called(::typeof(sin)) = sin_called
called(::typeof(cos)) = cos_called
called(::typeof(tan)) = tan_called
