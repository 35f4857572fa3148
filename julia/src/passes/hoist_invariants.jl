# Loop-invariant code (Allen, Cocke 1972, A catalogue of optimizing transformations: "code motion"):
# what a loop would compute in every trip from its constants alone is computed once before it. A
# Hessian-vector product inside of a loop, as of conjugate gradients, has all of the gradient's own
# values there.

"""
The equations in front of a loop, and those of them, and of the Program so far, that another may be
equal to."""
struct Hoisted
    equations::Vector{Equation}
    seen::Dict{Computation,Vector{Var}}
end

"""
    hoist_invariants(program) -> Program

The same Program, whose loops do not repeat what is expensive and the same in every trip. What stood
before the loop already is not computed again."""
function hoist_invariants(p::Program)
    any(hasbodies, p.equations) || return p
    hoisted = Hoisted(Equation[], Dict{Computation,Vector{Var}}())
    for e in p.equations
        check_cancelled()
        e = hoist_invariants!(e.op, hoisted, map_bodies(hoist_invariants, e))
        push!(hoisted.equations, e)
        get!(hoisted.seen, computation(e), e.outputs)
    end
    with(p; equations = hoisted.equations)
end

"""
A loop's body with further constants, after those it has, and their values, whose
equations are hoisted."""
function without_invariants!(hoisted::Hoisted, body::Program, consts)
    n = length(consts)
    fixed, moved = invariant(body, n)
    stays(e) = !(e.outputs[1] in moved)
    read_inside = VarSet(a for e in body.equations if stays(e) for a in e.inputs if a isa Var)
    union!(read_inside, (a for a in body.outputs if a isa Var))
    wanted = Var[v for e in body.equations if !stays(e) for v in e.outputs if v in read_inside]
    env = Environment(zip(body.inputs[1:n], consts))
    outside = live_equations([e for e in body.equations if e.outputs[1] in fixed], wanted)
    append_once!(hoisted, env, outside)
    inside = with(body; inputs = vcat(body.inputs[1:n], wanted, body.inputs[n+1:end]),
        equations = filter(stays, body.equations))
    dce(inside), Atom[env[v] for v in wanted]
end

"""
What depends on the first n inputs alone, and of that what is worth moving: whatever is expensive or
computed from it, except mere movement of elements."""
function invariant(body::Program, n)
    fixed, expensive, moved = VarSet(body.inputs[1:n]), VarSet(), VarSet()
    for e in body.equations
        all(a -> a isa Literal || a in fixed, e.inputs) || continue
        union!(fixed, e.outputs)
        isexpensive(e) || any(a -> a in expensive, e.inputs) || continue
        union!(expensive, e.outputs)
        ismovement(e) || union!(moved, e.outputs)
    end
    fixed, moved
end
"""
Appends the equations, with their variables as in `env`, but takes results of equal
ones that are there."""
function append_once!(hoisted::Hoisted, env, outside)
    for e in outside
        q = with(e; inputs = Atom[lookup(env, a) for a in e.inputs], outputs = fresh(e.outputs))
        results = get!(hoisted.seen, computation(q)) do
            push!(hoisted.equations, q)
            q.outputs
        end
        foreach((v, a) -> env[v] = a, e.outputs, results)
    end
end
