# What takes over an operand's memory comes after all that reads the operand: an indexed update of
# an array that later equations read needs a copy of it, and after them none.

"""
    overwrite_late(program) -> Program

The same Program, in which equations that may overwrite an operand stand as late as their results
allow."""
function overwrite_late(p::Program)
    made, waiting = Equation[], Equation[]
    for e in p.equations
        e = map_bodies(overwrite_late, e)
        if overwrites(e.op, e) > 0
            push!(waiting, e)
        else
            write_needed!(made, waiting, e.inputs)
            push!(made, e)
        end
    end
    with(p; equations = append!(made, waiting))
end

"Moves the equations that make these atoms, and what those need, from the one list to the other."
function write_needed!(made, waiting, atoms)
    isempty(waiting) && return
    needed = VarSet(a for a in atoms if a isa Var)
    now = falses(length(waiting))
    for k in reverse(eachindex(waiting))
        any(v -> v in needed, waiting[k].outputs) || continue
        now[k] = true
        union!(needed, (a for a in waiting[k].inputs if a isa Var))
    end
    append!(made, waiting[now])
    deleteat!(waiting, now)
end
