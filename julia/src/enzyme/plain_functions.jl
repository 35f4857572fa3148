# A Program as a plain Julia function, the form that Enzyme differentiates: serial loops over
# pointers, each part of the workspace written as one type and never given out twice, numbers'
# functions under names that have rules.

"""
`f(x::Ptr..., y::Ptr..., scratch::Ptr..., pool::Ptr{Cvoid})` computes a Program. `scratch` are the
element types of the pointers to memory of `bytes` bytes: all the same address, since types never
share a place in it.
"""
struct PlainFunction
    f::Function
    scratch::Vector{DataType}
    bytes::Int
    opaque::Bool        # whether it has opaque regions
end

"""
The plain function of a Program whose derivative by the `active` inputs is to be made in that mode:
for one tangent or cotangent, or for several at once."""
function plain_function(p::Program, mode::Mode, active = inexact(p.inputs); several = false)
    parts = opaque_regions(dce(p), mode, active)
    flat = flatten_calls(parts)
    g = Generator(length(flat.outputs); target = DifferentiableTarget())
    inputs = Storage[plain_operand!(g, v, Symbol(:x, k)) for (k, v) in enumerate(flat.inputs)]
    places = [Symbol(:y, k) for k in eachindex(flat.outputs)]
    targets = [isscalar(a) ? nothing : Memory(y, aval(a), true)
     for (a, y) in zip(flat.outputs, places)]
    results = emit_program!(g, flat, inputs, targets)
    for (a, y, r) in zip(flat.outputs, places, results)
        isscalar(a) &&
            emit_code!(g,
                :($(unsafe_store!)($y, $(stored)($(dtype(a)), $(r isa Register ? r.symbol : r)))))
    end
    known = several && mode isa ReverseMode ? by_way_of_memory!(g) : Known
    scratch = [T for T in DTYPES_IN_ORDER if haskey(g.types, scratch_base(T))]
    arguments = vcat(
        [
            :($x::Ptr{$(dtype(v))})
            for (x, v) in zip((Symbol(:x, k) for k in eachindex(flat.inputs)),
                flat.inputs)
        ],
        [:($y::Ptr{$(dtype(a))}) for (y, a) in zip(places, flat.outputs)],
        [:($(scratch_base(T))::Ptr{$T}) for T in scratch], :($POOL::Ptr{Cvoid}))
    f = Core.eval(
        Kernels,
        :(function $(Symbol(:plain_, p.name, :_, COUNT[] += 1))($(arguments...))
            $(map(ex -> named(ex, known), g.code)...)
            nothing
        end)
    )
    PlainFunction(f, scratch, g.arena.peak, holds_opaque_regions(parts))
end

function plain_operand!(g::Generator, v::Var, x::Symbol)
    g.types[x] = Ptr{dtype(v)}
    isscalar(v) ? Register(local!(g, dtype(v), :($(unsafe_load)($x)))) : Memory(x, aval(v), false)
end

const POOL = :pool

"""
A plain function: memory of one type each, never given out twice, on one thread, in loops that LLVM
is left to vectorise."""
struct DifferentiableTarget <: Target end
reuses_memory(::DifferentiableTarget) = false
splits_work(::DifferentiableTarget) = false
cuts_rows(::DifferentiableTarget) = false
writes_vectors(::DifferentiableTarget) = false
largest_looped_product(::DifferentiableTarget) = SMALL_PRODUCT
function workspace_pointer(::DifferentiableTarget, g::Generator, ::Type{T}, offset::Int) where {T}
    base = scratch_base(T)
    g.types[base] = Ptr{T}
    :($(+)($base, $offset))
end
scratch_base(T::DataType) = Symbol(:scratch_, T)
const DTYPES_IN_ORDER = sort!(collect(values(DTYPE_OF_NAME)); by = string)

"""
A function of numbers for which there is a derivative to be told: Enzyme would differentiate its
bits. Rules are the extension's, `JaxprADEnzymeExt`; calls inside rules are of `f` itself."""
struct Known{F} <: Function
    f::F
end
@inline (k::Known)(x...) = k.f(x...)

"""
The same by way of memory: Enzyme takes no rules for functions that return numbers when it carries
several cotangents at once (Enzyme.jl's `customrules.jl`). `places` are the value's, by type; it is
read at once, so all functions share them."""
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
@noinline into!(p::Ptr{T}, f::F, x::Vararg{Any,N}) where {T,F,N} =
    (unsafe_store!(p, f(x...)::T); nothing)

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
named(e::Versioned, known) =
    :($Versioned($(named(e.f, known)), $(named(e.fast, known)), $(limit(e))))
