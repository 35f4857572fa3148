# scan: a body run `length` times over carried values, slices of xs, and constants.

@primitive Scan scan(length, reverse, consts, carry, unroll, body)

"A list in operand order cut into constants, carry and xs."
function operand_parts(eqn_attrs, list)
    c, k = eqn_attrs[:consts], eqn_attrs[:carry]
    list[1:c], list[c+1:c+k], list[c+k+1:end]
end
"A list in result order cut into carry and ys."
result_parts(eqn_attrs, list) = (list[1:eqn_attrs[:carry]], list[eqn_attrs[:carry]+1:end])

stacked(length, t::TensorType) = TensorType(t.dtype, Dim[length; t.shape])

scan_attrs(like, body, consts, carry; reverse = like[:reverse]) =
    Attributes(:length => like[:length], :reverse => reverse, :consts => consts, :carry => carry,
        :unroll => like[:unroll], :body => body)

function infer(op::Scan, types, attrs)
    consts, carry, xs = operand_parts(attrs, types)
    all(t -> ndims(t) > 0 && t.shape[1] == attrs[:length], xs) ||
        infer_error(op, "every xs needs the leading dimension $(attrs[:length])")
    check_operands(op, attrs[:body],
        vcat(consts, carry, [TensorType(t.dtype, t.shape[2:end]) for t in xs]))
    kept, ys = result_parts(attrs, results_of(attrs[:body]))
    kept == carry ||
        infer_error(
            op,
            "the body's carry changes type: $(join(map(type_text, carry), ", ")) to " *
            "$(join(map(type_text, kept), ", "))"
        )
    vcat(carry, [stacked(attrs[:length], t) for t in ys])
end

function evaluate(::Scan, x, attrs, types)
    consts, carry, xs = operand_parts(attrs, x)
    _, ys = result_parts(attrs,
        Any[Array{t.dtype}(undef, reverse(Int.(t.shape))...) for t in types])
    steps = 1:attrs[:length]
    for t in (attrs[:reverse] ? reverse(steps) : steps)
        slices = Any[collect(selectdim(v, ndims(v), t)) for v in xs]
        carry, y = result_parts(attrs, evaluate(attrs[:body], vcat(consts, carry, slices)))
        for (stack, value) in zip(ys, y)
            selectdim(stack, ndims(stack), t) .= value
        end
    end
    vcat(carry, ys)
end

function jvp(op::Scan, b, eqn, x, ẋ)
    body, m = eqn[:body], eqn[:carry]
    active_consts, active_carry, active_xs = operand_parts(eqn.attrs, isactive(ẋ))
    results = length(body.outputs)
    local forward_body, has
    while true      # a carry that gets a tangent in the body has one from the start
        wanted = vcat(active_carry, falses(results - m))
        forward_body, has = forward(body, vcat(active_consts, active_carry, active_xs), wanted)
        has[1:m] == active_carry && break
        active_carry = has[1:m]
    end
    n = length(body.inputs)
    # Each residual of the body is kept for every step.
    forward_body = simplified(preaccumulate(forward_body, forward_body.inputs[n+1:end]))
    primal_inputs = operand_parts(eqn.attrs, forward_body.inputs[1:n])
    tangents = forward_body.inputs[n+1:end]
    nc, nk = count(active_consts), count(active_carry)
    tangent_inputs = (tangents[1:nc], tangents[nc+1:nc+nk], tangents[nc+nk+1:end])
    primal_results = result_parts(eqn.attrs, forward_body.outputs[1:results])
    tangent_results = forward_body.outputs[results+1:end]
    woven = with(forward_body; inputs = weave(primal_inputs, tangent_inputs),
        outputs = weave(primal_results, (tangent_results[1:nk], tangent_results[nk+1:end])))

    consts, carry, xs = operand_parts(eqn.attrs, x)
    ċonsts, ċarry, ẋs = operand_parts(eqn.attrs, ẋ)
    start = Atom[instantiate(b, t, v) for (t, v, a) in zip(ċarry, carry, active_carry) if a]
    y = emit!(b, op, weave((consts, carry, xs), (given(ċonsts), start, given(ẋs))),
        scan_attrs(eqn, woven, length(consts) + nc, length(carry) + nk))
    primal = vcat(y[1:m], y[m+nk+1:nk+results])
    primal, spread(has, vcat(y[m+1:m+nk], y[nk+results+1:end]))
end

"(a1, a2, …), (b1, b2, …) -> a1 b1 a2 b2 …, as one list."
weave(a, b) = reduce(vcat, [vcat(p, q) for (p, q) in zip(a, b)])

function partial_eval(op::Scan, eqn, known)
    hoisted, eqn, known = hoist_invariants(eqn, known)
    split, known = settled(partial_eval, eqn, known)
    known_consts, known_carry, known_xs = operand_parts(eqn.attrs, known)
    # Constants and slices are there in any case, and counters are numbers known beforehand.
    steps = [counter_step(eqn, k) for k in findall(known_carry)]
    free = vcat(trues(count(known_consts)), map(!isnothing, steps), trues(count(known_xs)))
    split = compact_loop_residuals(split, free)
    consts, carry, xs = operand_parts(eqn.attrs, eqn.inputs)
    carries, ys = result_parts(eqn.attrs, eqn.outputs)
    known_ys = split.isknown[eqn[:carry]+1:end]

    early_consts, early_xs = consts[known_consts], xs[known_xs]
    early_inputs = vcat(early_consts, carry[known_carry], early_xs)
    residuals = split.known.outputs[end-split.residuals+1:end]
    source = Any[
        residual_source(split.known.inputs, length(early_consts), steps, r) for r in residuals
    ]
    stack = findall(isnothing, source)
    constant = findall(s -> s isa Int && s <= length(early_consts), source)
    slice = findall(s -> s isa Int && s > length(early_consts), source)
    stacks = Var[Var(stacked(eqn[:length], aval(residuals[r]))) for r in stack]
    counted = Builder(Equation[], eqn.source)
    slices = Atom[
        k in eachindex(steps) .+ length(early_consts) ?
        counter_values!(counted, eqn, early_inputs[k], steps[k-length(early_consts)]) :
        early_inputs[k] for k in source[slice]
    ]

    results = split.known.outputs[1:end-split.residuals]
    early_body = with(split.known; outputs = vcat(results, residuals[stack]))
    early = Equation(op, early_inputs, vcat(carries[known_carry], ys[known_ys], stacks),
        scan_attrs(eqn, early_body, length(early_consts), count(known_carry)), eqn.source)

    late_inputs, r = split.unknown.inputs, split.residuals
    unknown_consts, unknown_carry = count(.!known_consts), count(.!known_carry)
    rest = late_inputs[r+1:end]
    late_body = with(
        split.unknown;
        inputs = vcat(
            late_inputs[constant], rest[1:unknown_consts],
            rest[unknown_consts+1:unknown_consts+unknown_carry],
            late_inputs[slice], late_inputs[stack], rest[unknown_consts+unknown_carry+1:end])
    )
    late = Equation(op,
        vcat(Atom[early_inputs[source[k]] for k in constant], consts[.!known_consts],
            carry[.!known_carry], slices, stacks, xs[.!known_xs]),
        vcat(carries[.!known_carry], ys[.!known_ys]),
        scan_attrs(eqn, late_body, length(constant) + unknown_consts, unknown_carry), eqn.source
    )
    needed(e) = isempty(e.outputs) ? Equation[] : [e]
    vcat(hoisted, needed(early), counted.equations), needed(late)
end

"""
The split of the body, and which operands are known in it: a carry whose next value is unknown is
unknown from the start."""
function settled(split_body, eqn, known)
    consts, carry, xs = operand_parts(eqn.attrs, known)
    while true
        known = vcat(consts, carry, xs)
        split = split_body(eqn[:body], known,
            vcat(.!carry, falses(length(eqn.outputs) - length(carry))))
        next = split.isknown[1:length(carry)]
        next == carry && return split, known
        carry = next
    end
end

# What is kept of each trip is stacked, and the loop runs again with its stacks.
function partial_eval_saving(op::Scan, eqn, known, depth)
    hoisted, eqn, known = hoist_invariants(eqn, known)
    if !isempty(hoisted)
        parts =
            vcat([partial_eval_saving(e.op, e, trues(length(e.inputs)), depth) for e in hoisted],
                [partial_eval_saving(op, eqn, known, depth)])
        return Tuple(reduce(vcat, part) for part in zip(parts...))
    end
    split, known = settled((body, known, waiting) ->
            partial_eval_saving(body, known, waiting, depth), eqn, known)
    known_consts, known_carry, _ = operand_parts(eqn.attrs, known)
    body, kept = split.unknown, split.residuals
    stacks = Var[Var(stacked(eqn[:length], aval(v))) for v in body.inputs[1:kept]]
    early = Equation(op, eqn.inputs[known], vcat(eqn.outputs[split.isknown], stacks),
        scan_attrs(eqn, split.known, count(known_consts), count(known_carry)), eqn.source)
    late_body = with(body; inputs = vcat(body.inputs[kept+1:end], body.inputs[1:kept]))
    late = with(eqn; inputs = vcat(eqn.inputs, stacks),
        attrs = scan_attrs(eqn, late_body, eqn[:consts], eqn[:carry]))
    isempty(early.outputs) ? Equation[] : [early], [late], stacks
end

"""
The operand that a residual simply is (a constant, a counter or an xs of the known scan), or
nothing: it must be stacked. `steps`: of each carry, where it counts."""
function residual_source(inputs, consts, steps, residual)
    k = findfirst(v -> v === residual, inputs)
    k === nothing || get(steps, k - consts, 0) === nothing ? nothing : k
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
Moves what depends on known constants alone in front of the loop: otherwise it would be computed and
stacked every trip."""
function hoist_invariants(eqn, known)
    body, c = eqn[:body], eqn[:consts]
    invariant = vcat(known[1:c], falses(length(known) - c))
    split = partial_eval(body, invariant, trues(length(body.outputs)))
    isempty(split.known.equations) && return Equation[], eqn, known
    b = Builder(Equation[], eqn.source)
    residuals = inline!(b, split.known, eqn.inputs[invariant])
    inputs = vcat(residuals, eqn.inputs[.!invariant])
    consts = length(residuals) + count(.!known[1:c])
    attrs = scan_attrs(eqn, split.unknown, consts, eqn[:carry])
    (b.equations, with(eqn; inputs = inputs, attrs = attrs),
        vcat(trues(length(residuals)), known[.!invariant]))
end

# Backwards, the carry's cotangents are carried, and those of the constants are summed up in the
# carry. A linear scan's carry is linear throughout, also where it starts from a known zero.
function transpose(op::Scan, b, eqn, ȳ, x)
    consts, carry, xs = operand_parts(eqn.attrs, x)
    linear_consts, linear_xs = map(v -> Bool[islinear(a) for a in v], (consts, xs))
    carries, ys = result_parts(eqn.attrs, ȳ)
    linear = vcat(linear_consts, trues(length(carry)), linear_xs)
    step = transpose(eqn[:body], linear, vcat(trues(length(carry)), isactive(ys)))
    fixed_consts = Atom[v for v in consts if !islinear(v)]
    fixed_xs = Atom[v for v in xs if !islinear(v)]
    fc, lc, m = length(fixed_consts), count(linear_consts), length(carry)
    sums = TensorType[aval(v) for v in consts if islinear(v)]

    fixed_types = map(aval, step.inputs[1:fc+length(fixed_xs)])
    cotangent_types = map(aval, step.inputs[fc+length(fixed_xs)+1:end])
    types =
        TensorType[
            fixed_types[1:fc];
            sums;
            cotangent_types[1:m];
            fixed_types[fc+1:end];
            cotangent_types[m+1:end]
        ]
    body = build(step.name, types; source = eqn.source) do inner, v
        totals, c̄arry = v[fc+1:fc+lc], v[fc+lc+1:fc+lc+m]
        fixed_slices, ȳs =
            v[fc+lc+m+1:fc+lc+m+length(fixed_xs)], v[fc+lc+m+length(fixed_xs)+1:end]
        x̄ = inline!(inner, step, vcat(v[1:fc], fixed_slices, c̄arry, ȳs))
        vcat(Atom[emit(inner, :add, s, t) for (s, t) in zip(totals, x̄[1:lc])], x̄[lc+1:end])
    end
    start = vcat(Atom[zeros_of(b, t) for t in sums],
        Atom[instantiate(b, t, v) for (t, v) in zip(carries, carry)])
    x̄ = emit!(b, op, vcat(fixed_consts, start, fixed_xs, given(ys)),
        scan_attrs(eqn, body, fc, lc + m; reverse = !eqn[:reverse]))
    vcat(spread(linear_consts, x̄[1:lc]),
        MaybeAtom[islinear(v) ? t : nothing for (v, t) in zip(carry, x̄[lc+1:lc+m])],
        spread(linear_xs, x̄[lc+m+1:end]))
end

function prune(op::Scan, eqn, used)
    body = eqn[:body]
    used_carry, used_ys = result_parts(eqn.attrs, used)
    carry_in = operand_parts(eqn.attrs, body.inputs)[2]
    local pruned
    while true      # a carry that a needed result depends on is needed itself
        pruned = select_outputs(body, vcat(used_carry, used_ys))
        live = used_inputs(with(pruned; inputs = carry_in)) .| used_carry
        live == used_carry && break
        used_carry = live
    end
    needed = used_inputs(pruned)
    consts, _, xs = operand_parts(eqn.attrs, needed)
    keep = vcat(consts, used_carry, xs)
    all(keep) && all(used_carry) && all(used_ys) && return [eqn]
    trimmed = copy_program(with(pruned; inputs = body.inputs[keep]))
    [
        Equation(op, eqn.inputs[keep], eqn.outputs[vcat(used_carry, used_ys)],
            scan_attrs(eqn, trimmed, count(consts), count(used_carry)), eqn.source)
    ]
end

# What the body gives twice is stacked once.
function distinct_results(op::Scan, eqn)
    m, results = eqn[:carry], eqn[:body].outputs
    first_ = [
        k <= m ? k : m + findfirst(a -> a === results[k], results[m+1:end])
        for k in eachindex(results)
    ]
    kept = sort!(unique(first_))
    length(kept) == length(results) && return eqn, eachindex(results)
    body = with(eqn[:body]; outputs = results[kept])
    (with(eqn; outputs = eqn.outputs[kept], attrs = scan_attrs(eqn, body, eqn[:consts], m)),
        [findfirst(==(k), kept) for k in first_])
end

function hoist_invariants!(::Scan, hoisted, e)
    e[:length] > 1 || return e
    consts, carry, xs = operand_parts(e.attrs, e.inputs)
    body, values = without_invariants!(hoisted, e[:body], consts)
    isempty(values) && return e
    with(e; inputs = vcat(consts, values, carry, xs),
        attrs = scan_attrs(e.attrs, body, length(consts) + length(values), length(carry)))
end
