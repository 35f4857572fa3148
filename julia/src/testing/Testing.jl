"""
Whether the derivatives of a function are those of its values: what `check_derivatives` finds out,
and `@test_derivatives` makes tests of Julia's `Test` of. This package does not load `Test`.
"""
module Testing

using Random: AbstractRNG, MersenneTwister, randn
using ..JaxprAD: ArrayLeaf, ArrayLike, Container, DictionaryKeys, NotDifferentiable, NumberLeaf,
    StaticValue, Structure, argument_names, assembled, flatten, flatten_state,
    isdifferentiable, jit, jvp, leaf_type, program_name, real_dtype, trace, vjp

include("differences.jl")
include("report.jl")
include("points.jl")
include("checks.jl")
include("test_derivatives.jl")

end
