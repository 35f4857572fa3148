# Reverse mode has no rules of its own: vjp = transpose ∘ linearize.

"""
    vjp(program, active = inexact inputs; value = false) -> Program

(x…, ȳ of the inexact results…) → (x̄ of the active inputs…), preceded by the
results y… when `value`."""
function vjp(p::Program, active::AbstractVector{Bool} = inexact(p.inputs); value::Bool = false)
    l = linearize(p, active)
    x, known = l.known.inputs, l.known.outputs
    # nobody else has the linearization, so it is written on
    b = Builder(l.known.equations, "")
    takes = inexact(p.outputs)
    ȳ = Var[Var(aval(a)) for a in p.outputs[takes]]
    m = length(p.outputs)
    x̄ = backward!(b, l.linear, known[m+1:end], spread(takes, ȳ)[l.hastangent])
    cotangents = Atom[instantiate(b, t, v) for (t, v) in zip(x̄, p.inputs[active])]
    dce(
        Program(string("vjp_", p.name), vcat(x, ȳ), b.equations,
            value ? vcat(known[1:m], cotangents) : cotangents)
    )
end
