# Rules for functions whose derivatives are JaxprAD's or JAX's (traced, loaded and compiled ones,
# and `JaxFunction`), within code that Enzyme differentiates. What they return is not known before
# they run: to Enzyme a result is of type `Any`, a box with a shadow.

using JaxprAD: Atom, Equation, NotDifferentiable, Program, RuledFunction, cotangent_of, flatten,
    isdifferentiable, ruled_jvp, ruled_vjp

# Nothing in them is differentiated by: what they close over is constant.
EnzymeRules.inactive_type(::Type{<:RuledFunction}) = true
EnzymeRules.inactive_type(::Type{<:Union{Program,Equation,Atom}}) = true

function EnzymeRules.forward(config, f::Const{<:RuledFunction}, ::Type{R},
    x::Vararg{Annotation,N}) where {R<:Annotation,N}
    check_width(config)
    values = map(a -> a.val, x)
    needs_shadow(config) || return needs_primal(config) ? f.val(values...)::eltype(R) : nothing
    y, ẏ = ruled_jvp(f.val, values, map(tangent_in, x))
    needs_primal(config) ? with_type(R, y, ẏ) : ẏ::eltype(R)
end
tangent_in(a::Const) = cotangent_of(a.val, nothing)
tangent_in(a::Annotation) = a.dval
"An annotation of that very type, which its constructor would make narrower."
@generated with_type(::Type{R}, y, ẏ) where {R} = Expr(:new, R, :y, :ẏ)

"Enzyme 0.13 has no shadows of boxes in batches: its assertions fail, and may end the process."
check_width(config) =
    width(config) == 1 || throw(
        NotDifferentiable("a batch of tangents or cotangents (BatchDuplicated) reaches a " *
                          "function of JaxprAD's or JAX's: take one at a time", ""))

function EnzymeRules.augmented_primal(config, f::Const{<:RuledFunction}, ::Type{R},
    x::Vararg{Annotation,N}) where {R<:Annotation,N}
    check_width(config)
    # what changes before the reverse pass is not what the derivative is taken at
    values = map((a, changes) -> changes ? deepcopy(a.val) : a.val, x,
        Base.tail(overwritten(config)))
    y, pull = ruled_vjp(f.val, values)
    shadow = needs_shadow(config) ? shadow_of(y) : nothing
    P, S = EnzymeRules.primal_type(config, R), EnzymeRules.shadow_type(config, R)
    AugmentedReturn{P,S,Any}(needs_primal(config) ? y : nothing, shadow, (pull, shadow))
end
"Memory to which the cotangent of a result is added: that of an array, or of a box."
shadow_of(y::AbstractArray) = Enzyme.make_zero(y)
shadow_of(y) = Ref(Enzyme.make_zero(y))

function EnzymeRules.reverse(config, f::Const{<:RuledFunction}, dy, tape,
    x::Vararg{Annotation,N}) where {N}
    pull, shadow = tape
    ȳ = cotangent_in(dy, shadow)
    x̄ = ȳ === nothing ? ntuple(Returns(nothing), Val(N)) : pull(ȳ)
    map((k, a) -> added!(a, x̄[k]), ntuple(identity, Val(N)), x)
end
"That of the result: of a number it comes as such, of others it is in the shadow."
cotangent_in(dy::Active, shadow) = dy.val
cotangent_in(dy, shadow) = shadow
cotangent_in(dy, shadow::Ref) = shadow[]

added!(a::Const, x̄) = nothing
added!(a::Active{T}, x̄) where {T} = x̄ === nothing ? zero(T) : convert(T, x̄)::T
"Into arrays, also in containers: numbers of theirs have no place to be added at."
added!(a::Duplicated, x̄) =
    x̄ === nothing ? nothing : (foreach(add!, floats(a.dval), floats(x̄)); nothing)
add!(shadow::AbstractArray, x̄) = (shadow .+= x̄; nothing)
floats(x) = filter(isdifferentiable, flatten(x)[1])
