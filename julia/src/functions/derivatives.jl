# Derivatives of calls: by the user's rules, which are calls themselves, or by
# differentiating `apply!`.

"""
The tangents of `of`'s inexact results. Operands: those of `of`, then tangents of the `Active` ones
(a tuple of places).
"""
struct Pushforward{C,Active,I,O}
    of::C
    inputs::I
    outputs::O
end
function Pushforward(of, active::Tuple)
    inputs = (of.inputs..., pick(of.inputs, Val(active))...)
    outputs = Tuple(s for s in of.outputs if isinexact_spec(s))
    Pushforward{typeof(of),active,typeof(inputs),typeof(outputs)}(of, inputs, outputs)
end

"""
The cotangents of `of`'s `Active` operands. Operands: those of `of`, then cotangents of its inexact
results. As in JAX, transposition does not conjugate.
"""
struct Pullback{C,Active,I,O}
    of::C
    inputs::I
    outputs::O
end
function Pullback(of, active::Tuple)
    inputs = (of.inputs..., (s for s in of.outputs if isinexact_spec(s))...)
    outputs = pick(of.inputs, Val(active))
    Pullback{typeof(of),active,typeof(inputs),typeof(outputs)}(of, inputs, outputs)
end

const Derivative = Union{Pushforward,Pullback}

# Enzyme works on copies: reverse mode may run a function's writes to its arguments a second time.
function execute!(d::Derivative, results::Tuple, operands::Tuple)
    each(m -> fill!(m, zero(eltype(m))), results)
    differentiate!(d, results, each(copy, operands)...)
    nothing
end

"`apply!` for derivatives as the outermost call; the extension has the methods."
function differentiate! end

"Throws if Enzyme is not to see the function; the extension has the methods."
function refuse_unfit end

const ENZYME = Base.PkgId(Base.UUID("7da242da-08ed-463a-9acd-ee780be4f1d9"), "Enzyme")

"Loads Enzyme.jl, and with it the extension, at the first derivative that needs it."
function require_enzyme()
    VERSION >= v"1.9" && Base.locate_package(ENZYME) !== nothing ||
        throw(EngineUnavailable(NO_ENZYME))
    haskey(Base.loaded_modules, ENZYME) || Base.require(ENZYME)
    Base.get_extension(parentmodule(@__MODULE__), :JaxprADEnzymeExt) === nothing &&
        throw(EngineUnavailable(NO_EXTENSION))
    nothing
end
const NO_EXTENSION =
    "Enzyme.jl is here, but JaxprAD's extension for it did not load; Julia's " *
    "message on stderr says why"
const NO_ENZYME =
    "this derivative needs Enzyme.jl, which this Julia does not have; " *
    "install Enzyme (Julia 1.10 or newer), or name Julia functions for jvp= and vjp="

"""
`jvp(arguments, tangents)` of the user's as a call: tangents of all inexact arguments in, of all
inexact results out."""
function jvp_call(rule, arguments, result, layout)
    primal, x = slotted(arguments)
    tangent, ẋ = slotted(arguments, isinexact_spec, length(x) + 1)
    results, ẏ = slotted(result, isinexact_spec)
    Call(rule, (primal, tangent), results, layout, (x..., ẋ...), ẏ)
end

"""
`vjp(arguments, cotangents)` of the user's as a call: cotangents of all inexact results in, of all
inexact arguments out."""
function vjp_call(rule, arguments, result, layout)
    primal, x = slotted(arguments)
    cotangent, ȳ = slotted(result, isinexact_spec, length(x) + 1)
    results, x̄ = slotted(arguments, isinexact_spec)
    Call(rule, (primal, cotangent), results, layout, (x..., ȳ...), x̄)
end
