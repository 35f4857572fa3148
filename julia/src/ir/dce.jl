# Dead code elimination.

"The equations without those that `outputs` do not depend on, in order."
function live_equations(equations, outputs)
    live, kept = VarSet(), sizehint!(Equation[], length(equations))
    mark(atoms) =
        for a in atoms
            a isa Var && push!(live, a)
        end
    mark(outputs)
    for e in Iterators.reverse(equations)
        check_cancelled()
        used = count(v -> v in live, e.outputs)
        if used == length(e.outputs)
            mark(e.inputs)
            push!(kept, e)
        elseif used > 0
            for pruned in Iterators.reverse(prune(e.op, e, Bool[v in live for v in e.outputs]))
                mark(pruned.inputs)
                push!(kept, pruned)
            end
        end
    end
    reverse!(kept)
end

"The Program without equations that its results do not depend on."
dce(p::Program) = with(p; equations = live_equations(p.equations, p.outputs))

"The Program restricted to the results marked in `used`, dead code removed."
select_outputs(p::Program, used) = dce(with(p; outputs = p.outputs[used]))

"Which inputs a Program's results depend on."
function used_inputs(p::Program)
    live = VarSet(a for e in p.equations for a in e.inputs if a isa Var)
    for a in p.outputs
        a isa Var && push!(live, a)
    end
    Bool[v in live for v in p.inputs]
end

"""
As `emit!`, without the operands that the attributes' Programs do not read. A tangent that is not
read may be one that cannot be computed: of a custom_vjp call."""
function emit_pruned!(b::Builder, @nospecialize(op::Primitive), inputs, attrs)
    outputs = emit!(b, op, inputs, attrs)
    b.equations[end] = only_one(prune(op, b.equations[end], trues(length(outputs))))
    outputs
end
