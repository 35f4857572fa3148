# Which values a trip of a loop keeps for the backward loop, so that they are the fewest bytes: a
# least cut. (The residuals of a Program, before this, are chosen in ad/residuals.jl.)
#
# What is cheap to compute again need not be kept if what it is computed from is. The values kept
# are a cut of the graph of such computations, between what the unknown half needs and what has to
# be kept if anything computed from it is needed; the least cut is as large as the greatest flow.
# Sources: L. R. Ford, D. R. Fulkerson, Maximal flow through a network, 1956; for residuals, H. He,
# S. Yu, Transcending runtime-memory tradeoffs in checkpointing by being fusion aware, MLSys 2023.

"""
    fewest_loop_residuals(split, input_bytes) -> Split

The same split of a loop's body with the residuals that take the fewest bytes. `input_bytes`: how
many each known input takes, where that is not all of it (`nothing`)."""
function fewest_loop_residuals(s::Split, input_bytes)
    p, m = s.known, length(s.known.outputs) - s.residuals
    atoms = p.outputs[m+1:end]
    variables = reduce(append!, (e.outputs for e in p.equations); init = copy(p.inputs))
    all(v -> isstatic(shape(v)), variables) || return s
    cut = least_cut(p, atoms, input_bytes)
    kept = filter(v -> v in cut, variables)
    again = leading_to(atoms, cut, p)
    unknown = build(s.unknown.name,
        vcat(map(aval, kept), map(aval, s.unknown.inputs[s.residuals+1:end]))) do b, v
        env = Environment(zip(kept, v))
        for e in again
            results = emit!(b, e.op, Atom[lookup(env, a) for a in e.inputs], e.attrs)
            foreach((w, y) -> get!(env, w, y), e.outputs, results)
        end
        inline!(b, s.unknown, vcat(Atom[lookup(env, a) for a in atoms], v[length(kept)+1:end]))
    end
    known = dce(with(p; outputs = Atom[p.outputs[1:m]..., kept...]))
    Split(known, unknown, s.isknown, length(kept))
end

"The equations that lead from what is kept to what is needed."
function leading_to(needed, kept, p::Program)
    wanted = setdiff!(VarSet(needed), kept)
    equations = Equation[]
    for e in Iterators.reverse(p.equations)
        any(v -> v in wanted, e.outputs) || continue
        push!(equations, e)
        union!(wanted, (a for a in e.inputs if a isa Var && !(a in kept)))
    end
    reverse!(equations)
end

"""
A flow from values that are needed to those from which they are computed. Through each value goes as
much as it has bytes, at most; from those that are not computed again it leaves the network.
`wanted` and `computed`: on which side of a value nothing more can leave.
"""
struct Flow
    room::IdDict{Var,Int}
    operands::IdDict{Var,Vector{Var}}       # of what is computed again
    readers::IdDict{Var,Vector{Var}}
    through::IdDict{Var,Int}
    between::Dict{Tuple{UInt,UInt},Int}     # a reader and its operand
    wanted::VarSet
    computed::VarSet
    path::Vector{Tuple{Bool,Var}}           # visited by the search that is under way
end

function Flow(p::Program, input_bytes)
    f = Flow(IdDict(), IdDict(), IdDict(), IdDict(), Dict(), VarSet(), VarSet(), [])
    foreach((v, n) -> f.room[v] = something(n, bytes(aval(v))), p.inputs, input_bytes)
    for e in p.equations
        foreach(v -> f.room[v] = bytes(aval(v)), e.outputs)
        ischeaply_repeated(e) || continue
        operands = unique(Var[a for a in e.inputs if a isa Var])
        for v in e.outputs
            f.operands[v] = operands
            foreach(u -> push!(get!(() -> Var[], f.readers, u), v), operands)
        end
    end
    f
end

"The variables of the least cut that is nearest to what is needed."
function least_cut(p::Program, needed, input_bytes)
    f = Flow(p, input_bytes)
    for v in needed
        check_cancelled()
        while !(v in f.wanted) && push_wanted!(f, v, typemax(Int)) > 0
            # another way may be open now, where this search found none
            foreach(((side, u),) -> delete!(side ? f.wanted : f.computed, u), f.path)
            empty!(f.path)
        end
        empty!(f.path)
    end
    VarSet(v for v in f.wanted if !(v in f.computed))
end

visit!(f::Flow, side::Bool, v::Var) =
    (push!(side ? f.wanted : f.computed, v); push!(f.path, (side, v)))

"""
Sends up to `amount` more through `v`, or by another way what comes there from its readers; gives
how much went."""
function push_wanted!(f::Flow, v::Var, amount)
    visit!(f, true, v)
    room = f.room[v] - get(f.through, v, 0)
    if room > 0 && !(v in f.computed)
        sent = push_computed!(f, v, min(amount, room))
        sent > 0 && (f.through[v] = get(f.through, v, 0) + sent; return sent)
    end
    for u in get(f.readers, v, ())
        key = (objectid(u), objectid(v))
        back = get(f.between, key, 0)
        back > 0 && !(u in f.computed) || continue
        sent = push_computed!(f, u, min(amount, back))
        sent > 0 && (f.between[key] = back - sent; return sent)
    end
    0
end

"""
Sends up to `amount` more from `v` to its operands, or out, or by another way what
comes through `v`."""
function push_computed!(f::Flow, v::Var, amount)
    visit!(f, false, v)
    haskey(f.operands, v) || return amount
    for u in f.operands[v]
        u in f.wanted && continue
        sent, key = push_wanted!(f, u, amount), (objectid(v), objectid(u))
        sent > 0 && (f.between[key] = get(f.between, key, 0) + sent; return sent)
    end
    back = get(f.through, v, 0)
    back > 0 && !(v in f.wanted) || return 0
    sent = push_wanted!(f, v, min(amount, back))
    f.through[v] = back - sent
    sent
end
