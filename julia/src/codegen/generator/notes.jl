# What is noted while code is made, for `explain` (codegen/explain.jl).

abstract type Notes end
"Nothing is noted: nobody asks."
struct NoNotes <: Notes end
"""
What was made, in order, each with how deeply its Program is nested: a `Plan`, its stages,
their `LoopNote`s."""
mutable struct PlanNotes <: Notes
    depth::Int
    entries::Vector{Tuple{Int,Any}}
end
PlanNotes() = PlanNotes(0, [])

"A loop nest, and into how many chunks its first axis is cut."
struct LoopNote
    chunks::Int
end

note!(::NoNotes, x) = nothing
note!(n::PlanNotes, x) = (push!(n.entries, (n.depth, x)); nothing)
"`f()` makes the code of a nested Program."
nested(@nospecialize(f), ::NoNotes) = f()
function nested(f, n::PlanNotes)
    n.depth += 1
    try
        f()
    finally
        n.depth -= 1
    end
end
