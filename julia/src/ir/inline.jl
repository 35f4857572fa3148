# Copying a Program's equations into another.

const Environment = IdDict{Var,Atom}

lookup(env::Environment, v::Var) = env[v]
lookup(env::Environment, l::Literal) = l

"""
    inline!(b, program, x) -> results

Appends the equations of `program`, applied to the atoms `x`, with fresh variables."""
function inline!(b::Builder, p::Program, x)
    env = Environment(zip(p.inputs, x))
    for e in p.equations
        outputs = fresh(e.outputs)
        push!(b.equations,
            with(e; inputs = Atom[lookup(env, a) for a in e.inputs], outputs = outputs))
        for (v, w) in zip(e.outputs, outputs)
            env[v] = w
        end
    end
    check_cancelled()
    Atom[lookup(env, a) for a in p.outputs]
end

"A Program with every variable replaced by a fresh one."
function copy_program(p::Program)
    b, inputs = Builder(), fresh(p.inputs)
    outputs = inline!(b, p, inputs)
    Program(p.name, inputs, b.equations, outputs)
end

"""
    build(f, name, types; source = "") -> Program

The Program of what `f(b, inputs)` emits into the Builder `b`; `f` returns the outputs."""
function build(f, name, types; source = "")
    b, inputs = Builder(Equation[], source), Var[Var(t) for t in types]
    outputs = f(b, Vector{Atom}(inputs))
    Program(name, inputs, b.equations, Vector{Atom}(outputs))
end
