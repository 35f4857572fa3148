"""
    JaxprAD

JAX-style automatic differentiation on Programs: typed, single-assignment equations over a closed
set of primitives. A forward rule per primitive (`jvp`), a split into known and linear parts
(`linearize`) and a transpose rule for each primitive that can be linear; reverse mode is
`transpose ∘ linearize`. Standard library only; Julia 1.5 and newer.
"""
module JaxprAD

using InteractiveUtils: InteractiveUtils, code_llvm
using LinearAlgebra
using Libdl
using Random: Random, AbstractRNG, MersenneTwister
using SHA: SHA

# Rules and transforms are symbolic code, run once a Program: compile latency
# matters, not their speed.
Base.Experimental.@optlevel 1

export Program, parse_program, jvp, linearize, vjp, optimize, evaluate, typecheck
export trace, select, while_loop, scan, linear_transpose, gradient, value_and_gradient, jacobian,
    hessian, hvp, vmap, jit, custom_jvp, custom_vjp, save, load
export check_derivatives, failures, @test_derivatives

# The layers, from below. What each may know of the others is in test/layers.jl,
# which holds them to it.

# Programs: types, equations, text. Knows no derivative and no machine.
include("ir/errors.jl")
include("ir/cancellation.jl")
include("ir/bfloat16.jl")
include("ir/dtypes.jl")
include("ir/numbers.jl")
include("ir/dims.jl")
include("ir/program.jl")
include("ir/primitive.jl")
include("ir/builder.jl")
include("ir/scalars.jl")
include("ir/inline.jl")
include("ir/dce.jl")
include("ir/attributes.jl")
include("ir/typecheck.jl")
include("ir/evaluate.jl")
include("ir/tokens.jl")
include("ir/parse.jl")
include("ir/print.jl")

# What a primitive may implement; what computing costs; what is large.
include("interface.jl")
include("costs.jl")
include("tuning.jl")

# Functions of Float32 and Float64, a module of their own.
include("math/NumberMath.jl")

# XLA's foreign function interface, a module of its own.
include("ffi/FFI.jl")
using .FFI: ALIGNMENT, parallel_for

# Derivatives of Programs, by the interface alone.
include("ad/remembered.jl")
include("ad/preaccumulate.jl")
include("ad/jvp.jl")
include("ad/residuals.jl")
include("ad/partial_eval.jl")
include("ad/checkpoints.jl")
include("ad/linearize.jl")
include("ad/transpose.jl")
include("ad/vjp.jl")

# Programs to Programs that do the same; pipeline.jl has the order.
include("passes/simplify.jl")
include("passes/factor_sums.jl")
include("passes/reroll_loops.jl")
include("passes/merge_loops.jl")
include("passes/merge_pieces.jl")
include("passes/rematerialize.jl")
include("passes/loop_residuals.jl")
include("passes/pack_loop_residuals.jl")
include("passes/flatten_calls.jl")
include("passes/absorb_transposes.jl")
include("passes/static_windows.jl")
include("passes/hoist_invariants.jl")
include("passes/add_in_place.jl")
include("passes/begin_sums.jl")
include("passes/overwrite_late.jl")
include("passes/reorder_carries.jl")
include("passes/transpose_records.jl")
include("passes/transpose_stacks.jl")
include("passes/structures_of_arrays.jl")
include("passes/layout_groups.jl")
include("passes/assign_layouts.jl")
include("passes/contract_products.jl")
include("passes/share_reciprocals.jl")
include("passes/divide_parts.jl")
include("passes/pipeline.jl")

# The primitives, a file a family: type, value, JVP, transpose, and what passes may ask.
include("rules/arrays.jl")
include("rules/bodies.jl")
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
include("rules/creation.jl")
include("rules/threefry.jl")
include("rules/remat.jl")
include("rules/custom.jl")
include("rules/linear_solve.jl")
include("rules/cond.jl")
include("rules/scan.jl")
include("rules/scan_residuals.jl")
include("rules/scan_passes.jl")
include("rules/scan_sums.jl")
include("rules/while.jl")
include("rules/while_passes.jl")
include("rules/while_passes_transpose.jl")
include("rules/while_constants.jl")
include("rules/window_orders.jl")
include("rules/axis_orders.jl")
include("rules/identities.jl")
include("rules/repeats.jl")

# Native code; compile.jl has the stages.
include("codegen/plan/plan.jl")
include("codegen/plan/materialization.jl")
include("codegen/plan/fusion.jl")
include("codegen/generator/processor.jl")
include("codegen/generator/target.jl")
include("codegen/generator/storage.jl")
include("codegen/generator/arena.jl")
include("codegen/generator/notes.jl")
include("codegen/generator/generator.jl")
include("codegen/generator/frame.jl")
include("codegen/nest/affine.jl")
include("codegen/nest/body.jl")
include("codegen/nest/nest.jl")
include("codegen/nest/loop_order.jl")
include("codegen/nest/lanes.jl")
include("codegen/nest/fast_path.jl")
include("codegen/nest/interior.jl")
include("codegen/nest/rows.jl")
include("codegen/nest/loops.jl")
include("codegen/nest/vectors/instructions.jl")
include("codegen/nest/vectors/elements.jl")
include("codegen/nest/vectors/functions.jl")
include("codegen/nest/vectors/sums.jl")
include("codegen/nest/vectors/small_nests.jl")
include("codegen/nest/vectors/carries.jl")
include("codegen/nest/sum_blocks.jl")
include("codegen/nest/parallel.jl")
include("codegen/lower/program.jl")
include("codegen/lower/donation.jl")
include("codegen/lower/kernel_code.jl")
include("codegen/lower/kernel.jl")
include("codegen/lower/assemble_vectors.jl")
include("codegen/lower/intrinsics.jl")
include("codegen/lower/outline_functions.jl")
include("codegen/lower/share_functions.jl")
include("codegen/lower/outline_bodies.jl")
include("codegen/lower/load.jl")
include("codegen/kernels/elementwise.jl")
include("codegen/kernels/movement.jl")
include("codegen/kernels/add_window.jl")
include("codegen/kernels/item_blocks.jl")
include("codegen/kernels/control.jl")
include("codegen/kernels/while_passes.jl")
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
include("codegen/calls/specialization.jl")
include("codegen/calls/llvm.jl")
include("codegen/calls/inferred.jl")
include("codegen/calls/check.jl")
include("codegen/compile.jl")
include("codegen/objects/llvm.jl")
include("codegen/objects/module_text.jl")
include("codegen/objects/outside.jl")
include("codegen/objects/parts.jl")
include("codegen/objects/object_file.jl")
include("codegen/objects/routines.jl")
include("codegen/objects/host.jl")
include("codegen/objects/library.jl")
include("codegen/explain.jl")

# A user's Julia functions as JAX functions, a module of its own.
include("functions/Functions.jl")

# Programs as functions that Enzyme.jl differentiates; ../ext has what needs Enzyme.
include("enzyme/opaque_regions.jl")
include("enzyme/plain_functions.jl")
include("enzyme/number_derivatives.jl")
include("enzyme/program_derivatives.jl")

# Julia functions as Programs, and the transforms as functions of functions.
include("tracing/errors.jl")
include("tracing/sources.jl")
include("tracing/recording.jl")
include("tracing/random.jl")
include("tracing/numbers.jl")
include("tracing/angles.jl")
include("tracing/complex_numbers.jl")
include("tracing/arrays.jl")
include("tracing/indexing.jl")
include("tracing/broadcasting.jl")
include("tracing/reductions.jl")
include("tracing/shapes.jl")
include("tracing/products.jl")
include("tracing/fourier.jl")
include("tracing/factorizations.jl")
include("tracing/trees.jl")
include("tracing/trace.jl")
include("tracing/control.jl")
include("tracing/transforms.jl")
include("tracing/custom.jl")
include("tracing/matrix_functions.jl")
include("tracing/vmap.jl")
include("tracing/jit.jl")
include("tracing/globals.jl")
include("tracing/in_32_bits.jl")
include("tracing/described.jl")

# Programs in files, and those of other languages as Julia functions.
include("archive/trees.jl")
include("archive/signatures.jl")
include("archive/format.jl")
include("archive/sizes.jl")
include("archive/load.jl")
include("archive/save.jl")

# What extensions bring, and what other AD systems have rules of.
include("packages/brought.jl")
include("packages/ruled.jl")

# Derivatives in a user's tests, a module of its own.
include("testing/Testing.jl")
using .Testing: check_derivatives, failures, @test_derivatives

# Requests and their answers, for other languages.
include("serve/serve.jl")
include("serve/programs.jl")
include("serve/buffers.jl")
include("serve/rules.jl")
include("serve/compile.jl")
include("serve/functions.jl")
include("serve/enzyme.jl")
include("serve/workload.jl")

# Addresses are of a process: an image has those of the one that made it.
__init__() = foreach(empty!, (SOURCES, BLAS_SYMBOLS))

end
