# What a scan keeps of each trip for the linear loop, and in which form: as it stands, as a stack
# that the loop fills, or as a stack that another loop makes of less.

"""
The residuals of a loop. Of each, its `source`, `:constant` of the loop, `:slice` of an operand or
`:stack` of what the trips keep, and the operand of the linear loop that has it. `equations`: the
loop that is run early, unless it has no results, and what makes the operands."""
struct LoopResiduals
    source::Vector{Symbol}
    operands::Vector{Atom}
    equations::Vector{Equation}
end

"""
    loop_residuals(early, count, steps) -> LoopResiduals

Of a loop whose body gives, after the loop's own results, `count` residuals. `steps`: of each carry,
what a trip adds where it counts."""
function loop_residuals(early, count, steps)
    body, c = early[:body], early[:consts]
    results, residuals = body.outputs[1:end-count], body.outputs[end-count+1:end]
    b = Builder(Equation[], early.source)
    source, operands = fill(:stack, count), Vector{Atom}(undef, count)
    for (r, v) in enumerate(residuals)
        k = findfirst(u -> u === v, body.inputs)
        k === nothing && continue
        if k <= c
            source[r], operands[r] = :constant, early.inputs[k]
        elseif k > c + early[:carry]
            source[r], operands[r] = :slice, early.inputs[k]
        elseif steps[k-c] !== nothing
            source[r], operands[r] = :slice, counter_values!(b, early, early.inputs[k], steps[k-c])
        end
    end
    at = findall(==(:stack), source)
    stacks, equations =
        with_stacks(with(early; attrs = merge(early.attrs,
                Attributes(:body => with(body; outputs = results)))), Var[residuals[r] for r in at])
    operands[at] = stacks
    LoopResiduals(source, operands, vcat(equations, b.equations))
end

"The loop with stacks of what its body binds to `kept`, after its own results."
function with_stacks(early, kept)
    body, c, k = early[:body], early[:consts], early[:carry]
    stack(v) = Var(stacked(early[:length], aval(v)))
    stacks, filled_by_loop, inner, undone = Var[], Var[], Var[], Equation[]
    for v in kept
        push!(stacks, stack(v))
        j = findfirst(u -> u === v, body.inputs[c+1:c+k])
        updates = j === nothing ? nothing :
                  partial_updates(body, v, body.outputs[j], early[:length])
        parts = updates === nothing ? Var[v] : kept_parts(updates)
        outer = updates === nothing ? stacks[end:end] : map(stack, parts)
        append!(inner, parts)
        append!(filled_by_loop, outer)
        updates === nothing && continue
        body = reading_parts(body, updates)
        push!(undone, undo_loop(early, updates, early.outputs[j], outer, stacks[end]))
    end
    body = with(body; outputs = vcat(body.outputs, inner))
    loop = with(early; outputs = vcat(early.outputs, filled_by_loop),
        attrs = scan_attrs(early, body, c, k))
    stacks, isempty(loop.outputs) ? Equation[] : [loop; undone]
end

"""
What each trip adds to the carry `k`, if that begins at a number and counts trips, of which there
are no more than its type has numbers."""
function counter_step(eqn, k)
    body = eqn[:body]
    start, counter = eqn.inputs[eqn[:consts]+k], body.inputs[eqn[:consts]+k]
    start isa Literal && isinteger_dtype(typeof(start.value)) && eqn[:length] isa Int &&
        0 < eqn[:length] <= typemax(typeof(start.value)) || return nothing
    j = findfirst(e -> e.outputs[1] === body.outputs[k], body.equations)
    j !== nothing && name(body.equations[j].op) === :add || return nothing
    x = body.equations[j].inputs
    x[1] === counter && x[2] isa Literal ? x[2].value :
    x[2] === counter && x[1] isa Literal ? x[1].value : nothing
end

"The values of a counter in all trips, in the order of the slices."
function counter_values!(b, eqn, start, step)
    last_ = eqn[:length] - 1
    trips = emit(b, :iota; dtype = dtype_name(typeof(step)), shape = [last_ + 1], dim = 0)
    eqn[:reverse] && (trips = emit(b, :sub, Literal(oftype(step, last_)), trips))
    isone(step) || (trips = emit(b, :mul, trips, Literal(step)))
    iszero(start.value) ? trips : emit(b, :add, trips, start)
end

"""
The bytes that each carry takes where it is kept of each trip: none of a counter, whose numbers are
known beforehand (as constants and slices are there in any case); `nothing` where it is all."""
carry_bytes(body::Program, consts, steps, trips) =
    Union{Int,Nothing}[
        step === nothing ? part_bytes(body, body.inputs[consts+k], body.outputs[k], trips) : 0
        for (k, step) in enumerate(steps)
    ]
function part_bytes(body, before, after, trips)
    updates = partial_updates(body, before, after, trips)
    updates === nothing ? nothing : sum(v -> bytes(aval(v)), kept_parts(updates))
end

# ---- arrays of which a trip overwrites a part

"""
How a carry goes from a trip to the next: `updates`, each of what the one before gives, overwrite
parts of it. `read`: in front of each, what reads its part."""
struct PartialUpdates
    updates::Vector{Equation}
    read::Vector{Equation}
end

"""
The updates that make the body's result `after` of its carry `before`, or nothing: where all of it
may change, or the parts are not much smaller, or the stack of all trips is small or not much larger
than the array, so that it is simply kept."""
function partial_updates(body::Program, before::Var, after, trips)
    stack = Var(stacked(trips, aval(before)))
    islarge(stack) && ismuchsmaller(before, stack) || return nothing
    producer = IdDict{Var,Equation}(e.outputs[1] => e for e in body.equations)
    found = PartialUpdates(Equation[], Equation[])
    while after !== before
        e = after isa Var ? get(producer, after, nothing) : nothing
        e === nothing && return nothing
        b = Builder(Equation[], e.source)
        overwritten(e.op, b, e) === nothing && return nothing
        pushfirst!(found.updates, e)
        pushfirst!(found.read, only(b.equations))
        after = e.inputs[1]
    end
    stacked_parts = Var[v for v in kept_parts(found)]
    isempty(stacked_parts) || !all(v -> ismuchsmaller(v, before), stacked_parts) ? nothing : found
end

"What is kept of a trip: the parts that are overwritten, and where they are."
kept_parts(u::PartialUpdates) =
    unique(Var[v for e in u.read for v in vcat(e.outputs, e.inputs[2:end]) if v isa Var])

"The body with the parts read before they are overwritten."
function reading_parts(body::Program, u::PartialUpdates)
    read = IdDict{Equation,Equation}(zip(u.updates, u.read))
    with(body;
        equations = Equation[
            q for e in body.equations for q in (haskey(read, e) ? [read[e], e] : [e])
        ])
end

"""
The loop that runs the trips backwards and writes what was overwritten back, from the carry's last
value `last_`: it fills `stack` with the value that the carry has at the start of each trip.
`stacks`: of each of `kept_parts`. Exact, and cheap compared with the stack."""
function undo_loop(eqn, u::PartialUpdates, last_::Var, stacks, stack::Var)
    kept = kept_parts(u)
    body = build(eqn[:body].name, vcat([aval(last_)], map(aval, kept)); source = eqn.source) do b, v
        env = Environment(zip(kept, v[2:end]))
        value = v[1]
        for (e, read) in reverse(collect(zip(u.updates, u.read)))
            value = write_back(e.op, b, e, value, lookup(env, read.outputs[1]),
                Atom[lookup(env, a) for a in read.inputs[2:end]])
        end
        Atom[value, value]
    end
    Equation(eqn.op, vcat([last_], stacks), Var[Var(aval(last_)), stack],
        scan_attrs(eqn, body, 0, 1; reverse = !eqn[:reverse]), eqn.source)
end
