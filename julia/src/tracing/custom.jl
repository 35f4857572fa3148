# Functions whose derivative the user gives: the operations of JAX's custom_jvp and custom_vjp.

"A function with a forward rule of the user's."
struct CustomJVPFunction{F,R} <: Function
    f::F
    rule::R
end

"A function with a reverse rule of the user's."
struct CustomVJPFunction{F,A,B} <: Function
    f::F
    forward::A
    backward::B
end

"""
    custom_jvp(f, rule) -> function

`f` with the derivative `rule(x, ẋ) -> (y, ẏ)`, where x and ẋ are tuples: the arguments, and
their tangents as `jvp` takes them. What the rule gives for ẏ must be linear in ẋ; then reverse mode
and derivatives of any order follow from it. Outside of a trace it is `f`. Neither may close over
traced values. A function of numbers may be broadcast.

    julia> f = custom_jvp(exp, ((x,), (ẋ,)) -> (y = exp(x); (y, 2y * ẋ)));

    julia> f(0.0), gradient(f, 0.0)
    (1.0, 2.0)
"""
custom_jvp(f, rule) = CustomJVPFunction(f, rule)

"""
    custom_vjp(f, forward, backward) -> function

`f` with a reverse rule: `forward(x...) -> (y, residuals)` and `backward(residuals, ȳ) -> x̄`, a
tuple with the cotangent of each argument, or `nothing` where it is zero or the argument has none.
There is no forward mode of it (`NotDifferentiable`). Outside of a trace it is `f`. None of the
three may close over traced values. A function of numbers may be broadcast.

    julia> clipped = custom_vjp(x -> x^2, x -> (x^2, x), (x, ȳ) -> (clamp(2x * ȳ, -1.0, 1.0),));

    julia> gradient(clipped, 0.25), gradient(clipped, 3.0)
    (0.5, 1.0)
"""
custom_vjp(f, forward, backward) = CustomVJPFunction(f, forward, backward)

function (c::CustomJVPFunction)(x...)
    recording() === nothing && return c.f(x...)
    leaves, structure = flatten(x)
    ẋ = with_tangents(structure, x, filter(isdifferentiable, leaves))    # as examples of them
    call, rule = trace_rule(c.f, x...), trace_rule(c.rule, x, ẋ)
    y, ẏ = results_of_rule(rule, call, "the rule of custom_jvp must give (y, ẏ)")
    tangents = floats_of_types(ẏ, result_types(call), "custom_jvp's rule: tangents")
    captured, (primal, derivative) = joined_captures([call, rule])
    # The tangents of what is captured, all zero, come before those of the arguments.
    n = length(primal.inputs)
    unused = Var[Var(aval(a)) for a in captured if isinexact(dtype(a))]
    derivative = with(derivative; outputs = Atom[y; tangents],
        inputs = Var[derivative.inputs[1:n]; unused; derivative.inputs[n+1:end]])
    emit_with_rule(:custom_jvp, call.result, captured, x, :call => primal, :jvp => derivative)
end

function (c::CustomVJPFunction)(x...)
    recording() === nothing && return c.f(x...)
    call, forward = trace_rule(c.f, x...), trace_rule(c.forward, x...)
    _, residuals =
        results_of_rule(forward, call, "custom_vjp's forward must give (y, residuals)")
    backward = trace_backward(c.backward, forward, x)
    x̄ = floats_of_types(backward.program.outputs, map(leaf_type, flatten(x)[1]),
        "custom_vjp's backward: cotangents")
    captured, (primal, fwd, bwd) = joined_captures([call, forward, backward])
    # What the backward half takes of its surroundings comes to it among the residuals.
    k, r = length(captured), length(residuals)
    fwd = with(fwd; outputs = Atom[fwd.outputs; fwd.inputs[1:k]])
    from_arguments = with(bwd; outputs = x̄)
    inputs = Var[bwd.inputs[k+1:k+r]; bwd.inputs[1:k]; bwd.inputs[k+r+1:end]]
    bwd = build(bwd.name, map(aval, inputs)) do b, v
        zeros = Atom[zeros_of(b, aval(a)) for a in captured if isinexact(dtype(a))]
        Atom[zeros; inline!(b, with(from_arguments; inputs = inputs), v)]
    end
    emit_with_rule(:custom_vjp, call.result, captured, x, :call => primal, :fwd => fwd, :bwd => bwd)
end

"The backward half: from the residuals and the results' cotangents to those of the arguments."
function trace_backward(backward, forward, x)
    y, residuals = sample(forward.result, forward.program.outputs)
    leaves, structure = flatten(y)
    ȳ = with_tangents(structure, y, filter(isdifferentiable, leaves))
    trace_rule(residuals, ȳ) do residuals, ȳ
        x̄ = backward(residuals, ȳ)
        x̄ isa Tuple && length(x̄) == length(x) || untraceable(
            "custom_vjp's backward must give a tuple with the cotangents of $(length(x)) arguments")
        map(cotangent_of, x, x̄)
    end
end
cotangent_of(x, x̄) = x̄
function cotangent_of(x, ::Nothing)
    leaves, structure = flatten(x)
    with_tangents(structure, x, map(zero, filter(isdifferentiable, leaves)))
end

"`f`, traced by itself: it may not take part in derivatives but by its arguments."
function trace_rule(f, x...)
    t = trace_here(f, open_recording(), x)
    any(a -> a isa Var && isinexact(dtype(a)), t.captured) && untraceable(
        "a function with a derivative of the user's closes over a traced value, by which the " *
        "rule does not differentiate: make it an argument")
    t
end

"The results of a rule that gives `(y, more)`, with y as the function has it."
function results_of_rule(rule, call, message)
    m = length(call.program.outputs)
    s = rule.result
    s isa Container && s.type === Tuple && length(s.parts) == 2 || untraceable(message)
    s.parts[1] == call.result && result_types(rule)[1:m] == result_types(call) ||
        untraceable("$message, with y of the types that the function gives: " *
                    "$(join(result_types(call), ", "))")
    rule.program.outputs[1:m], rule.program.outputs[m+1:end]
end

"The floats among these, which are to be of the types of the floats among `types`."
function floats_of_types(atoms, types, what)
    floats = Atom[a for a in atoms if isinexact(dtype(a))]
    wanted = filter(t -> isinexact(t.dtype), types)
    map(aval, floats) == wanted || untraceable(
        "$what of types $(join(map(aval, floats), ", ")) where $(join(wanted, ", ")) are expected")
    floats
end

"The call with its rule, in the innermost trace; `programs` are the primitive's attributes."
function emit_with_rule(op, result, captured, x, programs::Pair{Symbol,Program}...)
    operands, n = leaf_atoms(x), shape_of_lanes(flatten(x))
    if n !== nothing
        isempty(captured) || untraceable("a function with a derivative of the user's that is " *
                                         "broadcast closes over an array")
        operands = Atom[spread_number(a, n) for a in operands]
        programs = map(p -> first(p) => in_lanes(last(p), n), programs)
    end
    from_atoms(result,
        emit_here(primitive(op), Atom[captured; operands], Attributes(programs...)))
end

"The shape of the arrays that numbers stand for within a broadcast, or nothing outside of one."
function shape_of_lanes((leaves, structure))
    k = findfirst(v -> v isa TracedNumber && !isscalar(v.atom), leaves)
    k === nothing && return nothing
    all(kind -> kind isa NumberLeaf, leaf_kinds(structure)) || untraceable(
        "a function with a derivative of the user's is broadcast, and takes an array in each " *
        "element")
    shape(leaves[k].atom)
end

"A Program of numbers as one of arrays of shape n, element by element."
in_lanes(p::Program, n) =
    build(p.name, [TensorType(dtype(v), n) for v in p.inputs]) do b, v
        known = Environment(zip(p.inputs, v))
        spread(a::Atom) = isscalar(a) ? emit(b, :broadcast_in_dim, a; shape = n, dims = Int[]) : a
        for e in p.equations
            b.source = e.source
            operands = Atom[spread(lookup(known, a)) for a in e.inputs]
            for (w, y) in zip(e.outputs, emit!(b, e.op, operands, attributes_in_lanes(e.op, e, n)))
                known[w] = y
            end
        end
        Atom[spread(lookup(known, a)) for a in p.outputs]
    end
attributes_in_lanes(op, e, n) =
    iselementwise(op) ? e.attrs : untraceable(
        "a function with a derivative of the user's is broadcast, and does more than arithmetic " *
        "on numbers ($(name(op))): over the elements of a vector `vmap(f)(x)` goes")
attributes_in_lanes(::Custom, e, n) =
    Attributes(k => v isa Program ? in_lanes(v, n) : v for (k, v) in pairs(e.attrs))
spread_number(a::Atom, n) =
    isscalar(a) ? emit_here(:broadcast_in_dim, a; shape = n, dims = Int[]) : a

"A value of a structure, with leaves of the types of these atoms, for tracing alone."
sample(s::Structure, atoms) =
    assembled(s, Any[sample_leaf(kind, aval(a)) for (kind, a) in zip(leaf_kinds(s), atoms)])
sample_leaf(::NumberLeaf, t) = traced_type(t.dtype)(zero(t.dtype))
sample_leaf(::ArrayLeaf, t) = SampleArray{t.dtype,ndims(t)}(julia_size(t))
