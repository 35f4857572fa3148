# Derivatives of Programs: Enzyme differentiates the plain function (Moses & Churavy, NeurIPS 2020).
# Arrays are pointers, `Duplicated` where they are active, or `BatchDuplicated` for several tangents
# or cotangents at once; the workspace's floats are too.

using JaxprAD: JaxprAD, Builder, ForwardMode, ReverseMode, PlainFunction, Program, Var, aval,
    allocated, dtype, emit,
    inline!, isinexact, plain_function
import JaxprAD: differentiated

differentiated(p::Program, mode::ReverseMode, active, width) =
    width == 1 ? pulled_back(p, active) : pulled_back(p, active, width)

"One cotangent of each result: the gradient of the inner product."
function pulled_back(p::Program, active)
    q = objective(p)
    plain = plain_function(q, ReverseMode(), vcat(active, falses(length(p.outputs))))
    T = dtype(q.outputs[1])
    x = [
        operands(p.inputs, active, :results);
        [:(Const($(pointer_to(v, :(linear[$k][1])))))
         for (k, v) in enumerate(p.outputs)]
    ]
    definition(:reverse_, p, plain, 1) do call
        quote
            $(clear_results(p, active))
            total = allocated($(2sizeof(T)))
            y, ȳ = Ptr{$T}(total), Ptr{$T}(total + $(sizeof(T)))
            unsafe_store!(ȳ, one($T))
            $(call(:Reverse, x, [:(Duplicated(y, ȳ))]))
            Base.Libc.free(total)
            $(conjugate_results(p, active))
        end
    end
end

"Several cotangents of each result, of which Enzyme gets copies since it uses them up."
function pulled_back(p::Program, active, width)
    plain = plain_function(p, ReverseMode(), active; several = true)
    places, sizes = placed(p.outputs)
    y = map(enumerate(p.outputs)) do (k, a)
        lanes = Expr(:tuple, (:(values + $(places[end] * l + places[k])) for l in 1:width)...)
        :(shadowed($(pointer_to(a, :(values + $(places[k])))), $lanes))
    end
    definition(:reverse_, p, plain, width) do call
        quote
            $(clear_results(p, active))
            values = allocated($((width + 1) * places[end]))
            $(
                (
                    :(copy_seed!($(pointer_to(a, :(values + $(places[end] * l + places[k])))),
                        linear[$k][$l], $(sizes[k])))
                    for (k, a) in enumerate(p.outputs) for l in 1:width
                )...
            )
            $(call(:Reverse, operands(p.inputs, active, :results), y))
            Base.Libc.free(values)
            $(conjugate_results(p, active))
        end
    end
end

function differentiated(p::Program, ::ForwardMode, active, width)
    plain = plain_function(p, ForwardMode(), active; several = width > 1)
    places, _ = placed(p.outputs)
    y = [
        :(shadowed($(pointer_to(a, :(values + $(places[k])))), results[$k]))
        for (k, a) in enumerate(p.outputs)
    ]
    definition(:forward_, p, plain, width) do call
        quote
            values = allocated($(places[end]))
            $(call(:Forward, operands(p.inputs, active, :linear), y))
            Base.Libc.free(values)
        end
    end
end

"""
Defines `run(operands, linear, results, pool)`: of each operand the address, of what the derivative
is linear in, and of each result, a tuple of `width` addresses. `f(call)` writes its code, where
`call(mode, x, y)` is the call of `autodiff`.
"""
function definition(f, prefix::Symbol, p::Program, plain::PlainFunction, width)
    lane = 64cld(plain.bytes + 1, 64)
    lanes = Expr(:tuple, (:(shadow + $(lane * (l - 1))) for l in 1:width)...)
    scratch = [
        isinexact(T) ? :(shadowed(Ptr{$T}(scratch), $lanes)) : :(Const(Ptr{$T}(scratch)))
        for T in plain.scratch
    ]
    call(mode, x, y) =
        :(autodiff($mode, Const($(plain.f)), Const, $(x...), $(y...), $(scratch...), Const(pool)))
    name = gensym(string(prefix, p.name))
    definition = quote
        function $name(operands::Tuple, linear::Tuple, results::Tuple, pool::Ptr{Cvoid})
            scratch, shadow = allocated($lane), allocated($(lane * width); zeroed = true)
            $(f(call))
            Base.Libc.free(scratch)
            Base.Libc.free(shadow)
            nothing
        end
    end
    Core.eval(@__MODULE__, definition)
end

"The Program's operands for `autodiff`, with the next of `shadows` for each that is active."
function operands(inputs, active, shadows::Symbol)
    map(enumerate(inputs)) do (k, v)
        x = pointer_to(v, :(operands[$k]))
        active[k] ? :(shadowed($x, $shadows[$(count(active[1:k]))])) : :(Const($x))
    end
end
pointer_to(a, address) = :(Ptr{$(dtype(a))}($address))

"A pointer with the addresses of its shadows."
shadowed(x::Ptr, shadows::Tuple{Ptr{Cvoid}}) = Duplicated(x, typeof(x)(shadows[1]))
shadowed(x::Ptr, shadows::Tuple) = BatchDuplicated(x, map(typeof(x), shadows))

"Where arrays lie one after the other, at last the end of all; and the bytes of each."
function placed(atoms)
    sizes = [JaxprAD.bytes(aval(a)) for a in atoms]
    cumsum(vcat(0, [64cld(b, 64) for b in sizes])), sizes
end

clear_results(p, active) =
    each_result(p, active, (v, y) -> :(zeroed($y, $(JaxprAD.bytes(aval(v))))))
conjugate_results(p, active) = each_result(
    p,
    active,
    (v, y) ->
        dtype(v) <: Complex ?
        :(conjugate!($(pointer_to(v, y)), $(Int(JaxprAD.size_of(v.type.shape))))) : nothing
)
each_result(p, active, f) =
    Expr(:block,
        (:(foreach(y -> $(f(v, :y)), results[$k])) for (k, v) in enumerate(p.inputs[active]))...)

function copy_seed!(to::Ptr{T}, from::Ptr{Cvoid}, bytes::Int) where {T}
    ccall(:memcpy, Ptr{Cvoid}, (Ptr{Cvoid}, Ptr{Cvoid}, Csize_t), to, from, bytes)
    T <: Complex && conjugate!(to, bytes ÷ sizeof(T))
    nothing
end
zeroed(p::Ptr{Cvoid}, n::Int) =
    (ccall(:memset, Ptr{Cvoid}, (Ptr{Cvoid}, Cint, Csize_t), p, 0, n); nothing)
function conjugate!(p::Ptr{<:Complex}, n::Int)
    for k in 1:n
        unsafe_store!(p, conj(unsafe_load(p, k)), k)
    end
end

"""
(x…, cotangents of the results…) → the inner product of results and cotangents, of which a VJP is
the gradient. So the cotangents, which are JAX's, are only read, and the results need not be stored.
"""
function objective(p::Program)
    b, x, ȳ = Builder(), JaxprAD.fresh(p.inputs), [Var(aval(a)) for a in p.outputs]
    terms = [inner_product(b, y, c) for (y, c) in zip(inline!(b, p, x), ȳ)]
    T = any(t -> dtype(t) === Float64, terms) ? :f64 : :f32
    wide = [
        JaxprAD.dtype_name(dtype(t)) === T ? t : emit(b, :convert_element_type, t; dtype = T)
        for t in terms
    ]
    Program(p.name, vcat(x, ȳ), b.equations, [reduce((s, t) -> emit(b, :add, s, t), wide)])
end

function inner_product(b::Builder, y, ȳ)
    t = emit(b, :mul, y, ȳ)
    dtype(t) <: Complex && (t = emit(b, :real, t))
    sizeof(dtype(t)) < 4 && (t = emit(b, :convert_element_type, t; dtype = :f32))
    axes = collect(0:ndims(aval(t))-1)
    isempty(axes) ? t : emit(b, :reduce_sum, t; axes = axes)
end
