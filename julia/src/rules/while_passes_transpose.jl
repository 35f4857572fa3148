# Backwards over the passes of a while loop: those that are there run again and record what the
# linear parts need, then come the linear parts' transposes, the last pass's first.

transpose(::While, b, eqn, ȳ, x) = transpose(Passes(), b, as_passes(eqn), ȳ, x)

function transpose(op::Passes, b, eqn, ȳ, x)
    known = Bool[!islinear(v) for v in x]
    splits, carry_known, record_known = split_passes(eqn, known)
    cond = known_condition(eqn, known, carry_known[1])
    cond === nothing &&
        throw(
            NotDifferentiable("whether a while loop goes on depends on what is transposed",
                eqn.source)
        )
    cond_consts, consts, carries = pass_parts(eqn.attrs, x)
    linear_consts = Bool[islinear(v) for v in consts]
    fixed, sums = consts[.!linear_consts], TensorType[aval(v) for v in consts[linear_consts]]
    recorded = recording_passes(splits, length(fixed), carry_known, record_known)
    k = length(splits)
    back = [transposed_pass(j, splits, recorded, map(aval, fixed), sums, record_known)
     for j in k:-1:1]

    givens = cut(ȳ, eqn[:carry])
    starts =
        [
            vcat(Atom[zeros_of(b, t) for t in sums],
                Atom[
                    instantiate(b, t, v) for
                    (t, v, a) in zip(givens[j], carries[j], carry_known[j])
                    if !a
                ]) for j in k:-1:1
        ]
    counts = vcat(map(count, carry_known), map(length, starts))
    known_carries = [carries[j][carry_known[j]] for j in 1:k]
    inputs = vcat([v for v in cond_consts if !islinear(v)], fixed, known_carries..., starts...)
    bodies = vcat([r.body for r in recorded], back)
    y = emit!(b, op, inputs,
        pass_attrs(eqn, count(!islinear, cond_consts), length(fixed), counts, cond, bodies))

    results = reverse(cut(y, counts)[k+1:end])
    totals = Atom[add_all(b, [r[i] for r in results]) for i in eachindex(sums)]
    x̄ = [spread(.!carry_known[j], results[j][length(sums)+1:end]) for j in 1:k]
    vcat(fill!(Vector{MaybeAtom}(undef, length(cond_consts)), nothing),
        spread(linear_consts, totals),
        MaybeAtom[islinear(v) ? t : nothing for (v, t) in zip(join_lists(carries), join_lists(x̄))])
end

"""
The known part of a pass with the records that later passes read. `sources` says for each residual
of the linear part where it is: (0, i) the constant i, (j, i) record i of pass j."""
struct Recording
    body::Program
    records::Vector{TensorType}
    sources::Vector{Tuple{Int,Int}}
end

function recording_passes(splits, consts, carry_known, record_known)
    made = Recording[]
    for (j, s) in enumerate(splits)
        m, n = count(carry_known[j]), count(record_known[j])
        inputs, results = s.known.inputs, s.known.outputs[1:m+n]
        place = IdDict{Var,Tuple{Int,Int}}(v => (0, i) for (i, v) in enumerate(inputs[1:consts]))
        earlier = cut(inputs[consts+m+1:end], map(count, record_known[1:j-1]))
        for (i, list) in enumerate(earlier), (q, v) in enumerate(list)
            place[v] = (i, q)
        end
        records = copy(results[m+1:end])
        foreach(q -> records[q] isa Var && get!(place, records[q], (j, q)), eachindex(records))
        for v in s.known.outputs[m+n+1:end]
            haskey(place, v) && continue
            push!(records, v)
            place[v] = (j, length(records))
        end
        sources = [place[v] for v in s.known.outputs[m+n+1:end]]
        # Earlier passes now leave more than this one knew of.
        unread = [Var[Var(t) for t in made[i].records[length(earlier[i])+1:end]] for i in 1:j-1]
        body = with(s.known;
            inputs = vcat(inputs[1:consts+m], (vcat(earlier[i], unread[i]) for i in 1:j-1)...),
            outputs = vcat(results[1:m], records))
        push!(made, Recording(body, TensorType[aval(v) for v in records], sources))
    end
    made
end

"""
The transpose of a pass's linear part. It carries the sums of the constants' cotangents, then those
of its carries; its records are the cotangents that it gives to the records of passes before it."""
function transposed_pass(j, splits, recorded, fixed, sums, record_known)
    s, k = splits[j], length(splits)
    unknown(i) =
        TensorType[aval(v) for v in splits[i].unknown.outputs[end-count(.!record_known[i])+1:end]]
    step = transpose(s.unknown, eachindex(s.unknown.inputs) .> s.residuals)
    carry = TensorType[aval(v) for v in s.unknown.outputs[1:end-count(.!record_known[j])]]
    # For each pass already transposed what it gave to each of its earlier ones.
    given_types = [join_lists(vcat([TensorType[]], [unknown(h) for h in 1:i-1])) for i in k:-1:j+1]
    lists = vcat([fixed, sums, carry], [r.records for r in recorded], given_types)
    build(step.name, join_lists(lists)) do b, v
        parts = cut(v, map(length, lists))
        values = vcat(parts[1:1], parts[4:k+3])     # the constants, then records
        gifts = [
            cut(g, [length(unknown(h)) for h in 1:i-1])[j]
            for (i, g) in zip(k:-1:j+1, parts[k+4:end])
        ]
        total(q, t) = isempty(gifts) ? zeros_of(b, t) : add_all(b, [g[q] for g in gifts])
        record_cotangents = Atom[total(q, t) for (q, t) in enumerate(unknown(j))]
        x̄ = inline!(b, step,
            vcat(Atom[values[i+1][q] for (i, q) in recorded[j].sources], parts[3],
                record_cotangents))
        vcat(Atom[emit(b, :add, t, u) for (t, u) in zip(parts[2], x̄)], x̄[length(sums)+1:end])
    end
end
add_all(b::Builder, terms) = reduce((s, t) -> emit(b, :add, s, t), terms)
