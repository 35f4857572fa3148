# User-given derivatives: jax.custom_jvp and jax.custom_vjp. The user's rule is what is used.

@primitive CustomJVP custom_jvp(call, jvp)
@primitive CustomVJP custom_vjp(call, fwd, bwd)
@primitive CustomVJPTangent custom_vjp_tangent(bwd, residuals)

const Custom = Union{CustomJVP,CustomVJP}

function infer(op::Custom, types, attrs)
    check_operands(op, attrs[:call], types)
    results_of(attrs[:call])
end
evaluate(::Custom, x, attrs, types) = evaluate(attrs[:call], x)
ismergeable(::Custom) = false
flatten_call!(::Custom, b, e, x) = flatten_into!(b, e[:call], x)

# A call with operands that are not known yet waits as a whole: split, its parts would have lost the
# user's rule, which a further derivative needs. Where it comes to be transposed the user's function
# is itself linear, and no rule says how: its plain body does.
function transpose(::Custom, b, eqn, ȳ, x)
    linear = Bool[islinear(v) for v in x]
    spread(linear, transpose_inline!(b, eqn[:call], linear, Atom[v for v in x if !islinear(v)], ȳ))
end

"The tangents of the inexact operands, zeros made explicit: what the user's rules take."
inexact_tangents(b, x, ẋ) =
    Atom[instantiate(b, t, v) for (v, t) in zip(x, ẋ) if isinexact(dtype(v))]

function jvp(::CustomJVP, b, eqn, x, ẋ)
    y = inline!(b, eqn[:jvp], vcat(x, inexact_tangents(b, x, ẋ)))
    m = length(eqn.outputs)
    y[1:m], spread(inexact(y[1:m]), y[m+1:end])
end

function jvp(::CustomVJP, b, eqn, x, ẋ)
    m = length(eqn.outputs)
    results = inline!(b, eqn[:fwd], x)
    y, residuals = results[1:m], results[m+1:end]
    ẏ = emits(b, :custom_vjp_tangent, vcat(residuals, inexact_tangents(b, x, ẋ)); bwd = eqn[:bwd],
        residuals = length(residuals))
    y, spread(inexact(y), ẏ)
end

# The tangent of a custom_vjp call: linear, known only through its transpose,
# which is the user's bwd.

infer(op::CustomVJPTangent, types, attrs) =
    TensorType[aval(v) for v in attrs[:bwd].inputs[attrs[:residuals]+1:end]]

const NO_FORWARD_MODE =
    "forward-mode differentiation (jvp) of a custom_vjp function: " *
    "it has only a reverse rule; use reverse mode, or custom_jvp"
forward_mode_error(source) = throw(NotDifferentiable(NO_FORWARD_MODE, source))
evaluate(::CustomVJPTangent, x, attrs, types) = forward_mode_error("")
jvp(::CustomVJPTangent, b, eqn, x, ẋ) = forward_mode_error(eqn.source)

function transpose(::CustomVJPTangent, b, eqn, ȳ, x)
    r = eqn[:residuals]
    all(!islinear, x[1:r]) ||
        throw(
            NotDifferentiable("a custom_vjp rule's residuals depend on what is transposed",
                eqn.source)
        )
    cotangents = Atom[instantiate(b, t, v) for (t, v) in zip(ȳ, eqn.outputs)]
    x̄ = inline!(b, eqn[:bwd], vcat(Atom[x[1:r]...], cotangents))
    MaybeAtom[i <= r || !islinear(x[i]) ? nothing : x̄[i-r] for i in eachindex(x)]
end
