# The loop of Moses & Churavy, "Instead of Rewriting Foreign Code for Machine Learning,
# Automatically Synthesize Fast Gradients" (NeurIPS 2020, figure 1): each element is divided by the
# norm of all of them, which is written inside of the loop.

"""
One trip after another, n of them, and n multiplications in each: n² on paper. The
elements are a tuple."""
function normalize!(out, x, ::Val{n}) where {n}
    elements = only(reinterpret(NTuple{n,eltype(x)}, x))
    for i in 1:n
        @inbounds out[i] = elements[i] / norm(elements)
    end
end

# LLVM takes `norm` out of the loop if it knows three things. Nothing that the loop writes may
# change the elements: a tuple is a value, while for all that LLVM knows a vector could share its
# memory with `out`. The norm may not throw: `sqrt` of a negative number does, but not under
# `@fastmath`. And it may hold neither loop nor call, since what is moved is instructions: so the
# sum is written out, as StaticArrays does it.
@generated function norm(x::NTuple{n,T}) where {n,T}
    terms = (:(total += x[$i]^2) for i in 1:n)
    quote
        $(Expr(:meta, :inline))
        total = zero(T)
        $(terms...)
        @fastmath sqrt(total)
    end
end

"The same for vectors, which nothing takes out of the loop, as the comment above explains."
function normalize_vector!(out, x)
    for i in eachindex(x)
        @inbounds out[i] = x[i] / norm(x)
    end
end
norm(x::AbstractVector) = sqrt(sum(abs2, x))
