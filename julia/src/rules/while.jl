# while: a body run as long as a condition on the carry holds.

@primitive While var"while"(cond_consts, body_consts, bound, cond, body)

"A list in operand order cut into the condition's constants, the body's constants, and the carry."
function loop_parts(attrs, list)
    c, k = attrs[:cond_consts], attrs[:body_consts]
    list[1:c], list[c+1:c+k], list[c+k+1:end]
end

while_attrs(like, cond_consts, body_consts, cond, body) = Attributes(
    :cond_consts => cond_consts, :body_consts => body_consts, :bound => like[:bound],
    :cond => cond,
    :body => body)

function infer(op::While, types, attrs)
    cond_consts, body_consts, carry = loop_parts(attrs, types)
    check_operands(op, attrs[:cond], vcat(cond_consts, carry))
    check_operands(op, attrs[:body], vcat(body_consts, carry))
    results_of(attrs[:cond]) == [TensorType(Bool)] ||
        infer_error(op, "the condition must give one bool[]")
    results_of(attrs[:body]) == carry || infer_error(op, "the body changes the carry's types")
    carry
end

function evaluate(::While, x, attrs, types)
    cond_consts, body_consts, carry = loop_parts(attrs, x)
    while evaluate(attrs[:cond], vcat(cond_consts, carry))[1][]
        carry = evaluate(attrs[:body], vcat(body_consts, carry))
    end
    carry
end

function jvp(op::While, b, eqn, x, ẋ)
    cond_consts, body_consts, carry = loop_parts(eqn.attrs, x)
    _, ċonsts, ċarry = loop_parts(eqn.attrs, ẋ)
    active_consts, active_carry = isactive(ċonsts), isactive(ċarry)
    local body, has
    while true
        body, has = forward(eqn[:body], vcat(active_consts, active_carry), active_carry)
        has == active_carry && break
        active_carry = has
    end
    n, k, m = length(body_consts), count(active_consts), length(carry)
    body = preaccumulate(body, body.inputs[n+m+1:end])        # as in a scan
    inputs, outputs = body.inputs, body.outputs
    woven = with(body;
        inputs = vcat(inputs[1:n], inputs[n+m+1:n+m+k], inputs[n+1:n+m], inputs[n+m+k+1:end]))
    tangent_types = Var[Var(aval(v)) for (v, a) in zip(carry, active_carry) if a]
    cond = with(eqn[:cond]; inputs = vcat(eqn[:cond].inputs, tangent_types))
    start = Atom[instantiate(b, t, v) for (t, v, a) in zip(ċarry, carry, active_carry) if a]
    y = emit_pruned!(b, op, vcat(cond_consts, body_consts, given(ċonsts), carry, start),
        while_attrs(eqn, length(cond_consts), n + k, cond, woven))
    y[1:m], spread(has, y[m+1:end])
end

function partial_eval(op::While, eqn, known)
    trips = trip_count(eqn)
    trips === nothing ||
        return partial_eval(Scan(), as_scan(eqn, trips), known[eqn[:cond_consts]+1:end])
    cond_known, consts_known, carry_known = loop_parts(eqn.attrs, known)
    local split
    while true
        split = partial_eval(eqn[:body], vcat(consts_known, carry_known), .!carry_known)
        split.isknown == carry_known && break
        carry_known = split.isknown
    end
    cond_inputs = used_inputs(dce(eqn[:cond]))
    decided = all(vcat(cond_known, carry_known)[cond_inputs])
    decided && any(carry_known) || return Equation[], [eqn]
    # The known carries run alone first; the others need them at every trip, so the whole loop runs
    # again, later. The body's known half, not the body without the unknown results: an equation for
    # known results may have unknown operands that these do not depend on.
    cond_consts, body_consts, carry = loop_parts(eqn.attrs, eqn.inputs)
    results = 1:count(carry_known)
    early_body = copy_program(dce(with(split.known; outputs = split.known.outputs[results])))
    cond = with(eqn[:cond];
        inputs = eqn[:cond].inputs[vcat(trues(length(cond_consts)), carry_known)])
    early = Equation(op, vcat(cond_consts, body_consts[consts_known], carry[carry_known]),
        eqn.outputs[carry_known],
        while_attrs(eqn, length(cond_consts), count(consts_known), cond, early_body), eqn.source
    )
    late = with(eqn;
        outputs = Var[k ? Var(aval(v)) : v for (v, k) in zip(eqn.outputs, carry_known)])
    [early], all(carry_known) ? Equation[] : [late]
end

function prune(op::While, eqn, used)
    cond_consts, body_consts, carry = loop_parts(eqn.attrs, trues(length(eqn.inputs)))
    cond_uses = used_inputs(dce(eqn[:cond]))[length(cond_consts)+1:end]
    needed = used .| cond_uses
    local body
    while true
        body = select_outputs(eqn[:body], needed)
        live = needed .| used_inputs(body)[length(body_consts)+1:end]
        live == needed && break
        needed = live
    end
    kept_consts = used_inputs(body)[1:length(body_consts)]
    all(needed) && all(kept_consts) && return [eqn]
    trimmed = copy_program(with(body; inputs = body.inputs[vcat(kept_consts, needed)]))
    cond = with(eqn[:cond]; inputs = eqn[:cond].inputs[vcat(cond_consts, needed)])
    [
        Equation(op, eqn.inputs[vcat(cond_consts, kept_consts, needed)], eqn.outputs[needed],
            while_attrs(eqn, length(cond_consts), count(kept_consts), cond, trimmed), eqn.source)
    ]
end

function hoist_invariants!(::While, hoisted, e)
    cond_consts, body_consts, carry = loop_parts(e.attrs, e.inputs)
    body, values = without_invariants!(hoisted, e[:body], body_consts)
    isempty(values) && return e
    with(e; inputs = vcat(cond_consts, body_consts, values, carry),
        attrs = while_attrs(e.attrs, length(cond_consts), length(body_consts) + length(values),
            e[:cond], body))
end

# ---- how often a loop runs

"The trips of a counting loop (`i < n`, `i += step`, all literals), or nothing."
function trip_count(eqn)
    conjuncts = conditions(eqn[:cond])
    length(conjuncts) == 1 ? counted_trips(eqn, conjuncts[1]) : nothing
end

"The most trips that the user, or a counter in the condition, allows, or nothing."
function trip_bound(eqn)
    known = filter(!isnothing, [eqn[:bound]; counted_trips.(Ref(eqn), conditions(eqn[:cond]))])
    isempty(known) ? nothing : minimum(known)
end

"The comparisons whose conjunction a condition is."
function conditions(cond::Program)
    producer = IdDict{Var,Equation}(v => e for e in cond.equations for v in e.outputs)
    function conjuncts(a)
        e = a isa Var ? get(producer, a, nothing) : nothing
        e === nothing && return Any[nothing]
        name(e.op) === :and ? vcat(conjuncts(e.inputs[1]), conjuncts(e.inputs[2])) : Any[e]
    end
    conjuncts(cond.outputs[1])
end

const MIRRORED = Dict(:gt => :lt, :ge => :le, :lt => :gt, :le => :ge)

"""
Iterations that one comparison allows: a carry that starts at a literal, grows by a literal, and is
compared with a literal."""
function counted_trips(eqn, comparison)
    comparison === nothing && return nothing
    op, (a, b) =
        name(comparison.op), length(comparison.inputs) == 2 ? comparison.inputs : (nothing, nothing)
    haskey(MIRRORED, op) || return nothing
    op in (:gt, :ge) && ((op, a, b) = (MIRRORED[op], b, a))
    start, step, limit = initial_value(eqn, a), increment(eqn, a), invariant_value(eqn, b)
    (start === nothing || step === nothing || limit === nothing || step <= 0) && return nothing
    steps_below(limit + (op === :le ? 1 : 0), start, step, dtype(a))
end

"""
How often `i += step` runs while `i < limit`, with an `i` of type T that wraps around where it
leaves its range; nothing where that takes more than `MOST_LAPS` rounds of the range, or never
ends."""
function steps_below(limit::BigInt, i::BigInt, step::BigInt, ::Type{T}) where {T}
    count, range = big(0), big(2)^8sizeof(T)
    for _ in 1:MOST_LAPS
        steps = max(cld(limit - i, step), 0)
        count, i = count + steps, i + steps * step
        i <= typemax(T) && return Int(min(count, typemax(Int)))
        i -= range
    end
    nothing
end
"Enough for every counter of 8 bits that ends."
const MOST_LAPS = 256

"Which carry an atom of the condition is, or nothing."
function carry_index(eqn, a)
    k = findfirst(v -> v === a, eqn[:cond].inputs)
    k === nothing || k <= eqn[:cond_consts] ? nothing : k - eqn[:cond_consts]
end
integer_literal(a) = a isa Literal && a.value isa Integer ? BigInt(a.value) : nothing
carry_operand(eqn, i) = eqn.inputs[eqn[:cond_consts]+eqn[:body_consts]+i]
carry_input(eqn, i) = eqn[:body].inputs[eqn[:body_consts]+i]

function initial_value(eqn, a)
    i = carry_index(eqn, a)
    i === nothing ? nothing : integer_literal(carry_operand(eqn, i))
end

function increment(eqn, a)
    i = carry_index(eqn, a)
    i === nothing && return nothing
    out = eqn[:body].outputs[i]
    k = findlast(e -> any(v -> v === out, e.outputs), eqn[:body].equations)
    k === nothing && return nothing
    e = eqn[:body].equations[k]
    name(e.op) === :add || return nothing
    x, y = e.inputs
    x === carry_input(eqn, i) ? integer_literal(y) :
    y === carry_input(eqn, i) ? integer_literal(x) : nothing
end

function invariant_value(eqn, a)
    a isa Literal && return integer_literal(a)
    k = findfirst(v -> v === a, eqn[:cond].inputs)
    k === nothing && return nothing
    k <= eqn[:cond_consts] && return integer_literal(eqn.inputs[k])
    i = carry_index(eqn, a)
    eqn[:body].outputs[i] === carry_input(eqn, i) ? integer_literal(carry_operand(eqn, i)) : nothing
end

"The scan that does the same."
function as_scan(eqn, trips)
    c, k = eqn[:cond_consts], eqn[:body_consts]
    attrs = Attributes(:length => trips, :reverse => false, :consts => k,
        :carry => length(eqn.outputs), :unroll => 1, :body => eqn[:body])
    Equation(Scan(), eqn.inputs[c+1:end], eqn.outputs, attrs, eqn.source)
end
