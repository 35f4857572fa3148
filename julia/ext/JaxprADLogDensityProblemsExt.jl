"`LogDensity` by the interface of LogDensityProblems."
module JaxprADLogDensityProblemsExt

using JaxprAD: LogDensity
using LogDensityProblems: LogDensityProblems, LogDensityOrder

LogDensityProblems.capabilities(::Type{<:LogDensity}) = LogDensityOrder{2}()
LogDensityProblems.dimension(ℓ::LogDensity) = ℓ.dimension
LogDensityProblems.logdensity(ℓ::LogDensity, x) = ℓ.value(checked(ℓ, x))
LogDensityProblems.logdensity_and_gradient(ℓ::LogDensity, x) = ℓ.gradient(checked(ℓ, x))
LogDensityProblems.logdensity_gradient_and_hessian(ℓ::LogDensity, x) = ℓ.hessian(checked(ℓ, x))

checked(ℓ, x::AbstractVector{<:AbstractFloat}) =
    length(x) == ℓ.dimension ? x :
    throw(DimensionMismatch("a log density of dimension $(ℓ.dimension) is asked for at a vector " *
                            "of length $(length(x))"))
checked(ℓ, x::AbstractVector) = checked(ℓ, float.(x))

end
