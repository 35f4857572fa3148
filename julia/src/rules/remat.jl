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

"""
The known results are computed at once, and of the values in between those that the user's policy allows to be kept; what is unknown
repeats the rest from the operands when it is needed."""
function partial_eval(op::Remat, eqn, known)
    early, late, _ = keep(op, eqn, known, -1)
    computed = VarSet(v for e in early for v in e.outputs)
    unknown = Bool[!(v in computed) for v in eqn.outputs]
    early, any(unknown) ? prune(op, only_one(late), unknown) : Equation[]
end

# An outer checkpoint asks its own policy alone. The known half is inlined: nothing of it has to be computed twice.
function keep(op::Remat, eqn, known, depth)
    split = keep(eqn[:body], known, falses(length(eqn.outputs)), depth + 1)
    b = Builder(Equation[], eqn.source)
    y = inline!(b, unwrapped(split.known, 0), eqn.inputs[known])
    m = length(y) - split.residuals
    kept = Var[Var(aval(a)) for a in y[m+1:end]]
    late = with(eqn; inputs = vcat(kept, eqn.inputs), attrs = Attributes(:body => split.unknown, :barrier => eqn[:barrier]))
    bind_results!(b.equations, y, vcat(eqn.outputs[split.isknown], kept)), [late], kept
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

# saveable: an identity on a value that the policies of some checkpoints around it allow to be kept: of those at `levels`, the innermost
# being 0. As with JAX's checkpoint_name, a tangent is not marked.

@primitive Saveable saveable(levels)

function infer(op::Saveable, types, attrs)
    levels = attrs[:levels]
    isempty(levels) && infer_error(op, "levels names no checkpoint")
    levels == unique(sort(levels)) && levels[1] >= 0 || infer_error(op, "levels counts checkpoints from 0 in rising order, and is $levels")
    copy(types)
end
evaluate(::Saveable, x, attrs, types) = map(copy, x)
jvp(op::Saveable, b, eqn, x, ẋ) = emit!(b, op, x, eqn.attrs), ẋ
transpose(::Saveable, b, eqn, ȳ, x) = ȳ
keep(::Saveable, eqn, known, depth) =
    !all(known) ? (Equation[], [eqn], Var[]) : depth in eqn[:levels] ? ([eqn], Equation[], eqn.outputs) : ([eqn], [eqn], Var[])

"The body of a checkpoint without it: marks inside of `depth` others too no longer count it."
unwrapped(p::Program, depth) = with(p; equations = Equation[unwrapped(e.op, e, depth) for e in p.equations])
unwrapped(op::Primitive, e, depth) = map_bodies(p -> unwrapped(p, depth), e)
unwrapped(op::Remat, e, depth) = map_bodies(p -> unwrapped(p, depth + 1), e)
function unwrapped(op::Saveable, e, depth)
    levels = Int[l > depth ? l - 1 : l for l in e[:levels] if l != depth]
    isempty(levels) ? with(e; op = primitive(:copy), attrs = NO_ATTRIBUTES) : with(e; attrs = Attributes(:levels => levels))
end
