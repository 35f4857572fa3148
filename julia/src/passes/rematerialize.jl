# Residuals that are cheaper to compute again than to write to memory and read back.

"""
    rematerialize(l::Linearized, isagain = isrepeatable) -> Linearized

The linearization whose linear part computes large residuals itself where that takes a few
elementwise operations and movements of the inputs and results, which are there anyway, and of what
is much smaller, such as sums of rows. In one loop nest with what needs them they cost no memory at
all. `isagain`: which equations it may repeat."""
function rematerialize(l::Linearized, isagain = isrepeatable)
    p, m = l.known, length(l.known.outputs) - l.residuals
    producer = IdDict{Var,Equation}(v => e for e in p.equations for v in e.outputs)
    atoms = p.outputs[m+1:end]
    at_hand = VarSet(p.inputs)
    union!(at_hand, (a for a in p.outputs[1:m] if a isa Var))
    needed = VarSet()               # the first results of the equations to be repeated
    again = VarSet(
        a for a in atoms if a isa Var && !(a in at_hand) && islarge(a) &&
        need_again!(needed, a, producer, at_hand, DEAR_RESIDUAL, isagain)
    )
    kept, equations = repeated(p, atoms, again, needed)
    # Where what is kept gives a result at little more cost, it is not kept: the result may not be
    # wanted, and then nothing remains to be computed early.
    results = [
        a for a in kept if a isa Var && islarge(a) && haskey(producer, a) && !(a in again) &&
        a in at_hand
    ]
    if !isempty(results)
        others = setdiff!(VarSet(a for a in kept if a isa Var), results)
        union!(again,
            (a for a in results
             if need_again!(needed, a, producer, others, DEAR_RESULT, isagain)))
        kept, equations = repeated(p, atoms, again, needed)
    end
    isempty(again) && return l
    linear = build(l.linear.name,
        vcat(map(aval, kept), map(aval, l.linear.inputs[l.residuals+1:end]))) do b, v
        env = Environment(a => x for (a, x) in zip(kept, v) if a isa Var)
        for e in equations
            outputs = fresh(e.outputs)
            push!(b.equations,
                with(e; inputs = Atom[lookup(env, a) for a in e.inputs], outputs = outputs))
            foreach((v, w) -> env[v] = w, e.outputs, outputs)
        end
        inline!(b, l.linear, vcat(Atom[lookup(env, a) for a in atoms], v[length(kept)+1:end]))
    end
    Linearized(dce(with(p; outputs = vcat(p.outputs[1:m], kept))), linear, l.hastangent,
        length(kept))
end

"What is kept where the residuals in `again` are not, and the equations that compute those."
function repeated(p::Program, atoms, again, needed)
    equations = [e for e in p.equations if e.outputs[1] in needed]
    made = VarSet(v for e in equations for v in e.outputs)
    leaves = unique(a for e in equations for a in e.inputs if a isa Var && !(a in made))
    unique(vcat(Atom[a for a in atoms if !(a in again)], leaves)), equations
end

"Whether `e` is a barrier before arrays that are there anyway, the same ones for each barrier."
isbarrier_of(e::Equation, at_hand) = keepsvalues(e.op) && all(a -> a in at_hand, e.inputs)

"Whether keeping `a` costs little beside `v`."
ismuchsmaller(a::Var, v::Var) =
    isstatic(shape(a)) && size_of(shape(a)) <= SMALL_PART * size_of(shape(v))
islarge(v::Var) = isstatic(shape(v)) && size_of(shape(v)) >= SMALL_RESIDUAL

"""
Whether computing `v` from what is at hand or much smaller takes no more than `limit`, in additions
an element, beyond the equations that are repeated already; if so, notes those that it takes."""
function need_again!(needed, v::Var, producer, at_hand, limit, isagain)
    mine, total = VarSet(), 0
    function visit(a)
        (a isa Literal || a in at_hand || total > limit) && return
        a === v || ismuchsmaller(a, v) && return
        e = get(producer, a, nothing)
        (e === nothing || !(isagain(e) || isbarrier_of(e, at_hand))) && return total = limit + 1
        e.outputs[1] in mine && return
        push!(mine, e.outputs[1])
        e.outputs[1] in needed || (total += cost(e.op, e))
        foreach(visit, e.inputs)
    end
    visit(v)
    total <= limit && (union!(needed, mine); true)
end
