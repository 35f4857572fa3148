# What other packages of Julia's bring, by the extensions in julia/ext, under names of JaxprAD's.

"A function of JaxprAD's that needs a package which is not loaded."
struct PackageNotLoaded <: JaxprADError
    message::String
end
Base.showerror(io::IO, e::PackageNotLoaded) = print(io, e.message)

"What an extension gives for a function's name; each adds the method for its own."
brought(::Val{name}, package, x...) where {name} = throw(
    PackageNotLoaded("JaxprAD.$name needs $package: `using $package` brings it " *
                     "(Julia 1.9 or newer)"))

"""
    AutoJaxprAD()

The backend of DifferentiationInterface.jl (a type of ADTypes.jl) that traces functions and
differentiates their Programs, natively compiled at the first call of each preparation. Both modes,
derivatives of derivatives, functions `f!(y, x)`, constants and caches. Needs
DifferentiationInterface. Throws what `trace` throws, and `PackageNotLoaded`."""
AutoJaxprAD() = brought(Val(:AutoJaxprAD), "DifferentiationInterface")

"""
    with_chain_rule(f) -> function

`f` with the derivative that ChainRulesCore.jl knows of it: its `frule`, else its `rrule`, is the
rule of `custom_jvp` or `custom_vjp`. The rule must be written for any AbstractArray or Number,
since it is traced. Needs ChainRulesCore. Throws `PackageNotLoaded`, and `NotDifferentiable` where
there is no rule for the arguments."""
with_chain_rule(f) = brought(Val(:with_chain_rule), "ChainRulesCore", f)

"A function that another language runs, with `jvp` and `vjp` of its own outside of a trace."
abstract type ForeignFunction <: Function end

"""
    JaxFunction(f) -> function

A function of JAX (a Python object of PythonCall's) as one of Julia. Arguments are numbers and
arrays, also in tuples, named tuples, dictionaries, vectors and structs (which JAX gets as dicts);
integers, Bools, words and `nothing` are known, and part of what is compiled. An array of size
(m, n) is one of shape (n, m) in Python: the same memory, which is not copied. XLA computes values,
`jvp` and `vjp`; within `trace`, `jit` and other transforms the function is a Program, as
`pybridge.trace` makes it. With ChainRulesCore it has an `frule` and an `rrule`. Needs PythonCall,
and pybridge in its Python. Throws `PackageNotLoaded`, and PythonCall's exceptions for those of
Python."""
JaxFunction(f) = brought(Val(:JaxFunction), "PythonCall", f)

"""
    LogDensity(f, dimension)

`f`, a function of a vector of that length with one real result, as LogDensityProblems.jl takes log
densities, where that is loaded: with its gradient and Hessian, each compiled at its first call for
an element type."""
struct LogDensity{F}
    f::F
    dimension::Int
    value::JitFunction
    gradient::JitFunction
    hessian::JitFunction
end
LogDensity(f, dimension) =
    LogDensity(f, dimension, jit(f), jit(x -> value_and_gradient(f, x)),
        jit(x -> (value_and_gradient(f, x)..., hessian(f, x))))
