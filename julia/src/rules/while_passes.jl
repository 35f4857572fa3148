# while_passes: a while loop that leaves records of its trips, and passes over the same trips that
# read them. It is what a while loop becomes in reverse mode when nobody knows beforehand how often
# it runs: the first pass runs the loop again, the second goes back over it (Griewank & Walther,
# Evaluating Derivatives, 2nd ed., 2008, chapter 12, with the loop's inputs as the one checkpoint).
# A transpose of this again has four passes, and so on: passes of odd number go forwards, the others
# backwards.
#
#     pass 1: while cond(cond_consts, carry): carry, records = body(consts, carry)
#     pass j: for each trip:                  carry, records = body(consts, carry, earlier)
#
# where `earlier` are that trip's records from passes 1 … j-1.
#
# `bound`, the most trips that there are, or nothing, is for XLA, which has no memory that grows.

@primitive Passes while_passes(cond_consts, consts, carry, bound, cond, passes)
required_attributes(op::Passes) = filter(!=(:bound), attributes(op))    # texts of before have none
declared_attributes(::Passes, attrs, types) = merge(Attributes(:bound => nothing), attrs)

"""
A list in operand order cut into the condition's constants, the bodies' constants, and a list of
carries for each pass."""
function pass_parts(attrs, list)
    c, k = attrs[:cond_consts], attrs[:consts]
    list[1:c], list[c+1:c+k], cut(list[c+k+1:end], attrs[:carry])
end
"A list cut into lists of so many each."
cut(list, counts) = [list[e-n+1:e] for (e, n) in zip(cumsum(counts), counts)]
join_lists(lists) = reduce(vcat, lists)
record_counts(attrs) =
    Int[length(body.outputs) - m for (body, m) in zip(attrs[:passes], attrs[:carry])]
"""
A list in the order of a body's inputs cut into constants, carries, and records of
each earlier pass."""
input_lists(attrs, j, list) =
    cut(list, vcat(attrs[:consts], attrs[:carry][j], record_counts(attrs)[1:j-1]))

pass_attrs(like, cond_consts, consts, carry, cond, passes) = Attributes(
    :cond_consts => cond_consts, :consts => consts, :carry => Vector{Int}(carry),
    :bound => like[:bound], :cond => cond, :passes => Vector{Program}(passes))

"The while loop as a single pass."
as_passes(eqn) =
    with(eqn; op = Passes(),
        attrs = pass_attrs(Attributes(:bound => trip_bound(eqn)), eqn[:cond_consts],
            eqn[:body_consts], [length(eqn.outputs)], eqn[:cond], [eqn[:body]]))

function infer(op::Passes, types, attrs)
    length(attrs[:carry]) == length(attrs[:passes]) > 0 ||
        infer_error(op, "needs as many numbers of carries as passes")
    attrs[:cond_consts] + attrs[:consts] + sum(attrs[:carry]) == length(types) ||
        infer_error(op, "the numbers of operands do not add up")
    cond_consts, consts, carries = pass_parts(attrs, types)
    check_operands(op, attrs[:cond], vcat(cond_consts, carries[1]))
    results_of(attrs[:cond]) == [TensorType(Bool)] ||
        infer_error(op, "the condition must give one bool[]")
    records = TensorType[]
    for (body, carry) in zip(attrs[:passes], carries)
        check_operands(op, body, vcat(consts, carry, records))
        results, m = results_of(body), length(carry)
        length(results) >= m && results[1:m] == carry ||
            infer_error(op, "a pass changes its carry's types")
        append!(records, results[m+1:end])
    end
    join_lists(carries)
end

function evaluate(::Passes, x, attrs, types)
    cond_consts, consts, carries = pass_parts(attrs, x)
    tape = Vector{Any}[]
    function trip!(j, records)
        y, m = evaluate(attrs[:passes][j], vcat(consts, carries[j], records)), length(carries[j])
        carries[j] = y[1:m]
        append!(records, y[m+1:end])
    end
    while evaluate(attrs[:cond], vcat(cond_consts, carries[1]))[1][]
        push!(tape, trip!(1, Any[]))
    end
    for j in 2:length(carries)
        foreach(records -> trip!(j, records), iseven(j) ? reverse(tape) : tape)
    end
    join_lists(carries)
end

function jvp(op::Passes, b, eqn, x, ẋ)
    cond_consts, consts, carries = pass_parts(eqn.attrs, x)
    _, ċonsts, ċarries = pass_parts(eqn.attrs, ẋ)
    # of the constants, then of each pass's records
    active, bodies = [isactive(ċonsts)], Program[]
    active_carries = map(isactive, ċarries)
    for (j, body) in enumerate(eqn[:passes])
        m = length(active_carries[j])
        local forward_body, has
        while true      # a carry that gets a tangent in the body has one from the start
            wanted = vcat(active_carries[j], falses(length(body.outputs) - m))
            forward_body, has = forward(body,
                vcat(active[1], active_carries[j], active[2:end]...), wanted)
            has[1:m] == active_carries[j] && break
            active_carries[j] = has[1:m]
        end
        inputs, outputs = (forward_body.inputs,
            cut(forward_body.outputs,
                [m, length(has) - m, count(active_carries[j]), count(has[m+1:end])]))
        n, counts = (length(body.inputs),
            map(count, vcat([active[1], active_carries[j]], active[2:end])))
        push!(bodies,
            with(forward_body;
                inputs = weave(input_lists(eqn.attrs, j, inputs[1:n]),
                    cut(inputs[n+1:end], counts)),
                outputs = join_lists(outputs[[1, 3, 2, 4]])))
        push!(active, has[m+1:end])
    end
    cond = with(eqn[:cond];
        inputs = vcat(eqn[:cond].inputs,
            Var[Var(aval(v)) for (v, a) in zip(carries[1], active_carries[1]) if a]))
    starts = [
        Atom[instantiate(b, t, v) for (t, v, a) in zip(ċ, c, mask) if a]
        for (ċ, c, mask) in zip(ċarries, carries, active_carries)
    ]
    counts = map(length, carries) .+ map(count, active_carries)
    y = emit!(b, op, vcat(cond_consts, consts, given(ċonsts), weave(carries, starts)),
        pass_attrs(eqn, length(cond_consts), length(consts) + count(active[1]), counts, cond,
            bodies))
    results = cut(y, counts)
    primal = [r[1:length(c)] for (r, c) in zip(results, carries)]
    tangent = [spread(mask, r[length(mask)+1:end]) for (r, mask) in zip(results, active_carries)]
    join_lists(primal), join_lists(tangent)
end

"The split of each pass's body, and masks of each pass's known carries and records."
function split_passes(eqn, known)
    _, consts, carries = pass_parts(eqn.attrs, known)
    records, splits = Vector{Bool}[], Split[]
    for (j, body) in enumerate(eqn[:passes])
        m = length(carries[j])
        local split
        while true      # a carry whose next value is unknown is unknown from the start
            waiting = vcat(.!carries[j], falses(length(body.outputs) - m))
            split = partial_eval(body, vcat(consts, carries[j], records...), waiting)
            split.isknown[1:m] == carries[j] && break
            carries[j] = split.isknown[1:m]
        end
        push!(records, split.isknown[m+1:end])
        push!(splits, split)
    end
    splits, carries, records
end

"The condition for the known carries, and its known constants; nothing where it needs others."
function known_condition(eqn, known, carry)
    kept = vcat(pass_parts(eqn.attrs, known)[1], carry)
    cond = dce(eqn[:cond])
    all(kept[used_inputs(cond)]) ? copy_program(with(cond; inputs = cond.inputs[kept])) : nothing
end

function partial_eval(op::Passes, eqn, known)
    splits, carries, _ = split_passes(eqn, known)
    cond = known_condition(eqn, known, carries[1])
    cond !== nothing && any(any, carries) || return Equation[], [eqn]
    # As with a while loop the known passes run alone first, and all of them again, later.
    known_consts = pass_parts(eqn.attrs, known)[1:2]
    bodies =
        [
            select_outputs(s.known,
                eachindex(s.known.outputs) .<= length(s.known.outputs) - s.residuals) for
            s in splits
        ]
    isknown = join_lists(carries)
    early = Equation(op, eqn.inputs[vcat(known_consts..., isknown)], eqn.outputs[isknown],
        pass_attrs(eqn, map(count, known_consts)..., map(count, carries), cond, bodies), eqn.source)
    late = with(eqn; outputs = Var[k ? Var(aval(v)) : v for (v, k) in zip(eqn.outputs, isknown)])
    [early], all(isknown) ? Equation[] : [late]
end

function prune(op::Passes, eqn, used)
    cond_consts, consts, _ = pass_parts(eqn.attrs, trues(length(eqn.inputs)))
    cond_uses = used_inputs(dce(eqn[:cond]))[length(cond_consts)+1:end]
    needed, records = cut(used, eqn[:carry]), [falses(n) for n in record_counts(eqn.attrs)]
    needed[1] = needed[1] .| cond_uses
    kept_consts, bodies = falses(length(consts)), similar(eqn[:passes])
    for j in reverse(eachindex(bodies))
        while true
            bodies[j] = select_outputs(eqn[:passes][j], vcat(needed[j], records[j]))
            live = input_lists(eqn.attrs, j, used_inputs(bodies[j]))
            if all(needed[j] .| .!live[2])
                kept_consts .|= live[1]
                foreach((r, l) -> r .|= l, records, live[3:end])
                break
            end
            needed[j] = needed[j] .| live[2]
        end
    end
    all(all, needed) && return [eqn]
    trimmed =
        [
            copy_program(
                with(body;
                    inputs = body.inputs[vcat(kept_consts, needed[j], records[1:j-1]...)])
            ) for (j, body) in
            enumerate(bodies)
        ]
    cond = with(eqn[:cond]; inputs = eqn[:cond].inputs[vcat(cond_consts, needed[1])])
    isneeded = join_lists(needed)
    kept =
        Equation(op, eqn.inputs[vcat(cond_consts, kept_consts, isneeded)], eqn.outputs[isneeded],
            pass_attrs(eqn, length(cond_consts), count(kept_consts), map(count, needed), cond,
                trimmed), eqn.source)
    [kept]
end
