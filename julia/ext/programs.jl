# Derivatives of Programs: Enzyme differentiates the plain function (Moses & Churavy, NeurIPS 2020). Arrays are pointers, `Duplicated` where
# they are active; the workspace's floats are too.

using JaxprAD: JaxprAD, Builder, ForwardMode, ReverseMode, PlainFunction, Program, Var, aval, allocated, dtype, emit,
               inline!, isinexact, plain_function
import JaxprAD: differentiated

function differentiated(p::Program, ::ReverseMode, active)
    q = objective(p)
    plain = plain_function(q, ReverseMode(), vcat(active, falses(length(p.outputs))))
    n, T = length(p.inputs), dtype(q.outputs[1])
    shadows = vcat([a ? cumulative(active, k) : 0 for (k, a) in enumerate(active)], zeros(Int, length(p.outputs)))
    definition(:reverse_, p, q, plain, shadows) do call
        quote
            $((:(zeroed(results[$k], $(JaxprAD.bytes(aval(v))))) for (k, v) in enumerate(p.inputs[active]))...)
            total = allocated($(2sizeof(T)))
            y, ȳ = Ptr{$T}(total), Ptr{$T}(total + $(sizeof(T)))
            unsafe_store!(ȳ, one($T))
            $(call(:Reverse, [:(Duplicated(y, ȳ))]))
            Base.Libc.free(total)
            $((:(conjugate!(Ptr{$(dtype(v))}(results[$k]), $(Int(JaxprAD.size_of(v.type.shape))))) for (k, v) in enumerate(p.inputs[active]) if dtype(v) <: Complex)...)
        end
    end
end
cumulative(mask, k) = count(mask[1:k])

function differentiated(p::Program, ::ForwardMode, active)
    plain = plain_function(p, ForwardMode(), active)
    n = length(p.inputs)
    shadows = [a ? n + cumulative(active, k) : 0 for (k, a) in enumerate(active)]
    sizes = [JaxprAD.bytes(aval(a)) for a in p.outputs]
    places = cumsum(vcat(0, [64cld(b, 64) for b in sizes]))
    y(k, a) = :(Duplicated(Ptr{$(dtype(a))}(values + $(places[k])), Ptr{$(dtype(a))}(results[$k])))
    definition(:forward_, p, p, plain, shadows) do call
        quote
            values = allocated($(places[end]))
            $(call(:Forward, [y(k, a) for (k, a) in enumerate(p.outputs)]))
            Base.Libc.free(values)
        end
    end
end

"""
Defines `run(operands, results, pool)`; `f(call)` writes its code, where `call(mode, y)` is the call of `autodiff`. `shadows` are the
places of the operands' shadows: among the results in reverse mode, among the operands in forward mode, 0 for none.
"""
function definition(f, prefix::Symbol, p::Program, q::Program, plain::PlainFunction, shadows)
    in_reverse = prefix === :reverse_
    x = map(enumerate(q.inputs)) do (k, v)
        pointer = :(Ptr{$(dtype(v))}(operands[$k]))
        s = shadows[k]
        s == 0 ? :(Const($pointer)) : :(Duplicated($pointer, Ptr{$(dtype(v))}($(in_reverse ? :results : :operands)[$s])))
    end
    scratch = [isinexact(T) ? :(Duplicated(Ptr{$T}(scratch), Ptr{$T}(shadow))) : :(Const(Ptr{$T}(scratch))) for T in plain.scratch]
    call(mode, y) = :(autodiff($mode, Const($(plain.f)), Const, $(x...), $(y...), $(scratch...), Const(pool)))
    run = Core.eval(@__MODULE__, :(function $(gensym(string(prefix, p.name)))(operands::Tuple, results::Tuple, pool::Ptr{Cvoid})
        scratch, shadow = allocated($(plain.bytes + 1)), allocated($(plain.bytes + 1); zeroed = true)
        $(f(call))
        Base.Libc.free(scratch)
        Base.Libc.free(shadow)
        nothing
    end))
    run
end

zeroed(p::Ptr{Cvoid}, n::Int) = (ccall(:memset, Ptr{Cvoid}, (Ptr{Cvoid}, Cint, Csize_t), p, 0, n); nothing)
function conjugate!(p::Ptr{<:Complex}, n::Int)
    for k in 1:n
        unsafe_store!(p, conj(unsafe_load(p, k)), k)
    end
end

"""
(x…, cotangents of the results…) → the inner product of results and cotangents, of which a VJP is the gradient. So the cotangents, which
are JAX's, are only read, and the results need not be stored.
"""
function objective(p::Program)
    b, x, ȳ = Builder(), JaxprAD.fresh(p.inputs), [Var(aval(a)) for a in p.outputs]
    terms = [inner_product(b, y, c) for (y, c) in zip(inline!(b, p, x), ȳ)]
    T = any(t -> dtype(t) === Float64, terms) ? :f64 : :f32
    wide = [JaxprAD.dtype_name(dtype(t)) === T ? t : emit(b, :convert_element_type, t; dtype = T) for t in terms]
    Program(p.name, vcat(x, ȳ), b.equations, [reduce((s, t) -> emit(b, :add, s, t), wide)])
end

function inner_product(b::Builder, y, ȳ)
    t = emit(b, :mul, y, ȳ)
    dtype(t) <: Complex && (t = emit(b, :real, t))
    sizeof(dtype(t)) < 4 && (t = emit(b, :convert_element_type, t; dtype = :f32))
    axes = collect(0:ndims(aval(t))-1)
    isempty(axes) ? t : emit(b, :reduce_sum, t; axes = axes)
end
