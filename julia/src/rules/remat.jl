# remat (jax.checkpoint): a body whose intermediate values are recomputed in the backward pass.

@primitive Remat remat(body, barrier)

results_of(p::Program) = TensorType[aval(a) for a in p.outputs]

function infer(op::Remat, types, attrs)
    check_operands(op, attrs[:body], types)
    results_of(attrs[:body])
end

"Throws unless the operands fit a body's inputs."
function check_operands(op, body::Program, types)
    expected = TensorType[aval(v) for v in body.inputs]
    expected == types ||
        infer_error(op, "the body takes ($(join(map(type_text, expected), ", "))), the operands are ($(join(map(type_text, types), ", ")))")
end

evaluate(::Remat, x, attrs, types) = evaluate(attrs[:body], x)

function jvp(op::Remat, b, eqn, x, ẋ)
    body, has = forward(eqn[:body], isactive(ẋ))
    y = emit!(b, op, vcat(x, given(ẋ)), Attributes(:body => body, :barrier => eqn[:barrier]))
    m = length(has)
    y[1:m], spread(has, y[m+1:end])
end

isactive(ẋ) = Bool[t !== nothing for t in ẋ]
given(ẋ) = Atom[t for t in ẋ if t !== nothing]

"The known results are computed at once, without residuals; the rest recomputes the body when it is needed."
function partial_eval(op::Remat, eqn, known)
    body = eqn[:body]
    split = partial_eval(body, known)
    early = select_outputs(with(body; inputs = body.inputs[known]), split.isknown)
    late = copy_program(select_outputs(body, .!split.isknown))
    isknown = split.isknown
    # The known half is inlined: nothing of it has to be computed twice.
    b = Builder(Equation[], eqn.source)
    y = inline!(b, copy_program(early), eqn.inputs[known])
    first_half = bind_results!(b.equations, y, eqn.outputs[isknown])
    second_half = with(eqn; outputs = eqn.outputs[.!isknown], attrs = Attributes(:body => late, :barrier => eqn[:barrier]))
    first_half, any(.!isknown) ? [second_half] : Equation[]
end

"Equations in which the variables `wanted` carry the values of the atoms `y`."
function bind_results!(equations, y, wanted)
    for (a, v) in zip(y, wanted)
        push!(equations, Equation(primitive(:copy), Atom[a], [v], NO_ATTRIBUTES, ""))
    end
    equations
end

function transpose(op::Remat, b, eqn, ȳ, x)
    linear = Bool[islinear(v) for v in x]
    body = transpose(eqn[:body], linear, isactive(ȳ))
    x̄ = emit!(b, op, vcat(Atom[v for v in x if !islinear(v)], given(ȳ)), Attributes(:body => body, :barrier => eqn[:barrier]))
    spread(linear, x̄)
end

function prune(op::Remat, eqn, used)
    body = copy_program(select_outputs(eqn[:body], used))
    needed = used_inputs(body)
    attrs = Attributes(:body => with(body; inputs = body.inputs[needed]), :barrier => eqn[:barrier])
    [Equation(op, eqn.inputs[needed], eqn.outputs[used], attrs, eqn.source)]
end
