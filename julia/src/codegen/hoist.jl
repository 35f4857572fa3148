# Loop-invariant code (Allen, Cocke 1972, A catalogue of optimizing transformations: "code motion"): what a loop would compute in every
# trip from its constants alone is computed once before it. A Hessian-vector product inside of a loop, as of conjugate gradients, has all
# of the gradient's own values there.

"An elementwise equation of this cost, in additions, is not computed again in every trip."
const DEAR = 10

"The Program whose loops do not repeat what is dear and the same in every trip. What stood before the loop already is not computed again."
function hoisted(p::Program)
    any(hasbodies, p.equations) || return p
    equations, seen = Equation[], Dict{Computation,Vector{Var}}()
    for e in p.equations
        checkpoint()
        e = move_out!(equations, seen, e.op, map_bodies(hoisted, e))
        push!(equations, e)
        get!(seen, computation(e), e.outputs)
    end
    with(p; equations = equations)
end

"Appends what need not be in the loop to the equations before it, and gives the rest."
move_out!(equations, seen, ::Primitive, e) = e
function move_out!(equations, seen, op::Scan, e)
    e[:length] > 1 || return e
    consts, carry, xs = operand_parts(e.attrs, e.inputs)
    body, values = without_invariant!(equations, seen, e[:body], consts)
    isempty(values) ? e : with(e; inputs = vcat(consts, values, carry, xs), attrs = scan_attrs(e.attrs, body, length(consts) + length(values), length(carry)))
end
function move_out!(equations, seen, op::While, e)
    cond_consts, body_consts, carry = loop_parts(e.attrs, e.inputs)
    body, values = without_invariant!(equations, seen, e[:body], body_consts)
    isempty(values) ? e : with(e; inputs = vcat(cond_consts, body_consts, values, carry),
                               attrs = while_attrs(e.attrs, length(cond_consts), length(body_consts) + length(values), e[:cond], body))
end

"The body with further constants, after those it has, and their values, whose equations are appended to `equations`."
function without_invariant!(equations, seen, body::Program, consts)
    n = length(consts)
    fixed, moved = invariant(body, n)
    stays(e) = !(e.outputs[1] in moved)
    read_inside = VarSet(a for e in body.equations if stays(e) for a in e.inputs if a isa Var)
    union!(read_inside, (a for a in body.outputs if a isa Var))
    wanted = Var[v for e in body.equations if !stays(e) for v in e.outputs if v in read_inside]
    env = Environment(zip(body.inputs[1:n], consts))
    outside = live_equations([e for e in body.equations if e.outputs[1] in fixed], wanted)
    append_once!(equations, seen, env, outside)
    inside = with(body; inputs = vcat(body.inputs[1:n], wanted, body.inputs[n+1:end]), equations = filter(stays, body.equations))
    dce(inside), Atom[env[v] for v in wanted]
end

"What depends on the first n inputs alone, and of that what is worth moving: whatever is dear or computed from it, except mere movement of elements."
function invariant(body::Program, n)
    fixed, dear, moved = VarSet(body.inputs[1:n]), VarSet(), VarSet()
    for e in body.equations
        all(a -> a isa Literal || a in fixed, e.inputs) || continue
        union!(fixed, e.outputs)
        isdear(e.op, e) || any(a -> a in dear, e.inputs) || continue
        union!(dear, e.outputs)
        movement = isfusable(e.op, e) && cost(e.op, e) == 0 || e.op isa Reshape
        movement || union!(moved, e.outputs)
    end
    fixed, moved
end
isdear(op::Primitive, e) = !isfusable(op, e) || cost(op, e) >= DEAR
isdear(::Union{Reshape,Constant}, e) = false

"Appends the equations, with their variables as in `env`, but takes results of equal ones that are there."
function append_once!(equations, seen, env, outside)
    for e in outside
        q = with(e; inputs = Atom[lookup(env, a) for a in e.inputs], outputs = fresh(e.outputs))
        results = get!(seen, computation(q)) do
            push!(equations, q)
            q.outputs
        end
        foreach((v, a) -> env[v] = a, e.outputs, results)
    end
end
