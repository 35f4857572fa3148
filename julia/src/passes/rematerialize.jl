# Residuals that are cheaper to compute again than to write to memory and read back.

"""
    rematerialize(l::Linearized, isagain = isrepeatable) -> Linearized

The linearization whose linear part computes large residuals itself where that takes a few
elementwise operations and movements of the inputs and results, which are there anyway, of what is
much smaller, such as sums of rows, or of what is kept besides. In one loop nest with what needs
them they cost no memory at all. `isagain`: which equations it may repeat."""
function rematerialize(l::Linearized, isagain = isrepeatable)
    r = Rematerialization(l, isagain)
    for a in r.residuals
        a isa Var && !(a in r.at_hand) && islarge(a) && compute_again!(r, a, EXPENSIVE_RESIDUAL)
    end
    keep_leaves!(r)
    leave_results!(r)
    derive_from_kept!(r, IdDict{Var,Var}())
    derive_from_kept!(r, common_origins(r))
    isempty(r.again) ? l : with_repetition(l, r)
end

"What of the residuals is computed again, and what is kept instead."
mutable struct Rematerialization{F}
    known::Program
    residuals::Vector{Atom}
    producer::IdDict{Var,Equation}
    at_hand::VarSet                 # inputs and results
    isagain::F
    again::VarSet                   # the residuals that are not kept
    needed::VarSet                  # the first results of the equations to be repeated
    equations::Vector{Equation}     # these
    kept::Vector{Atom}
end
function Rematerialization(l::Linearized, isagain)
    p, m = l.known, length(l.known.outputs) - l.residuals
    producer = IdDict{Var,Equation}(v => e for e in p.equations for v in e.outputs)
    at_hand = union!(VarSet(p.inputs), (a for a in p.outputs[1:m] if a isa Var))
    residuals = Atom[p.outputs[m+1:end]...]
    Rematerialization(p, residuals, producer, at_hand, isagain, VarSet(), VarSet(), Equation[],
        residuals)
end

"""
Notes that `v` is computed again from `leaves` and what is small compared with it, if that takes no
more than `limit`, in additions an element, beyond the equations that are repeated already."""
function compute_again!(r::Rematerialization, v::Var, limit, leaves = r.at_hand,
    issmall = ismuchsmaller)
    mine, total = VarSet(), 0
    function visit(a)
        (a isa Literal || a in leaves || total > limit) && return
        a === v || issmall(a, v) && return
        e = get(r.producer, a, nothing)
        (e === nothing || !(r.isagain(e) || isbarrier_of(e, leaves))) && return total = limit + 1
        e.outputs[1] in mine && return
        push!(mine, e.outputs[1])
        e.outputs[1] in r.needed || (total += cost(e.op, e))
        foreach(visit, e.inputs)
    end
    visit(v)
    total <= limit || return false
    union!(r.needed, mine)
    push!(r.again, v)
    true
end

"Keeps what the equations that are repeated need, where the residuals in `again` are not kept."
function keep_leaves!(r::Rematerialization)
    r.equations = [e for e in r.known.equations if e.outputs[1] in r.needed]
    made = VarSet(v for e in r.equations for v in e.outputs)
    leaves = unique(a for e in r.equations for a in e.inputs if a isa Var && !(a in made))
    r.kept = unique(vcat(Atom[a for a in r.residuals if !(a in r.again)], leaves))
end
kept_variables(r::Rematerialization) = Var[a for a in r.kept if a isa Var]

"""
Where what is kept gives a result at little more cost, the result is not kept: it may not be wanted,
and then nothing remains to be computed early."""
function leave_results!(r::Rematerialization)
    results = filter(kept_variables(r)) do a
        islarge(a) && haskey(r.producer, a) && !(a in r.again) && a in r.at_hand
    end
    others = setdiff!(VarSet(kept_variables(r)), results)
    count(a -> compute_again!(r, a, EXPENSIVE_RESULT, others), results) > 0 && keep_leaves!(r)
end

"""
One of what is kept may give another, and so may an array in `origins`, which is kept then: those
behind are computed from those before them."""
function derive_from_kept!(r::Rematerialization, origins)
    for e in Iterators.reverse(r.known.equations), a in e.outputs
        any(b -> b === a, r.kept) && !(a in r.again) && !(a in r.at_hand) && iscontinuous(a) ||
            continue
        others = union!(VarSet(b for b in kept_variables(r) if b !== a), r.at_hand)
        haskey(origins, a) && push!(others, origins[a])
        compute_again!(r, a, EXPENSIVE_RESULT, others, takes_less) && keep_leaves!(r)
    end
end

"""
By residual the one array from which it, and others that take more memory together, follow, apart
from what is at hand or much smaller."""
function common_origins(r::Rematerialization)
    found = IdDict{Var,Vector{Var}}()
    for a in kept_variables(r)
        iscontinuous(a) && !(a in r.at_hand) || continue
        origins = origins_of(r, a)
        length(origins) == 1 && push!(get!(found, first(origins), Var[]), a)
    end
    IdDict{Var,Var}(
        a => v for (v, behind) in found
        if length(behind) > 1 && sum(bytes(aval(a)) for a in behind) > bytes(aval(v))
        for a in behind if a !== v
    )
end
"The arrays nearest to it that cannot be computed again."
function origins_of(r::Rematerialization, v::Var)
    found, seen = VarSet(), VarSet()
    function visit(a)
        (a isa Literal || a in r.at_hand || a in seen) && return
        a !== v && ismuchsmaller(a, v) && return
        push!(seen, a)
        e = get(r.producer, a, nothing)
        (e === nothing || !r.isagain(e)) && return push!(found, a)
        foreach(visit, e.inputs)
    end
    visit(v)
    found
end

function with_repetition(l::Linearized, r::Rematerialization)
    p, m = l.known, length(l.known.outputs) - l.residuals
    types = vcat(map(aval, r.kept), map(aval, l.linear.inputs[l.residuals+1:end]))
    linear = build(l.linear.name, types) do b, v
        env = Environment(a => x for (a, x) in zip(r.kept, v) if a isa Var)
        for e in r.equations
            outputs = fresh(e.outputs)
            push!(b.equations,
                with(e; inputs = Atom[lookup(env, a) for a in e.inputs], outputs = outputs))
            foreach((v, w) -> env[v] = w, e.outputs, outputs)
        end
        inline!(b, l.linear,
            vcat(Atom[lookup(env, a) for a in r.residuals], v[length(r.kept)+1:end]))
    end
    known = dce(with(p; outputs = vcat(p.outputs[1:m], r.kept)))
    Linearized(known, linear, l.hastangent, length(r.kept))
end

"Whether `e` is a barrier before arrays that are there anyway, the same ones for each barrier."
isbarrier_of(e::Equation, at_hand) = keepsvalues(e.op) && all(a -> a in at_hand, e.inputs)

"Whether keeping `a` costs little compared with `v`."
ismuchsmaller(a::Var, v::Var) =
    isstatic(shape(a)) && size_of(shape(a)) <= SMALL_PART * size_of(shape(v))
"The same of the bytes, of whatever shape."
takes_less(a::Var, v::Var) =
    isstatic(shape(a)) && bytes(aval(a)) <= SMALLER_DTYPE * bytes(aval(v))
islarge(v::Var) = isstatic(shape(v)) && size_of(shape(v)) >= SMALL_RESIDUAL
"Large, and no comparison, which would come out otherwise when it is rounded otherwise."
iscontinuous(v::Var) = islarge(v) && isinexact(dtype(v))
