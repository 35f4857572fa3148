# What is the same in every trip of a while loop, or of passes over its trips (scan_passes.jl has
# the same of scans): a carry that no trip changes is a constant, and what a broadcast gives is
# broadcast inside.

function loop_constants(::While, eqn, definition)
    before = as_passes(eqn)
    passes, copies = with_constants(before, definition)
    passes === before && return [eqn]
    attrs = while_attrs(eqn, passes[:cond_consts], passes[:consts], passes[:cond],
        only(passes[:passes]))
    [Equation(eqn.op, passes.inputs, passes.outputs, attrs, eqn.source); copies]
end
function loop_constants(::Passes, eqn, definition)
    passes, copies = with_constants(eqn, definition)
    [passes; copies]
end

function with_constants(eqn, definition)
    eqn, copies = without_unchanged_carries(eqn.op, eqn)
    broadcast_in_passes(eqn, definition), copies
end

function without_unchanged_carries(::Passes, eqn)
    cond_consts, consts, carries = pass_parts(eqn.attrs, eqn.inputs)
    own = [input_lists(eqn.attrs, j, body.inputs) for (j, body) in enumerate(eqn[:passes])]
    same = [Bool[v === a for (v, a) in zip(o[2], body.outputs)]
            for (o, body) in zip(own, eqn[:passes])]
    # A loop in which nothing decides when it ends is left as it is.
    any(any, same) && !all(same[1]) || return eqn, Equation[]
    changed, unchanged = map(s -> .!s, same), join_lists([c[s] for (c, s) in zip(carries, same)])
    bodies = map(eachindex(own)) do j
        fixed = [i == j ? own[i][2][s] : fresh(own[i][2][s]) for (i, s) in enumerate(same)]
        results = eqn[:passes][j].outputs
        with(eqn[:passes][j];
            inputs = vcat(own[j][1], fixed..., own[j][2][changed[j]], own[j][3:end]...),
            outputs = results[vcat(changed[j], trues(length(results) - length(same[j])))])
    end
    c = length(cond_consts)
    tested = same[1] .& used_inputs(eqn[:cond])[c+1:end]
    cond_inputs = eqn[:cond].inputs
    cond = with(eqn[:cond]; inputs = vcat(cond_inputs[1:c], cond_inputs[c+1:end][tested],
        cond_inputs[c+1:end][changed[1]]))
    isunchanged = join_lists(same)
    copies = [
        Equation(primitive(:copy), Atom[a], Var[v], NO_ATTRIBUTES, eqn.source)
        for (a, v) in zip(unchanged, eqn.outputs[isunchanged])
    ]
    carried = [list[mask] for (list, mask) in zip(carries, changed)]
    inputs = vcat(cond_consts, carries[1][tested], consts, unchanged, carried...)
    (with(eqn; inputs = inputs, outputs = eqn.outputs[.!isunchanged],
        attrs = pass_attrs(eqn, c + count(tested), length(consts) + length(unchanged),
            map(length, carried), cond, bodies)), copies)
end

function broadcast_in_passes(eqn, definition)
    cond_consts, consts, carries = pass_parts(eqn.attrs, eqn.inputs)
    source = [smaller_source(definition, a) for a in consts]
    all(isnothing, source) && return eqn
    operands = Tuple{Atom,Var}[]
    bodies = map(eqn[:passes]) do body
        b = Builder(Equation[], eqn.source)
        operands = Tuple{Atom,Var}[]
        for (a, v, e) in zip(consts, body.inputs, source)
            e === nothing ? push!(operands, (a, v)) : broadcast_to!(operands, b, v, e, e[:dims])
        end
        with(body; inputs = vcat(Var[v for (_, v) in operands], body.inputs[length(consts)+1:end]),
            equations = vcat(b.equations, body.equations))
    end
    with(eqn; inputs = vcat(cond_consts, Atom[a for (a, _) in operands], carries...),
        attrs = pass_attrs(eqn, length(cond_consts), length(operands), eqn[:carry], eqn[:cond],
            bodies))
end
