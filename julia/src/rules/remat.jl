# remat (jax.checkpoint): a body whose intermediate values are recomputed in the backward pass.

@primitive Remat remat(body, barrier)

function infer(op::Remat, types, attrs)
    check_operands(op, attrs[:body], types)
    results_of(attrs[:body])
end

evaluate(::Remat, x, attrs, types) = evaluate(attrs[:body], x)

function jvp(op::Remat, b, eqn, x, ẋ)
    body, has = forward(eqn[:body], isactive(ẋ))
    y = emit!(b, op, vcat(x, given(ẋ)), Attributes(:body => body, :barrier => eqn[:barrier]))
    m = length(has)
    y[1:m], spread(has, y[m+1:end])
end

"""
The known results are computed at once, and of the values in between those that the user's policy
allows to be kept; what is unknown repeats the rest from the operands when it is needed."""
function partial_eval(op::Remat, eqn, known)
    early, late, _ = partial_eval_saving(op, eqn, known, -1)
    computed = VarSet(v for e in early for v in e.outputs)
    unknown = Bool[!(v in computed) for v in eqn.outputs]
    early, any(unknown) ? prune(op, only_one(late), unknown) : Equation[]
end

# An outer checkpoint asks its own policy alone. The known half is inlined: nothing of it has to be
# computed twice.
function partial_eval_saving(op::Remat, eqn, known, depth)
    split = partial_eval_saving(eqn[:body], known, falses(length(eqn.outputs)), depth + 1)
    b = Builder(Equation[], eqn.source)
    y = inline!(b, unwrapped(split.known, 0), eqn.inputs[known])
    m = length(y) - split.residuals
    kept = Var[Var(aval(a)) for a in y[m+1:end]]
    late = with(eqn; inputs = vcat(kept, eqn.inputs),
        attrs = Attributes(:body => split.unknown, :barrier => eqn[:barrier]))
    bind_results!(b.equations, y, vcat(eqn.outputs[split.isknown], kept)), [late], kept
end

"Equations in which the variables `wanted` carry the values of the atoms `y`."
function bind_results!(equations, y, wanted)
    for (a, v) in zip(y, wanted)
        push!(equations, Equation(primitive(:copy), Atom[a], [v], NO_ATTRIBUTES, ""))
    end
    equations
end

ismergeable(::Remat) = false
# Without a barrier a checkpoint asks for nothing at run time.
inlined_body(::Remat, eqn) = eqn[:barrier] ? nothing : unwrapped(eqn[:body], 0)
flatten_call!(::Remat, b, e, x) = flatten_into!(b, e[:body], x)

function transpose(op::Remat, b, eqn, ȳ, x)
    linear = Bool[islinear(v) for v in x]
    body = transpose(eqn[:body], linear, isactive(ȳ))
    x̄ = emit!(b, op, vcat(Atom[v for v in x if !islinear(v)], given(ȳ)),
        Attributes(:body => body, :barrier => eqn[:barrier]))
    spread(linear, x̄)
end

function prune(op::Remat, eqn, used)
    body = copy_program(select_outputs(eqn[:body], used))
    needed = used_inputs(body)
    attrs = Attributes(:body => with(body; inputs = body.inputs[needed]), :barrier => eqn[:barrier])
    [Equation(op, eqn.inputs[needed], eqn.outputs[used], attrs, eqn.source)]
end

# saveable: an identity on a value that the policies of some checkpoints around it allow to be kept:
# of those at `levels`, the innermost being 0. As with JAX's checkpoint_name, a tangent is not
# marked.

@primitive Saveable saveable(levels)

function infer(op::Saveable, types, attrs)
    levels = attrs[:levels]
    isempty(levels) && infer_error(op, "levels names no checkpoint")
    levels == unique(sort(levels)) && levels[1] >= 0 ||
        infer_error(op, "levels counts checkpoints from 0 in rising order, and is $levels")
    copy(types)
end
evaluate(::Saveable, x, attrs, types) = map(copy, x)
jvp(op::Saveable, b, eqn, x, ẋ) = emit!(b, op, x, eqn.attrs), ẋ
transpose(::Saveable, b, eqn, ȳ, x) = ȳ
flatten_call!(::Saveable, b, e, x) = x
partial_eval_saving(::Saveable, eqn, known, depth) =
    !all(known) ? (Equation[], [eqn], Var[]) :
    depth in eqn[:levels] ? ([eqn], Equation[], eqn.outputs) : ([eqn], [eqn], Var[])

"The body of a checkpoint without it: `saveable` inside of `depth` others too no longer counts it."
unwrapped(p::Program, depth) =
    with(p; equations = Equation[unwrapped(e.op, e, depth) for e in p.equations])
unwrapped(op::Remat, e, depth) = map_bodies(p -> unwrapped(p, depth + 1), e)
function unwrapped(op::Saveable, e, depth)
    levels = Int[l > depth ? l - 1 : l for l in e[:levels] if l != depth]
    isempty(levels) ? with(e; op = primitive(:copy), attrs = NO_ATTRIBUTES) :
    with(e; attrs = Attributes(:levels => levels))
end
