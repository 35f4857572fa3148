# scan: a body run `length` times over carried values, slices of xs, and constants.

@primitive Scan scan(length, reverse, consts, carry, unroll, body)

"A list in operand order cut into constants, carry and xs."
function operand_parts(eqn_attrs, list)
    c, k = eqn_attrs[:consts], eqn_attrs[:carry]
    list[1:c], list[c+1:c+k], list[c+k+1:end]
end
"A list in result order cut into carry and ys."
result_parts(eqn_attrs, list) = (list[1:eqn_attrs[:carry]], list[eqn_attrs[:carry]+1:end])

stacked(length, t::TensorType) = TensorType(t.dtype, Dim[length, t.shape...])

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
    y = emit_pruned!(b, op, weave((consts, carry, xs), (given(ċonsts), start, given(ẋs))),
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
    steps = [counter_step(eqn, k) for k in findall(known_carry)]
    split = compact_loop_residuals(split,
        vcat(zeros(Int, count(known_consts)),
            carry_bytes(split.known, count(known_consts), steps, eqn[:length]),
            zeros(Int, count(known_xs))))
    consts, carry, xs = operand_parts(eqn.attrs, eqn.inputs)
    carries, ys = result_parts(eqn.attrs, eqn.outputs)
    known_ys = split.isknown[eqn[:carry]+1:end]

    early = Equation(op, vcat(consts[known_consts], carry[known_carry], xs[known_xs]),
        vcat(carries[known_carry], ys[known_ys]),
        scan_attrs(eqn, split.known, count(known_consts), count(known_carry)), eqn.source)
    kept = loop_residuals(early, split.residuals, steps)
    at(source) = findall(==(source), kept.source)

    late_inputs, r = split.unknown.inputs, split.residuals
    unknown_consts, unknown_carry = count(.!known_consts), count(.!known_carry)
    rest = late_inputs[r+1:end]
    late_body = with(
        split.unknown;
        inputs = vcat(
            late_inputs[at(:constant)], rest[1:unknown_consts+unknown_carry],
            late_inputs[at(:slice)], late_inputs[at(:stack)],
            rest[unknown_consts+unknown_carry+1:end])
    )
    late = Equation(op,
        vcat(kept.operands[at(:constant)], consts[.!known_consts], carry[.!known_carry],
            kept.operands[at(:slice)], kept.operands[at(:stack)], xs[.!known_xs]),
        vcat(carries[.!known_carry], ys[.!known_ys]),
        scan_attrs(eqn, late_body, length(at(:constant)) + unknown_consts, unknown_carry),
        eqn.source)
    vcat(hoisted, kept.equations), isempty(late.outputs) ? Equation[] : [late]
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
        # by number: `zip(parts...)` is of a type with as many parameters as there are equations
        return Tuple(reduce(vcat, [part[k] for part in parts]) for k in 1:3)
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

    fixed_types = TensorType[aval(v) for v in step.inputs[1:fc+length(fixed_xs)]]
    cotangent_types = TensorType[aval(v) for v in step.inputs[fc+length(fixed_xs)+1:end]]
    types =
        vcat(fixed_types[1:fc], sums, cotangent_types[1:m], fixed_types[fc+1:end],
            cotangent_types[m+1:end])
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
