"""
Rules in both directions: those of ChainRulesCore for functions that are traced, and those of traced
functions for systems that differentiate by ChainRulesCore (Zygote, Diffractor)."""
module JaxprADChainRulesCoreExt

using ChainRulesCore: AbstractThunk, AbstractZero, ChainRulesCore, NoTangent, Tangent, backing,
    canonicalize, frule, rrule, unthunk
using JaxprAD: JaxprAD, NotDifferentiable, RuledFunction, cotangent_of, custom_jvp, custom_vjp,
    flatten, isdifferentiable, ruled_jvp, ruled_vjp, user_line

# ---- tangents, which are structures of their own there

hasfloats(x) = any(isdifferentiable, flatten(x)[1])

"A tangent or cotangent of x, of our kind, as ChainRulesCore has it."
to_chain(x, ẋ) = !hasfloats(x) ? NoTangent() : structural(x, ẋ)
structural(x::Union{Number,AbstractArray{<:Number}}, ẋ) = ẋ
structural(x::AbstractArray, ẋ) = map(to_chain, x, ẋ)
structural(x::Tuple, ẋ) = Tangent{typeof(x)}(map(to_chain, x, ẋ)...)
structural(x::NamedTuple{names}, ẋ) where {names} =
    Tangent{typeof(x)}(; map(to_chain, x, NamedTuple{names}(Tuple(ẋ)))...)
structural(x::T, ẋ) where {T} =
    Tangent{T}(; (n => to_chain(getfield(x, n), getfield(ẋ, n)) for n in fieldnames(T))...)

"A tangent of ChainRulesCore's as we have those of x, zeros explicit; `nothing` without floats."
from_chain(x, ẋ) = !hasfloats(x) ? nothing : like(x, ẋ)
like(x, ẋ) = ẋ
like(x, ::AbstractZero) = cotangent_of(x, nothing)
like(x, ẋ::AbstractThunk) = like(x, unthunk(ẋ))
like(x::Tuple, ẋ::Tangent) = map(from_chain, x, Tuple(backing(canonicalize(ẋ))))
like(x::NamedTuple{names}, ẋ::Tangent) where {names} =
    NamedTuple{names}(map(n -> from_chain(x[n], getproperty(ẋ, n)), names))
like(x::AbstractArray, ẋ::AbstractArray) = eltype(x) <: Number ? ẋ : map(from_chain, x, ẋ)
like(x::T, ẋ::Tangent) where {T} =
    T.name.wrapper(map(n -> from_chain(getfield(x, n), getproperty(ẋ, n)), fieldnames(T))...)

# ---- rules of ChainRulesCore, for functions that are traced

"A function with the derivative that ChainRulesCore knows of it."
struct WithChainRule{F} <: Function
    f::F
end
JaxprAD.brought(::Val{:with_chain_rule}, package, f) = WithChainRule(f)

function (c::WithChainRule)(x...)
    hasrule(frule, (map(_ -> NoTangent(), (c.f, x...)),), c.f, x) &&
        return custom_jvp(c.f, (x, ẋ) -> by_frule(c.f, x, ẋ))(x...)
    hasrule(rrule, (), c.f, x) &&
        return custom_vjp(c.f, (x...) -> (c.f(x...), x),
            (x, ȳ) -> by_rrule(c.f, x, ȳ))(x...)
    throw(
        NotDifferentiable("ChainRulesCore has no frule and no rrule of $(c.f) at arguments of " *
                          "types $(join(map(typeof, x), ", "))", user_line()))
end

function by_frule(f, x, ẋ)
    y, ẏ = frule((NoTangent(), map(to_chain, x, ẋ)...), f, x...)
    y, from_chain(y, ẏ)
end
function by_rrule(f, x, ȳ)
    y, pullback = rrule(f, x...)
    map(from_chain, x, Tuple(pullback(to_chain(y, ȳ)))[2:end])
end

"A function that nobody has a rule for."
struct Unknown end

"Whether there is a rule besides those that say that there is none."
hasrule(rule, before, f, x) =
    which(rule, Base.typesof(before..., f, x...)) !=
    which(rule, Base.typesof(before..., Unknown(), x...))

# ---- our functions, for systems with rules of ChainRulesCore

function ChainRulesCore.rrule(f::RuledFunction, x...)
    y, pull = ruled_vjp(f, x)
    y, ȳ -> (NoTangent(), map(to_chain, x, pull(from_chain(y, ȳ)))...)
end
function ChainRulesCore.frule((_, ẋ...), f::RuledFunction, x...)
    y, ẏ = ruled_jvp(f, x, map(from_chain, x, ẋ))
    y, to_chain(y, ẏ)
end

end
