"""
The functions and plans of AbstractFFTs.jl on traced arrays. A plan made of a traced array is one of
these; one that a package made of an array outside of the trace cannot be looked into."""
module JaxprADAbstractFFTsExt

using AbstractFFTs: AbstractFFTs, Plan
using JaxprAD: ArrayOfTraced, TracedArray, TracedComplex, TracedConversion, TracedReal, assign!,
    fourier, traced, user_line
using LinearAlgebra: LinearAlgebra

const ArrayOfReals = AbstractArray{<:TracedReal}
const ArrayOfComplex = AbstractArray{<:TracedComplex}

"`factor` times a transform by `fourier` of arrays of that size, the result's along `region[1]` n."
struct TracedPlan{T} <: Plan{T}
    kind::Symbol
    size::Dims
    region::Vector{Int}
    n::Int
    factor::Float64
end
TracedPlan(kind, x, region, n = size(x, first(region)); factor = 1) =
    TracedPlan{eltype(x)}(kind, size(x), Int[region...], n, factor)

Base.size(p::TracedPlan) = p.size
Base.show(io::IO, p::TracedPlan) =
    print(io, p.kind, " along ", p.region, " of traced arrays of size ", p.size)

Base.:*(p::TracedPlan, x::AbstractArray) = p * traced(x)
function Base.:*(p::TracedPlan, x::TracedArray)
    size(x) == p.size || throw(
        DimensionMismatch("a plan for arrays of size $(p.size), an array of size $(size(x))"))
    y = fourier(p.kind, x, p.region, p.n)
    p.factor == 1 ? y : y .* real(eltype(y))(p.factor)
end
LinearAlgebra.mul!(y::TracedArray, p::TracedPlan, x::AbstractArray) = assign!(y, p * x)

const INVERSE = Dict(:fft => :ifft, :ifft => :fft, :rfft => :irfft, :irfft => :rfft)
function Base.inv(p::TracedPlan)
    along, half = p.region[1], p.n ÷ 2 + 1
    shortened(n) = Tuple(d == along ? n : p.size[d] for d in eachindex(p.size))
    results = p.kind === :rfft ? shortened(half) : p.kind === :irfft ? shortened(p.n) : p.size
    T = p.kind === :irfft ? real(eltype(p)) : complex(float(eltype(p)))
    TracedPlan{T}(INVERSE[p.kind], results, p.region, p.n, inv(p.factor))
end
AbstractFFTs.plan_inv(p::TracedPlan) = inv(p)
Base.:\(p::TracedPlan, x::AbstractArray) = inv(p) * x
LinearAlgebra.ldiv!(y::TracedArray, p::TracedPlan, x::AbstractArray) = assign!(y, inv(p) * x)

"A plan that writes its result to its argument."
struct InPlace{T} <: Plan{T}
    plan::TracedPlan{T}
end
Base.size(p::InPlace) = size(p.plan)
AbstractFFTs.fftdims(p::InPlace) = p.plan.region
Base.:*(p::InPlace, x::TracedArray) = assign!(x, p.plan * x)
Base.inv(p::InPlace) = InPlace(inv(p.plan))
AbstractFFTs.plan_inv(p::InPlace) = inv(p)
Base.:\(p::InPlace, x::AbstractArray) = inv(p) * x

"What the unnormalised inverse lacks of the inverse's factor."
count_along(n::Dims, region) = prod(d -> n[d], region)
full_size(x, n, region) = Tuple(d == first(region) ? n : size(x, d) for d in 1:ndims(x))

# The package makes real arrays complex by this before it transforms them.
AbstractFFTs.complexfloat(x::ArrayOfReals) = complex(traced(x))

AbstractFFTs.plan_fft(x::ArrayOfComplex, region; kws...) = TracedPlan(:fft, x, region)
AbstractFFTs.plan_ifft(x::ArrayOfComplex, region; kws...) = TracedPlan(:ifft, x, region)
AbstractFFTs.plan_bfft(x::ArrayOfComplex, region; kws...) =
    TracedPlan(:ifft, x, region; factor = count_along(size(x), region))
AbstractFFTs.plan_rfft(x::ArrayOfReals, region; kws...) = TracedPlan(:rfft, x, region)
AbstractFFTs.plan_irfft(x::ArrayOfTraced, n::Integer, region; kws...) =
    TracedPlan(:irfft, x, region, n)
AbstractFFTs.plan_brfft(x::ArrayOfTraced, n::Integer, region; kws...) =
    TracedPlan(:irfft, x, region, n; factor = count_along(full_size(x, n, region), region))
for plan in (:plan_fft, :plan_ifft, :plan_bfft)
    @eval AbstractFFTs.$(Symbol(plan, :!))(x::ArrayOfComplex, region; kws...) =
        InPlace(AbstractFFTs.$plan(x, region))
end

Base.:*(p::Plan, x::TracedArray) = throw(
    TracedConversion("a plan made of an array outside of the trace ($(typeof(p))) cannot be " *
                     "applied to a traced array: make it of the traced array, or call " *
                     "`fft(x, dims)`", user_line()))
Base.:*(p::AbstractFFTs.ScaledPlan, x::TracedArray) = p.scale .* (p.p * x)

end
