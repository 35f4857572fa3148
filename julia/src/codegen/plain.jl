# A Program as a plain Julia function, the form that Enzyme differentiates: serial loops over pointers, each part of the workspace written
# as one type and never given out twice, numbers' functions under names that have rules.

"""
`f(x::Ptr..., y::Ptr..., scratch::Ptr..., pool::Ptr{Cvoid})` computes a Program. `scratch` are the element types of the pointers to
memory of `bytes` bytes: all the same address, since types never share a place in it.
"""
struct PlainFunction
    f::Function
    scratch::Vector{DataType}
    bytes::Int
    linked::Bool        # whether it calls kernels, by `link`
end

"""
The plain function of a Program whose derivative by the `active` inputs is to be made in that mode: for one tangent or cotangent, or for
several at once."""
function plain_function(p::Program, mode::Mode, active = inexact(p.inputs); several = false)
    parts = linked_parts(dce(p), mode, active)
    flat = flattened(parts)
    g = Generator(length(flat.outputs); plain = true)
    inputs = Storage[plain_operand!(g, v, Symbol(:x, k)) for (k, v) in enumerate(flat.inputs)]
    places = [Symbol(:y, k) for k in eachindex(flat.outputs)]
    targets = [isscalar(a) ? nothing : Memory(y, aval(a), true) for (a, y) in zip(flat.outputs, places)]
    results = emit_program!(g, flat, inputs, targets)
    for (a, y, r) in zip(flat.outputs, places, results)
        isscalar(a) && emit_code!(g, :($(unsafe_store!)($y, $(stored)($(dtype(a)), $(r isa Register ? r.symbol : r)))))
    end
    known = several && mode isa ReverseMode ? by_way_of_memory!(g) : Known
    scratch = [T for T in DTYPES_IN_ORDER if haskey(g.types, scratch_base(T))]
    arguments = vcat([:($x::Ptr{$(dtype(v))}) for (x, v) in zip((Symbol(:x, k) for k in eachindex(flat.inputs)), flat.inputs)],
                     [:($y::Ptr{$(dtype(a))}) for (y, a) in zip(places, flat.outputs)],
                     [:($(scratch_base(T))::Ptr{$T}) for T in scratch], :($POOL::Ptr{Cvoid}))
    f = Core.eval(Kernels, :(function $(Symbol(:plain_, p.name, :_, COUNT[] += 1))($(arguments...))
        $(map(ex -> named(ex, known), g.code)...)
        nothing
    end))
    PlainFunction(f, scratch, g.arena.peak, holds_links(parts))
end

function plain_operand!(g::Generator, v::Var, x::Symbol)
    g.types[x] = Ptr{dtype(v)}
    isscalar(v) ? Register(local!(g, dtype(v), :($(unsafe_load)($x)))) : Memory(x, aval(v), false)
end

const POOL = :pool
scratch_base(T::DataType) = Symbol(:scratch_, T)
const DTYPES_IN_ORDER = sort!(collect(values(DTYPE_OF_NAME)); by = string)

"""
A function of numbers for which there is a derivative to be told: Enzyme would differentiate its bits. Rules are the extension's,
`JaxprADEnzymeExt`; calls inside rules are of `f` itself."""
struct Known{F} <: Function
    f::F
end
@inline (k::Known)(x...) = k.f(x...)

"""
The same by way of memory: Enzyme takes no rules for functions that return numbers when it carries several cotangents at once
(Enzyme.jl's `customrules.jl`). `places` are the value's, by type; it is read at once, so all functions share them."""
struct ByMemory{F} <: Function
    f::F
    places::Tuple{Ptr{Float32},Ptr{Float64}}
end
@inline function (k::ByMemory)(x::Vararg{Any,N}) where {N}
    p = place(k, x[1])
    p === nothing && return k.f(x...)
    into!(p, k.f, x...)
    unsafe_load(p)
end
place(k::ByMemory, ::Float32) = k.places[1]
place(k::ByMemory, ::Float64) = k.places[2]
place(k::ByMemory, x) = nothing

"Writes a function's value. Enzyme has rules for this."
@noinline into!(p::Ptr{T}, f::F, x::Vararg{Any,N}) where {T,F,N} = (unsafe_store!(p, f(x...)::T); nothing)

function by_way_of_memory!(g::Generator)
    places = map((Float32, Float64)) do T
        base, part = scratch_base(T), allocate!(g.arena, sizeof(T))
        g.types[base] = Ptr{T}
        :($(+)($base, $(first(part))))
    end
    f -> :($ByMemory($f, ($(places...),)))
end

"The code with `known(f)` in the place of each function that `hasderivative`."
named(ex, known) = ex
named(ex::Expr, known) = Expr(ex.head, map(e -> named(e, known), ex.args)...)
named(f::Function, known) = hasderivative(f) ? known(f) : f
named(e::Either, known) = :($Either($(named(e.f, known)), $(named(e.near, known)), $(e.limit)))

"Numbers' functions with a derivative in NumberMath's terms: `partials(f, x...)` at those numbers, one each."
hasderivative(f) = hasmethod(partials, Tuple{typeof(f),Float64}) || hasmethod(partials, Tuple{typeof(f),Float64,Float64})

partials(::typeof(NumberMath.exp), x) = (NumberMath.exp(x),)
partials(::typeof(NumberMath.exp2), x) = (NumberMath.exp2(x) * oftype(x, log(2)),)
partials(::typeof(NumberMath.expm1), x) = (NumberMath.exp(x),)
partials(::typeof(NumberMath.log), x) = (1 / x,)
partials(::typeof(NumberMath.log2), x) = (oftype(x, 1 / log(2)) / x,)
partials(::typeof(NumberMath.log1p), x) = (1 / (1 + x),)
partials(::typeof(NumberMath.sin), x) = (NumberMath.cos(x),)
partials(::typeof(NumberMath.cos), x) = (-NumberMath.sin(x),)
partials(::typeof(NumberMath.sin_near), x) = (NumberMath.cos_near(x),)
partials(::typeof(NumberMath.cos_near), x) = (-NumberMath.sin_near(x),)
partials(::typeof(NumberMath.tan), x) = (y = NumberMath.tan(x); (1 + y * y,))
partials(::typeof(NumberMath.tan_near), x) = (y = NumberMath.tan_near(x); (1 + y * y,))
partials(::typeof(NumberMath.one_minus_square), x) = (-2x,)
partials(::typeof(NumberMath.asin), x) = (NumberMath.rsqrt((1 - x) * (1 + x)),)
partials(::typeof(NumberMath.acos), x) = (-NumberMath.rsqrt((1 - x) * (1 + x)),)
partials(::typeof(NumberMath.atan), x) = (1 / (1 + x * x),)
partials(::typeof(NumberMath.sinh), x) = (NumberMath.cosh(x),)
partials(::typeof(NumberMath.cosh), x) = (NumberMath.sinh(x),)
partials(::typeof(NumberMath.tanh), x) = (y = NumberMath.tanh(x); ((1 - y) * (1 + y),))
partials(::typeof(NumberMath.logistic), x) = (NumberMath.logistic(x) * NumberMath.logistic(-x),)
partials(::typeof(NumberMath.sqrt), x) = (oftype(x, 0.5) / NumberMath.sqrt(x),)
partials(::typeof(NumberMath.rsqrt), x) = (-(NumberMath.rsqrt(x) / (2x)),)
partials(::typeof(NumberMath.cbrt), x) = (y = NumberMath.cbrt(x); (1 / (3 * y * y),))
partials(::typeof(NumberMath.asinh), x) = (1 / NumberMath.hypot(x, one(x)),)
partials(::typeof(NumberMath.acosh), x) = (NumberMath.rsqrt(x - 1) * NumberMath.rsqrt(x + 1),)
partials(::typeof(NumberMath.atanh), x) = (1 / ((1 - x) * (1 + x)),)
partials(::typeof(NumberMath.erf), x) = (oftype(x, 2 / sqrt(π)) * NumberMath.exp(-x * x),)
partials(::typeof(NumberMath.erfc), x) = (oftype(x, -2 / sqrt(π)) * NumberMath.exp(-x * x),)
partials(::typeof(NumberMath.erf_inv), x) = (y = NumberMath.erf_inv(x); (oftype(x, sqrt(π) / 2) * NumberMath.exp(y * y),))
partials(::typeof(absolute), x) = (oftype(x, sign(x)),)
partials(::typeof(power), x, y) = (ifelse(y == 0, zero(x), y * NumberMath.pow(x, y - 1)),
                                   NumberMath.log(ifelse(x > 0, x, one(x))) * NumberMath.pow(x, y))
partials(::typeof(power), x, y::Integer) = (ifelse(y == 0, zero(x), oftype(x, y) * power(x, y - one(y))), zero(x))
partials(::typeof(NumberMath.atan2), y, x) = (r = NumberMath.hypot(x, y); (x / r / r, -y / r / r))
# As JAX has it, operands that tie share the derivative.
partials(::typeof(larger), x, y) = (d = ifelse(x == y, oftype(x, 0.5), oftype(x, x > y)); (d, 1 - d))
partials(::typeof(smaller), x, y) = (d = ifelse(x == y, oftype(x, 0.5), oftype(x, x < y)); (d, 1 - d))
