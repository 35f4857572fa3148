"""
XLA's foreign function interface: native kernels as its targets, and its threads for them.

What runs when XLA calls stays off Julia's heap and throws nothing, since XLA's
threads are not Julia's.
"""
module FFI

using ..JaxprAD: BFloat16, Program, TensorType, aval, dtype_name

include("c_api.jl")
include("atomics.jl")
include("text.jl")
include("gate.jl")
include("pool.jl")
include("pages.jl")
include("workspaces.jl")
include("handler.jl")
include("targets.jl")

end

using .FFI: @call_address, parallel_for
