"""
    JaxprAD

JAX-style automatic differentiation on Programs: typed, single-assignment equations over a closed
set of primitives. A forward rule per primitive (`jvp`), a split into known and linear parts
(`linearize`) and a transpose rule for each primitive that can be linear; reverse mode is
`transpose ∘ linearize`. Standard library only; Julia 1.5 and newer.
"""
module JaxprAD

using LinearAlgebra
using Libdl

# Rules and transforms are symbolic code, run once a Program: compile latency matters, not their speed.
Base.Experimental.@optlevel 1

export Program, parse_program, jvp, linearize, transpose, vjp, optimize, evaluate, typecheck

include("errors.jl")
include("bfloat16.jl")
include("dtypes.jl")
include("dims.jl")
include("program.jl")
include("primitive.jl")
include("builder.jl")
include("scalars.jl")

include("codegen/affine.jl")
include("codegen/interface.jl")
include("codegen/arena.jl")
include("codegen/nest.jl")

include("math/NumberMath.jl")

include("rules/layout.jl")
include("rules/elementwise.jl")
include("rules/unary.jl")
include("rules/binary.jl")
include("rules/complex.jl")
include("rules/conversion.jl")
include("rules/select.jl")
include("rules/special.jl")
include("rules/shape.jl")
include("rules/slicing.jl")
include("rules/gather.jl")
include("rules/scatter.jl")
include("rules/reductions.jl")
include("rules/cumulative.jl")
include("rules/sorting.jl")
include("rules/dot.jl")
include("rules/windows.jl")
include("rules/convolution.jl")
include("rules/reduce_window.jl")
include("rules/matrices.jl")
include("rules/triangular_solve.jl")
include("rules/cholesky.jl")
include("rules/eigh.jl")
include("rules/qr.jl")
include("rules/svd.jl")
include("rules/lu.jl")
include("rules/eig.jl")
include("rules/reflections.jl")
include("rules/tridiagonal_solve.jl")
include("rules/fourier.jl")
include("rules/generators.jl")
include("rules/threefry.jl")

include("transforms/inline.jl")
include("transforms/dce.jl")
include("transforms/accumulate.jl")
include("transforms/jvp.jl")
include("transforms/partial_eval.jl")
include("transforms/keep.jl")
include("transforms/linearize.jl")
include("transforms/transpose.jl")
include("transforms/vjp.jl")
include("transforms/typecheck.jl")
include("transforms/evaluate.jl")

include("rules/remat.jl")
include("rules/custom.jl")
include("rules/linear_solve.jl")
include("rules/cond.jl")
include("rules/scan.jl")
include("rules/while.jl")
include("rules/passes.jl")
include("rules/passes_transpose.jl")

include("rules/identities.jl")
include("transforms/simplify.jl")
include("transforms/sums.jl")
include("transforms/optimize.jl")

include("ffi/FFI.jl")

include("codegen/generator.jl")
include("codegen/loops.jl")
include("codegen/inland.jl")
include("codegen/parallel.jl")
include("codegen/guard.jl")
include("codegen/plan.jl")
include("codegen/emit.jl")
include("codegen/in_place.jl")
include("codegen/elements.jl")
include("codegen/rows.jl")
include("codegen/control.jl")
include("codegen/passes.jl")
include("codegen/kernels/routines/Routines.jl")
include("codegen/kernels/dot.jl")
include("codegen/kernels/matrix_products.jl")
include("codegen/kernels/cumulative.jl")
include("codegen/kernels/sorting.jl")
include("codegen/kernels/bitcast.jl")
include("codegen/kernels/gather.jl")
include("codegen/kernels/scatter.jl")
include("codegen/kernels/reduce_window.jl")
include("codegen/kernels/convolution.jl")
include("codegen/kernels/fourier.jl")
include("codegen/kernels/linear_algebra.jl")
include("codegen/kernels/reflections.jl")
include("codegen/kernels/decompositions.jl")
include("codegen/kernels/threefry.jl")
include("transforms/recompute.jl")
include("transforms/min_cut.jl")
include("transforms/records.jl")
include("transforms/roll.jl")
include("codegen/flatten.jl")
include("codegen/hoist.jl")
include("codegen/add_window.jl")
include("codegen/layout.jl")
include("codegen/intrinsics.jl")
include("codegen/assemble.jl")
include("codegen/compile.jl")
include("codegen/linked.jl")
include("codegen/plain.jl")

include("tokens.jl")
include("parse.jl")
include("print.jl")
include("serve.jl")
include("ffi/serve.jl")
include("functions/Functions.jl")
include("functions/serve.jl")
include("codegen/derived.jl")
include("workload.jl")

end
