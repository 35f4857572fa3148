# cond: branches with the same operands and results, picked by an index (clamped to their range).

@primitive Cond cond(branches)

function infer(op::Cond, types, attrs)
    isempty(attrs[:branches]) && infer_error(op, "needs a branch")
    types[1] == TensorType(Int32) ||
        infer_error(op, "the index must be i32[], got $(type_text(types[1]))")
    for body in attrs[:branches]
        check_operands(op, body, types[2:end])
        results_of(body) == results_of(attrs[:branches][1]) ||
            infer_error(op, "the branches give different types")
    end
    results_of(attrs[:branches][1])
end

function evaluate(::Cond, x, attrs, types)
    branches = attrs[:branches]
    evaluate(branches[clamp(Int(x[1][]) + 1, 1, length(branches))], x[2:end])
end

branches_attr(bodies) = Attributes(:branches => Vector{Program}(bodies))

function jvp(op::Cond, b, eqn, x, ẋ)
    active = isactive(ẋ[2:end])
    # A result has a tangent when it has one in some branch; the others make their zeros explicit.
    has = reduce((u, v) -> u .| v, [forward(body, active)[2] for body in eqn[:branches]])
    bodies = [forward(body, active, has)[1] for body in eqn[:branches]]
    y = emit_pruned!(b, op, vcat(x, given(ẋ)), branches_attr(bodies))
    m = length(has)
    y[1:m], spread(has, y[m+1:end])
end

function partial_eval(op::Cond, eqn, known)
    known[1] || return Equation[], [eqn]
    known_operands = known[2:end]
    split(body, waiting) =
        with_operands(partial_eval(body, known_operands, waiting), known_operands)
    early, late, _, unknown = split_branches(split, eqn, known)
    any(unknown) || return early, Equation[]
    early, prune(op, with(late; outputs = eqn.outputs[unknown]), trues(count(unknown)))
end

function partial_eval_saving(op::Cond, eqn, known, depth)
    known[1] || return Equation[], [eqn], Var[]
    early, late, kept, _ = split_branches((body, waiting) ->
            partial_eval_saving(body, known[2:end], waiting, depth), eqn, known)
    early, [late], kept
end

"""
The known half of a cond, the half for later, what goes from the one to the other, and which results
are not known, being unknown in some branch. `split(body, unknown results)` splits a branch as
`partial_eval_saving` does."""
function split_branches(split, eqn, known)
    unknown = falses(length(eqn.outputs))
    for body in eqn[:branches]
        unknown = unknown .| .!split(body, unknown).isknown
    end
    splits = [split(body, unknown) for body in eqn[:branches]]
    slots = residual_slots(splits)
    residuals = Var[Var(t) for t in slots]
    early = Equation(eqn.op, eqn.inputs[known], vcat(eqn.outputs[.!unknown], residuals),
        branches_attr([known_branch(s, slots) for s in splits]), eqn.source)
    late = with(eqn; inputs = vcat(eqn.inputs[1], residuals, eqn.inputs[2:end]),
        attrs = branches_attr([unknown_branch(s, slots) for s in splits]))
    isempty(early.outputs) ? Equation[] : [early], late, residuals, unknown
end

"""
The split with a second half that takes all operands: what is one of the known
ones is no residual."""
function with_operands(s::Split, known)
    m = length(s.known.outputs) - s.residuals
    places = Any[findfirst(v -> v === r, s.known.inputs) for r in s.known.outputs[m+1:end]]
    operands = fresh(s.known.inputs)
    for (place, v) in zip(places, s.unknown.inputs)
        place === nothing || (operands[place] = v)
    end
    computed, others = findall(isnothing, places), s.unknown.inputs[s.residuals+1:end]
    all_operands = Var[k ? popfirst!(operands) : popfirst!(others) for k in known]
    Split(with(s.known; outputs = s.known.outputs[vcat(1:m, m .+ computed)]),
        with(s.unknown; inputs = vcat(s.unknown.inputs[computed], all_operands)),
        s.isknown, length(computed))
end

residual_types(s::Split) = TensorType[aval(v) for v in s.unknown.inputs[1:s.residuals]]

"""
One list of residual types that serves every branch: of each type as many as the
neediest branch has."""
function residual_slots(splits)
    slots = TensorType[]
    for s in splits, type in unique(residual_types(s))
        missing_slots = count(==(type), residual_types(s)) - count(==(type), slots)
        append!(slots, fill(type, max(0, missing_slots)))
    end
    slots
end

"For each slot the branch's residual that takes it, or nothing."
function slot_assignment(s::Split, slots)
    taken = Union{Int,Nothing}[nothing for _ in slots]
    for (r, type) in enumerate(residual_types(s))
        taken[findfirst(k -> slots[k] == type && taken[k] === nothing, eachindex(slots))] = r
    end
    taken
end

function known_branch(s::Split, slots)
    p = s.known
    b = Builder(copy(p.equations), "")
    m = length(p.outputs) - s.residuals
    residuals = Atom[
        r === nothing ? zeros_of(b, type) : p.outputs[m+r]
        for (r, type) in zip(slot_assignment(s, slots), slots)
    ]
    with(p; equations = b.equations, outputs = vcat(p.outputs[1:m], residuals))
end

function unknown_branch(s::Split, slots)
    p = s.unknown
    slot_inputs = Var[
        r === nothing ? Var(type) : p.inputs[r]
        for (r, type) in zip(slot_assignment(s, slots), slots)
    ]
    with(p; inputs = vcat(slot_inputs, p.inputs[s.residuals+1:end]))
end

function transpose(op::Cond, b, eqn, ȳ, x)
    islinear(x[1]) &&
        throw(NotDifferentiable("the index of a cond is not differentiable", eqn.source))
    linear = Bool[islinear(v) for v in x[2:end]]
    bodies = [transpose(body, linear, isactive(ȳ)) for body in eqn[:branches]]
    x̄ = emit!(b, op, vcat(Atom[v for v in x if !islinear(v)], given(ȳ)), branches_attr(bodies))
    vcat(MaybeAtom[nothing], spread(linear, x̄))
end

function prune(op::Cond, eqn, used)
    bodies = [copy_program(select_outputs(body, used)) for body in eqn[:branches]]
    needed = reduce((u, v) -> u .| v, map(used_inputs, bodies))
    bodies = [with(body; inputs = body.inputs[needed]) for body in bodies]
    [
        Equation(op, vcat(eqn.inputs[1], eqn.inputs[2:end][needed]), eqn.outputs[used],
            branches_attr(bodies), eqn.source)
    ]
end
