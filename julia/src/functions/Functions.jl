"""
Julia functions as JAX functions: how their arguments and results look in Julia, where they come
from, and how XLA calls them.

A function becomes a `Call`, its derivatives `Pushforward` and `Pullback`: each computes arrays from
arrays, `apply!(what, results, operands...)`, so that each can be differentiated in turn.
Derivatives that the user does not give are an extension's, `JaxprADEnzymeExt`, or, as
`ByBackend`, `JaxprADDifferentiationInterfaceExt`'s.
"""
module Functions

using LinearAlgebra: LinearAlgebra, Transpose, transpose
using ..JaxprAD: Dim, JaxprADError, TensorType, dtype_name, dtype_named, isinexact, NAME_OF_DTYPE,
    failure_text
using ..FFI: FFI, Descriptor, FFICallFrame, EXECUTE_STAGE

include("errors.jl")
include("arrays.jl")
include("trees.jl")
include("calls.jl")
include("derivatives.jl")
include("backends.jl")
include("sources.jl")
include("describe.jl")
include("self_contained.jl")
include("runner.jl")
include("handler.jl")

end
