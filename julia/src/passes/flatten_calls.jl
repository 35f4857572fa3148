# Calls without meaning at run time are written out before code is made.

"""
The Program without calls: custom rules, rematerialisation and barriers are for transforms only.
Dead code is removed, in bodies too."""
function flatten_calls(p::Program)
    b, inputs = Builder(), fresh(p.inputs)
    outputs = flatten_into!(b, p, inputs)
    dce(Program(p.name, inputs, b.equations, outputs))
end

"Emits the equations of `program`, applied to the atoms `x`, without calls; gives the results."
function flatten_into!(b::Builder, p::Program, x)
    env = Environment(zip(p.inputs, x))
    for e in p.equations
        check_cancelled()
        operands = Atom[lookup(env, a) for a in e.inputs]
        results = flatten_call!(e.op, b, e, operands)
        results === nothing && (results = emit_flattened!(b, e, operands))
        foreach((v, y) -> env[v] = y, e.outputs, results)
    end
    Atom[lookup(env, a) for a in p.outputs]
end

"Emits an equation with other operands, its nested Programs without calls."
function emit_flattened!(b::Builder, e::Equation, x)
    outputs = fresh(e.outputs)
    push!(b.equations, map_bodies(flatten_calls, with(e; inputs = x, outputs = outputs)))
    outputs
end
