"""
`AutoJaxprAD()`, the backend of DifferentiationInterface. What is prepared is native code of the
operator on a function: it holds for all points of the types that it was prepared for."""
module JaxprADDifferentiationInterfaceExt

using ADTypes: ADTypes, AbstractADType, ForwardOrReverseMode
using DifferentiationInterface: DifferentiationInterface
using JaxprAD: JaxprAD, JitFunction, TracedComplex, assembled, atom_here, flatten, jacobian, jit,
    linearize, traced_array, vjp

const DI = DifferentiationInterface

struct Backend <: AbstractADType end
JaxprAD.brought(::Val{:AutoJaxprAD}, package) = Backend()
Base.show(io::IO, ::Backend) = print(io, "AutoJaxprAD()")
ADTypes.mode(::Backend) = ForwardOrReverseMode()
DI.check_available(::Backend) = true

include("function_backends.jl")

# ---- operators, as functions to compile

"A function of DifferentiationInterface's, with the contexts that it is called with."
struct OneArgument{F,C}
    f::F
    contexts::C
end
(g::OneArgument)(x) = g.f(x, map(given, g.contexts)...)

"A function that writes its result to its first argument."
struct TwoArguments{F,Y,C}
    f!::F
    y::Y
    contexts::C
end
function (g::TwoArguments)(x)
    y = scratch(g.y)
    g.f!(y, x, map(given, g.contexts)...)
    y
end

given(c::DI.Context) = DI.unwrap(c)
given(c::Union{DI.Cache,DI.ConstantOrCache}) = scratch(DI.unwrap(c))

"A copy that the function under way may write to: an array belongs to the trace that made it."
scratch(x) = rebuilt(copy_here, x)
copy_here(x::AbstractArray) = traced_array(atom_here(x))
copy_here(x) = x

function rebuilt(f, x)
    leaves, structure = flatten(x)
    assembled(structure, map(f, leaves))
end

function pushforwards(g, x, ẋ)
    y, push = linearize(g, x)
    y, map(ẋ -> push(as_complex(x, ẋ)), ẋ)
end

# Its cotangents are conjugates of ours, which are JAX's: the transpose without conjugation.
function pullbacks(g, x, ȳ)
    y, pull = vjp(g, x)
    y, map(ȳ -> rebuilt(conj, first(pull(as_complex(y, rebuilt(conj, ȳ))))), ȳ)
end
"Real seeds for complex numbers, as such."
as_complex(x, ẋ) = ẋ
as_complex(x::TracedComplex, ẋ::Real) = typeof(x)(ẋ)
as_complex(x::AbstractArray{<:TracedComplex}, ẋ::AbstractArray{<:Real}) = eltype(x).(ẋ)

# Of a complex result too: the pullback of one, which for a holomorphic function is the conjugate
# of its derivative.
function gradients(g, x)
    y, pull = vjp(g, x)
    y, rebuilt(conj, first(pull(one(y))))
end
jacobians(g, x) = (g(x), jacobian(g, x))

# ---- preparations, and what runs them

for (operator, made, supertype) in ((:pushforward, :pushforwards, :PushforwardPrep),
    (:pullback, :pullbacks, :PullbackPrep), (:gradient, :gradients, :GradientPrep),
    (:jacobian, :jacobians, :JacobianPrep))
    Prepared = Symbol(:Compiled, supertype)
    prepare = Symbol(:prepare_, operator, :_nokwarg)
    both = Symbol(:value_and_, operator)
    seeds = operator in (:pushforward, :pullback) ? (:(t::NTuple),) : ()
    passed = isempty(seeds) ? () : (:t,)

    @eval struct $Prepared{SIG} <: DI.$supertype{SIG}
        _sig::Val{SIG}
        compiled::JitFunction
    end
    @eval DI.$prepare(strict::Val, f, backend::Backend, x, $(seeds...),
        contexts::Vararg{DI.Context}) =
        $Prepared(DI.signature(f, backend, x, $(passed...), contexts...; strict), jit($made))
    @eval function DI.$both(f, prep::$Prepared, backend::Backend, x, $(seeds...),
        contexts::Vararg{DI.Context})
        DI.check_prep(f, prep, backend, x, $(passed...), contexts...)
        prep.compiled(OneArgument(f, contexts), x, $(passed...))
    end
    operator === :gradient && continue
    @eval DI.$prepare(strict::Val, f!, y, backend::Backend, x, $(seeds...),
        contexts::Vararg{DI.Context}) =
        $Prepared(DI.signature(f!, y, backend, x, $(passed...), contexts...; strict), jit($made))
    @eval function DI.$both(f!, y, prep::$Prepared, backend::Backend, x, $(seeds...),
        contexts::Vararg{DI.Context})
        DI.check_prep(f!, y, prep, backend, x, $(passed...), contexts...)
        value, derivative = prep.compiled(TwoArguments(f!, y, contexts), x, $(passed...))
        copyto!(y, value), derivative
    end
end

# DifferentiationInterface makes the other forms of pushforwards and pullbacks of these itself.
for (operator, supertype) in ((:gradient, :GradientPrep), (:jacobian, :JacobianPrep)),
    first_arguments in (operator === :gradient ? ((:f,),) : ((:f,), (:f!, :y)))

    Prepared, both = Symbol(:Compiled, supertype), Symbol(:value_and_, operator)
    both!, operator! = Symbol(both, :!), Symbol(operator, :!)
    @eval DI.$operator($(first_arguments...), prep::$Prepared, backend::Backend, x,
        contexts::Vararg{DI.Context}) =
        DI.$both($(first_arguments...), prep, backend, x, contexts...)[2]
    @eval function DI.$both!($(first_arguments...), result, prep::$Prepared, backend::Backend, x,
        contexts::Vararg{DI.Context})
        value, derivative = DI.$both($(first_arguments...), prep, backend, x, contexts...)
        value, copyto!(result, derivative)
    end
    @eval DI.$operator!($(first_arguments...), result, prep::$Prepared, backend::Backend, x,
        contexts::Vararg{DI.Context}) =
        DI.$both!($(first_arguments...), result, prep, backend, x, contexts...)[2]
end

end
