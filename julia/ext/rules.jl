# Rules for what Enzyme is not to look into: numbers' functions made of bits, and kernels.

using Enzyme.EnzymeRules: EnzymeRules, AugmentedReturn, needs_primal, needs_shadow, overwritten
using Enzyme: Active, Annotation
using JaxprAD: Known, Link, call_native, link, partials

const OneAnnotation = Union{Active,Const}

function EnzymeRules.augmented_primal(config, k::Const{<:Known}, ::Type{<:Active}, x::Vararg{OneAnnotation,N}) where {N}
    values = map(a -> a.val, x)
    AugmentedReturn(needs_primal(config) ? k.val.f(values...) : nothing, nothing, nothing)
end
function EnzymeRules.reverse(config, k::Const{<:Known}, dy::Active, tape, x::Vararg{OneAnnotation,N}) where {N}
    d = partials(k.val.f, map(a -> a.val, x)...)
    map((a, d) -> a isa Active ? dy.val * d : nothing, x, d)
end

function EnzymeRules.forward(config, k::Const{<:Known}, ::Type{<:Annotation}, x::Vararg{Annotation,N}) where {N}
    values = map(a -> a.val, x)
    y = k.val.f(values...)
    needs_shadow(config) || return needs_primal(config) ? y : nothing
    t = tangent(x, partials(k.val.f, values...))
    needs_primal(config) ? Duplicated(y, t) : t
end
tangent(x::Tuple, d::Tuple) = isempty(x) ? false : own_tangent(x[1], d[1]) + tangent(Base.tail(x), Base.tail(d))
own_tangent(x::Const, d) = zero(d)
own_tangent(x::Annotation, d) = x.dval * d

# ---- links

"The addresses of operands when the call was made: those that change afterwards are copied."
function EnzymeRules.augmented_primal(config, f::Const{typeof(link)}, ::Type{<:Const}, l::Const{Link{M,I,O}}, pool::Const,
                                      a::Vararg{Annotation,N}) where {M,I,O,N}
    link(l.val, pool.val, map(p -> p.val, a)...)
    copies = ntuple(k -> overwritten(config)[k+3] ? copied(a[k].val, l.val.operands[k]) : nothing, Val(I))
    AugmentedReturn(nothing, nothing, copies)
end
function copied(p::Ptr, n::Int)
    bytes = Vector{UInt8}(undef, n)
    GC.@preserve bytes unsafe_copyto!(pointer(bytes), Ptr{UInt8}(p), n)
    bytes
end
address(p::Ptr, ::Nothing) = Ptr{Cvoid}(p)
address(p::Ptr, copy::Vector{UInt8}) = Ptr{Cvoid}(pointer(copy))

function EnzymeRules.reverse(config, f::Const{typeof(link)}, ::Type{<:Const}, copies, l::Const{Link{M,I,O}}, pool::Const,
                             a::Vararg{Annotation,N}) where {M,I,O,N}
    s = l.val
    s.derivative.pointer == C_NULL && return ntuple(Returns(nothing), Val(N + 2))
    x = ntuple(k -> address(a[k].val, copies[k]), Val(I))
    x̄ = ntuple(k -> s.active[k] ? Shadow(a[k], s.operands[k]) : NO_SHADOW, Val(I))
    ȳ = ntuple(k -> s.inexact_results[k] ? Shadow(a[I+k], s.results[k]) : NO_SHADOW, Val(O))
    GC.@preserve copies call_native(s.derivative, pool.val, (x..., chosen(ȳ, s.inexact_results)..., chosen(x̄, s.active)...),
                                    chosen(x̄, s.active))
    foreach((v, n) -> v.pointer == C_NULL || zeroed(v.pointer, n), ȳ, s.results)
    foreach(release, x̄)
    foreach(release, ȳ)
    ntuple(Returns(nothing), Val(N + 2))
end

function EnzymeRules.forward(config, f::Const{typeof(link)}, ::Type{<:Const}, l::Const{Link{M,I,O}}, pool::Const,
                             a::Vararg{Annotation,N}) where {M,I,O,N}
    s = l.val
    x = map(p -> Ptr{Cvoid}(p.val), a)
    call_native(s.value, pool.val, x[1:I], x[I+1:N])
    s.derivative.pointer == C_NULL && return nothing
    ẋ = ntuple(k -> s.active[k] ? Shadow(a[k], s.operands[k]) : NO_SHADOW, Val(I))
    ẏ = ntuple(k -> s.inexact_results[k] ? Shadow(a[I+k], s.results[k]) : NO_SHADOW, Val(O))
    call_native(s.derivative, pool.val, (x[1:I]..., chosen(ẋ, s.active)...), chosen(ẏ, s.inexact_results))
    foreach(release, ẋ)
    foreach(release, ẏ)
    nothing
end

"Memory of a tangent or cotangent: what Enzyme has, or zeros of our own for what is constant to it."
struct Shadow
    pointer::Ptr{Cvoid}
    own::Bool
end
const NO_SHADOW = Shadow(C_NULL, false)
Shadow(a::Const, n::Int) = Shadow(allocated(max(n, 1); zeroed = true), true)
Shadow(a::Annotation, n::Int) = Shadow(Ptr{Cvoid}(a.dval), false)
release(s::Shadow) = (s.own && Base.Libc.free(s.pointer); nothing)
chosen(shadows::Tuple, marks::Tuple) = Tuple(s.pointer for (s, m) in zip(shadows, marks) if m)
