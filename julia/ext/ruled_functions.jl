# Rules for functions whose derivatives are JaxprAD's or JAX's (traced, loaded and compiled ones,
# and `JaxFunction`), within code that Enzyme differentiates.

using Enzyme: Enzyme, MixedDuplicated
using JaxprAD: RuledFunction, cotangent_of, flatten, isdifferentiable, ruled_jvp, ruled_vjp

function EnzymeRules.forward(config, f::Const{<:RuledFunction}, ::Type{<:Annotation},
    x::Vararg{Annotation,N}) where {N}
    values = map(a -> a.val, x)
    needs_shadow(config) || return needs_primal(config) ? f.val(values...) : nothing
    found = ntuple(l -> ruled_jvp(f.val, values, map(a -> tangent_in(a, l), x)), Val(width(config)))
    t = one_or_all(map(last, found))
    needs_primal(config) ? with_shadow(first(first(found)), t) : t
end
tangent_in(a::Const, l) = cotangent_of(a.val, nothing)
tangent_in(a::Annotation, l) = lanes(a)[l]

function EnzymeRules.augmented_primal(config, f::Const{<:RuledFunction}, ::Type{R},
    x::Vararg{Annotation,N}) where {R<:Annotation,N}
    y, pull = ruled_vjp(f.val, map(a -> a.val, x))
    ȳ = needs_shadow(config) ? ntuple(_ -> Enzyme.make_zero(y), Val(width(config))) : nothing
    P, S = EnzymeRules.primal_type(config, R), EnzymeRules.shadow_type(config, R)
    shadow = ȳ === nothing ? nothing : one_or_all(ȳ)
    AugmentedReturn{P,S,Any}(needs_primal(config) ? y : nothing, shadow, (pull, ȳ))
end

function EnzymeRules.reverse(config, f::Const{<:RuledFunction}, dy, tape,
    x::Vararg{Annotation,N}) where {N}
    pull, shadows = tape
    x̄ = map(pull, cotangents(dy, shadows))
    ntuple(k -> added!(x[k], map(c -> c[k], x̄)), Val(N))
end
"Those of the result, one for each lane: a number's come as such, an array's are in its shadows."
cotangents(dy::Active, shadows) = (dy.val,)
cotangents(dy, shadows::Tuple) = shadows
cotangents(dy, ::Nothing) = ()

added!(a::Const, x̄) = nothing
added!(a::Active, x̄::Tuple) = one_or_all(x̄)
added!(a::Active, ::Tuple{}) = zero(a.val)
added!(a::Annotation, x̄::Tuple) = (foreach(add!, lanes(a), x̄); nothing)
"Into arrays, also in containers: numbers of theirs have no place to be added at."
add!(shadow, x̄) = foreach(add_leaf!, floats(shadow), floats(x̄))
floats(x) = filter(isdifferentiable, flatten(x)[1])
add_leaf!(shadow::AbstractArray, x̄) = (shadow .+= x̄; nothing)
