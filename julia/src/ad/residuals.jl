# The residuals of linearizations and VJPs: what the later half of a Program needs of the earlier,
# but for what is cheap, which it computes again. Passes then make them fewer (loop_residuals.jl,
# rematerialize.jl, preaccumulate.jl); what a checkpoint keeps is in checkpoints.jl.

"""
The late equations with the known ones to be repeated that they need copied in front, and the
variables they still need."""
function close_over!(late, outputs, early, available)
    producer, inputless = IdDict{Var,Equation}(), VarSet()
    for e in early
        # additions and products of indices
        known = isfusable(e.op, e) && cost(e.op, e) <= 1 &&
            all(a -> a isa Literal || a in inputless, e.inputs)
        known |= ischeap(e.op) && isempty(e.inputs)
        known && union!(inputless, e.outputs)
        known || ischeap(e.op) || continue
        foreach(v -> producer[v] = e, e.outputs)
    end
    copied, seen, residuals = Equation[], VarSet(), Var[]
    function need(a)
        (a isa Var && a in available && !(a in seen)) || return
        push!(seen, a)
        haskey(producer, a) || return (push!(residuals, a); nothing)
        e = producer[a]
        foreach(need, e.inputs)
        push!(copied, e)
        union!(seen, e.outputs)
        nothing
    end
    for e in late
        foreach(need, e.inputs)
    end
    foreach(need, outputs)
    vcat(copied, late), residuals
end
