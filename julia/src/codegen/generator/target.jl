# What code is written for. Methods are for targets that want it otherwise than native kernels, as
# Enzyme does (`enzyme/plain_functions.jl`).

abstract type Target end
"A kernel that XLA calls, on a processor whose registers for vectors have so many bytes."
struct KernelTarget <: Target
    register::Int
end
KernelTarget() = KernelTarget(register_bytes(this_processor()))

register_bytes(t::KernelTarget) = t.register
register_bytes(::Target) = 32

"Whether memory may hold one array after another, and a result take the place of an operand."
reuses_memory(::Target) = true
"Whether several threads may share the work."
splits_work(::Target) = true
"Whether rows go in stretches of whole vectors."
cuts_rows(::Target) = true
"Whether small nests are instructions on vectors."
writes_vectors(::Target) = true
"Multiplications up to which a matrix product is loops in any case."
largest_looped_product(::Target) = TINY_PRODUCT
