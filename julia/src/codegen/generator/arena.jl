# The workspace: one block of memory a kernel, its parts given out at compile time
# and reused once free.

mutable struct Arena
    free::Vector{UnitRange{Int}}    # gaps below `top`, in order
    top::Int
    peak::Int
    reuses::Bool                    # whether a part may be given out again
end
Arena(; reuses = true) = Arena(UnitRange{Int}[], 0, 0, reuses)

"A part of the workspace: byte positions from 0."
const Part = UnitRange{Int}

function allocate!(a::Arena, bytes::Int)::Part
    n = max(cld(bytes, ALIGNMENT), 1) * ALIGNMENT
    k = findfirst(gap -> length(gap) >= n, a.free)
    if k === nothing
        part = a.top:a.top+n-1
        a.top += n
        a.peak = max(a.peak, a.top)
        return part
    end
    gap = a.free[k]
    length(gap) == n ? deleteat!(a.free, k) : (a.free[k] = first(gap)+n:last(gap))
    first(gap):first(gap)+n-1
end

function release!(a::Arena, part::Part)
    a.reuses || return
    k = searchsortedfirst(a.free, part; by = first)
    insert!(a.free, k, part)
    k < length(a.free) && last(part) + 1 == first(a.free[k+1]) && merge_gaps!(a.free, k)
    k > 1 && last(a.free[k-1]) + 1 == first(part) && merge_gaps!(a.free, k - 1)
    if last(a.free[end]) + 1 == a.top
        a.top = first(pop!(a.free))
    end
end
merge_gaps!(free, k) = (free[k] = first(free[k]):last(free[k+1]); deleteat!(free, k + 1))
