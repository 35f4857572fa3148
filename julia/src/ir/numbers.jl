# Numbers of Julia for the elements of arrays: half precision is computed in single.

ishalf(T) = T === Float16 || T === BFloat16

"The number that is computed with."
working(x) = x
working(x::Union{Float16,BFloat16}) = Float32(x)

"The type that sums of this dtype are made in. Half precision accumulates in single, as in XLA."
accumulator(T::DataType) = T === Float16 || T === BFloat16 ? Float32 : T

"A number in its final dtype; what a kernel computes may be wider."
stored(::Type{T}, x) where {T} = x isa T ? x : rounded_number(T, x)
rounded_number(::Type{T}, x) where {T<:AbstractFloat} = convert(T, x)
rounded_number(::Type{T}, x::Complex) where {T<:Complex} = T(real(x), imag(x))
rounded_number(::Type{Complex{T}}, x::Real) where {T} = Complex{T}(x, zero(T))
rounded_number(::Type{T}, x::Integer) where {T<:Integer} = x % T
rounded_number(::Type{Bool}, x::Integer) = x != 0

"A function of numbers for half precision: computed in single."
struct Widened{F}
    f::F
end
# Were it not inlined, a call of a function of any number of arguments would box them.
@inline (w::Widened)(x...) = w.f(map(working, x)...)

"Neither infinite nor subnormal, nor NaN."
isordinary(x::T) where {T} = (abs(x) >= floatmin(T)) & (abs(x) <= floatmax(T))
