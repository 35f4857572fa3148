# Rules for what Enzyme is not to look into: numbers' functions made of bits, and kernels.

using Enzyme.EnzymeRules:
    EnzymeRules, AugmentedReturn, needs_primal, needs_shadow,
    overwritten, width
using Enzyme: Active, Annotation, BatchDuplicatedNoNeed
using JaxprAD: JaxprAD, Known, RegionKernels, call_native, into!, call_region, partials

JaxprAD.define_partials(@__MODULE__)

const OneAnnotation = Union{Active,Const}

function EnzymeRules.augmented_primal(config, k::Const{<:Known}, ::Type{<:Active},
    x::Vararg{OneAnnotation,N}) where {N}
    values = map(a -> a.val, x)
    AugmentedReturn(needs_primal(config) ? k.val.f(values...) : nothing, nothing, nothing)
end
function EnzymeRules.reverse(config, k::Const{<:Known}, dy::Active, tape,
    x::Vararg{OneAnnotation,N}) where {N}
    d = partials(k.val.f, map(a -> a.val, x)...)
    map((a, d) -> a isa Active ? dy.val * d : nothing, x, d)
end

# of integers, or of what is only compared
EnzymeRules.augmented_primal(config, k::Const{<:Known}, ::Type{<:Const},
    x::Vararg{OneAnnotation,N}) where {N} =
    AugmentedReturn(needs_primal(config) ? k.val.f(map(a -> a.val, x)...) : nothing, nothing,
        nothing)
EnzymeRules.reverse(config, k::Const{<:Known}, ::Type{<:Const}, tape,
    x::Vararg{OneAnnotation,N}) where {N} =
    map(a -> a isa Active ? zero(a.val) : nothing, x)

function EnzymeRules.augmented_primal(config, ::Const{typeof(into!)}, ::Type{<:Const},
    p::Annotation, f::Const, x::Vararg{OneAnnotation,N}) where {N}
    into!(p.val, f.val, map(a -> a.val, x)...)
    AugmentedReturn(nothing, nothing, nothing)
end
function EnzymeRules.reverse(config, ::Const{typeof(into!)}, ::Type{<:Const}, tape, p::Annotation,
    f::Const, x::Vararg{OneAnnotation,N}) where {N}
    d = partials(f.val, map(a -> a.val, x)...)
    ȳ = map(taken!, lanes(p))
    (nothing, nothing,
        map((a, d) -> a isa Active ? one_or_all(map(ȳ -> ȳ * d, ȳ)) : nothing, x, d)...)
end
"What is there, of which zero remains."
taken!(p::Ptr{T}) where {T} = (y = unsafe_load(p); unsafe_store!(p, zero(T)); y)

function EnzymeRules.forward(config, k::Const{<:Known}, ::Type{<:Annotation},
    x::Vararg{Annotation,N}) where {N}
    values = map(a -> a.val, x)
    y = k.val.f(values...)
    needs_shadow(config) || return needs_primal(config) ? y : nothing
    d = partials(k.val.f, values...)
    t = one_or_all(ntuple(l -> tangent(x, d, l), Val(width(config))))
    needs_primal(config) ? with_shadow(y, t) : t
end
tangent(x::Tuple, d::Tuple, l) =
    isempty(x) ? false : own_tangent(x[1], d[1], l) + tangent(Base.tail(x), Base.tail(d), l)
own_tangent(x::Const, d, l) = zero(d)
own_tangent(x::Annotation, d, l) = lanes(x)[l] * d

"The shadows of an annotation: one, or those of a batch."
lanes(x::Annotation) = (x.dval,)
lanes(x::Union{BatchDuplicated,BatchDuplicatedNoNeed}) = x.dval
one_or_all(t::Tuple{Any}) = t[1]
one_or_all(t::Tuple) = t
with_shadow(y, t) = Duplicated(y, t)
with_shadow(y, t::Tuple) = BatchDuplicated(y, t)

# ---- opaque regions

"The addresses of operands when the call was made: those that change afterwards are copied."
function EnzymeRules.augmented_primal(config, f::Const{typeof(call_region)}, ::Type{<:Const},
    l::Const{RegionKernels{M,I,O}}, pool::Const, a::Vararg{Annotation,N}) where {M,I,O,N}
    call_region(l.val, pool.val, map(p -> p.val, a)...)
    copies = ntuple(k -> overwritten(config)[k+3] ? copied(a[k].val, l.val.operands[k]) :
                nothing, Val(I))
    AugmentedReturn(nothing, nothing, copies)
end
function copied(p::Ptr, n::Int)
    bytes = Vector{UInt8}(undef, n)
    GC.@preserve bytes unsafe_copyto!(pointer(bytes), Ptr{UInt8}(p), n)
    bytes
end
address(p::Ptr, ::Nothing) = Ptr{Cvoid}(p)
address(p::Ptr, copy::Vector{UInt8}) = Ptr{Cvoid}(pointer(copy))

function EnzymeRules.reverse(config, f::Const{typeof(call_region)}, ::Type{<:Const}, copies,
    l::Const{RegionKernels{M,I,O}}, pool::Const, a::Vararg{Annotation,N}) where {M,I,O,N}
    s = l.val
    s.derivative.pointer == C_NULL && return ntuple(Returns(nothing), Val(N + 2))
    x = ntuple(k -> address(a[k].val, copies[k]), Val(I))
    for lane in 1:width(config)
        x̄, ȳ = shadows(s, a, lane)
        GC.@preserve copies call_native(s.derivative, pool.val,
            (x..., chosen(ȳ, s.inexact_results)..., chosen(x̄, s.active)...), chosen(x̄, s.active))
        foreach((v, n) -> v.pointer == C_NULL || zeroed(v.pointer, n), ȳ, s.results)
        foreach(release, x̄)
        foreach(release, ȳ)
    end
    ntuple(Returns(nothing), Val(N + 2))
end

function EnzymeRules.forward(config, f::Const{typeof(call_region)}, ::Type{<:Const},
    l::Const{RegionKernels{M,I,O}}, pool::Const, a::Vararg{Annotation,N}) where {M,I,O,N}
    s = l.val
    x = map(p -> Ptr{Cvoid}(p.val), a)
    call_native(s.value, pool.val, x[1:I], x[I+1:N])
    s.derivative.pointer == C_NULL && return nothing
    for lane in 1:width(config)
        ẋ, ẏ = shadows(s, a, lane)
        call_native(s.derivative, pool.val, (x[1:I]..., chosen(ẋ, s.active)...),
            chosen(ẏ, s.inexact_results))
        foreach(release, ẋ)
        foreach(release, ẏ)
    end
    nothing
end

"Memory of a tangent or cotangent: what Enzyme has, or zeros of our own for what is constant to it."
struct Shadow
    pointer::Ptr{Cvoid}
    own::Bool
end
const NO_SHADOW = Shadow(C_NULL, false)
Shadow(a::Const, n::Int, lane) = Shadow(allocated(max(n, 1); zeroed = true), true)
Shadow(a::Annotation, n::Int, lane) = Shadow(Ptr{Cvoid}(lanes(a)[lane]), false)
"Those of the operands and of the results that a region has derivatives of."
function shadows(s::RegionKernels{M,I,O}, a::Tuple, lane) where {M,I,O}
    operands = ntuple(k -> s.active[k] ? Shadow(a[k], s.operands[k], lane) : NO_SHADOW, Val(I))
    results = ntuple(k -> s.inexact_results[k] ? Shadow(a[I+k], s.results[k], lane) :
                NO_SHADOW, Val(O))
    operands, results
end
release(s::Shadow) = (s.own && Base.Libc.free(s.pointer); nothing)
chosen(shadows::Tuple, marks::Tuple) = Tuple(s.pointer for (s, m) in zip(shadows, marks) if m)
