"""
    Routines

What kernels call rather than write out: functions over memory, compiled once for each element type.
They allocate nothing, throw nothing and call nothing of Julia's runtime. Arrays are row-major;
sizes, strides and positions count elements, from 0.
"""
module Routines

# Loops over arrays, whatever the latency that the package around chose.
Base.Experimental.@optlevel 3

using ..FFI: @call_address
using ..JaxprAD: stored, working, accumulator, precedes, total_order, LONGEST_RUN, SHORT_RUN,
    RUNNING_BLOCK, TILED_BYTES, FETCHED_BYTES, OPAQUE_POINTERS, llvm_function

@inline at(p::Ptr, i::Int) = unsafe_load(p, i + 1)
@inline put!(p::Ptr{T}, x, i::Int) where {T} = unsafe_store!(p, stored(T, x), i + 1)

"""
    @vector for i in a:b … end

A loop whose trips do not depend on each other, for LLVM to make vectors of. (`@simd` counts trips
with a check that throws.)"""
macro vector(loop)
    variable, range = loop.args[1].args
    quote
        local k, stop = $(esc(range.args[2])), $(esc(range.args[3])) + 1
        while k < stop      # not <=, which for LLVM may hold for ever
            let $(esc(variable)) = k
                $(esc(loop.args[2]))
            end
            k += 1
            $(Expr(:loopinfo, Symbol("julia.simdloop"), Symbol("julia.ivdep")))
        end
    end
end

# Julia's own divisions throw for a zero divisor, which these never have.
@inline quotient(a::Int, b::Int) = Base.sdiv_int(a, b)
@inline remainder(a::Int, b::Int) = Base.srem_int(a, b)
@inline floor_quotient(a::Int, b::Int) =
    (q = quotient(a, b); ifelse((remainder(a, b) != 0) & ((a < 0) != (b < 0)), q - 1, q))

include("cumulative.jl")
include("order.jl")
include("sorting.jl")
include("windows.jl")
include("convolution.jl")
include("tiles.jl")
include("row_products.jl")
include("matrix_vector.jl")
include("fortran.jl")
include("image_matrix.jl")
include("tiled_convolution.jl")
include("fourier.jl")
include("matrices.jl")
include("triangular.jl")
include("reflections.jl")

end
