# Sums as wholes: terms under the same linear map are added first, terms that several sums share are added once.
#
# A sum is a tree of add, sub and neg whose inner nodes are used once. Its terms may be regrouped, which changes the value by rounding
# only; nothing cancels. Programs that compute with rounding errors themselves (compensated summation, error-free products) reach
# one quantity by two ways of adding and subtract, so their terms have additive ancestors in common, with opposite signs: such terms
# are left as they stand.

"A signed term."
struct Term
    negative::Bool
    atom::Atom
end

mutable struct Sum
    root::Equation                  # the equation whose result the sum is
    members::Vector{Equation}       # all equations of the tree
    terms::Vector{Term}
    changed::Bool
end

const LONGEST_SHARED = 16           # longer sums are not searched for shared pairs: their number grows with the square

"""
    factor_sums(program) -> Program

`L(u) + L(v) → L(u + v)` for linear maps L, and pairs of terms common to several sums computed once."""
function factor_sums(p::Program)
    uses = use_counts(p)
    definition = IdDict{Var,Equation}(v => e for e in p.equations for v in e.outputs)
    sums = find_sums(p, uses, definition)
    isempty(sums) && return p
    before = IdDict{Equation,Vector{Equation}}()    # new equations, in front of a sum's root
    for s in sums
        before[s.root] = Equation[]
        factor_linear_maps!(s, uses, definition, before[s.root])
    end
    share_pairs!(sums, before)
    any(s -> s.changed, sums) || return p
    rebuild(p, sums, before)
end

function use_counts(p::Program)
    uses = IdDict{Var,Int}()
    count_use(a) = a isa Var && (uses[a] = get(uses, a, 0) + 1)
    for e in p.equations; foreach(count_use, e.inputs); end
    foreach(count_use, p.outputs)
    uses
end

issum(e::Equation) = e.op isa Elementwise && e.op.name in (:add, :sub, :neg) && isinexact(dtype(e.outputs[1])) &&
                     all(a -> a isa Var, e.inputs)
"The signed operands of an add, sub or neg."
signed_operands(e::Equation) = e.op.name === :add ? [Term(false, a) for a in e.inputs] :
    e.op.name === :sub ? [Term(false, e.inputs[1]), Term(true, e.inputs[2])] : [Term(true, e.inputs[1])]

function find_sums(p::Program, uses, definition)
    inner = Base.IdSet{Equation}()
    sums = Sum[]
    for e in Iterators.reverse(p.equations)
        (issum(e) && !(e in inner)) || continue
        members, terms, stack = Equation[], Term[], [Term(false, e.outputs[1])]
        while !isempty(stack)
            t = pop!(stack)
            d = get(definition, t.atom, nothing)
            whole = d !== nothing && issum(d) && (d === e || uses[t.atom] == 1)
            # A sign is exact, so it may be looked through however often it is used.
            if whole || d !== nothing && issum(d) && d.op.name === :neg
                whole && push!(members, d)
                whole && push!(inner, d)
                for operand in Iterators.reverse(signed_operands(d))
                    push!(stack, Term(operand.negative != t.negative, operand.atom))
                end
            else
                push!(terms, t)
            end
        end
        length(terms) > 1 && independent(definition, terms) && push!(sums, Sum(e, members, terms, false))
    end
    reverse!(sums)
end

const MANY_ANCESTORS = 64

"""
Whether no two of the terms have an additive ancestor in common with opposite signs (in doubt, that is with very many ancestors: no).
What they share with one sign cannot cancel."""
function independent(definition, terms)
    reached = Set{Tuple{Var,Bool}}()      # signed ancestors of the terms so far
    for t in terms
        t.atom isa Var || continue
        own, stack = Set{Tuple{Var,Bool}}(), [(t.atom, t.negative)]
        while !isempty(stack)
            (v, negative) = pop!(stack)
            (v, negative) in own && continue
            ((v, !negative) in reached || length(own) > MANY_ANCESTORS) && return false
            push!(own, (v, negative))
            e = get(definition, v, nothing)
            isadditive(e) && append!(stack, [(o.atom, o.negative != negative) for o in signed_operands(e) if o.atom isa Var])
        end
        union!(reached, own)
    end
    true
end
isadditive(e) = e !== nothing && e.op isa Elementwise && e.op.name in (:add, :sub, :neg)

# ---- L(u) + L(v) → L(u + v)

"""
    factor_slots(op, eqn) -> positions

The operands in which the primitive is linear with all others fixed, where adding before applying it is no more work than after."""
factor_slots(op::Primitive, eqn) = ()
factor_slots(op::Elementwise, eqn) = op.name === :mul ? (1, 2) : op.name === :div ? (1,) : ()
factor_slots(::Union{BroadcastInDim,Reshape,ReduceSum}, eqn) = (1,)

"All but the operand in `slot`: terms with equal keys are the same linear map of that operand."
map_key(e::Equation, slot) = (e.op, name(e.op) === :mul ? 0 : slot, Any[identity_key(a) for (k, a) in enumerate(e.inputs) if k != slot],
                              aval(e.inputs[slot]), Any[attribute_key(e.attrs[k]) for k in attributes(e.op) if haskey(e.attrs, k)])
identity_key(a::Var) = objectid(a)
identity_key(a::Literal) = a

function factor_linear_maps!(s::Sum, uses, definition, fresh_equations)
    groups = Dict{Any,Vector{Tuple{Int,Int}}}()
    for (k, t) in enumerate(s.terms)
        e = get(definition, t.atom, nothing)
        (e === nothing || uses[t.atom] > 1) && continue
        for slot in factor_slots(e.op, e)
            e.inputs[slot] isa Var && push!(get!(Vector{Tuple{Int,Int}}, groups, map_key(e, slot)), (k, slot))
        end
    end
    gone, joined = falses(length(s.terms)), falses(length(s.terms))
    waiting(k) = !gone[k] && !joined[k]
    for (k, t) in enumerate(s.terms)
        e = get(definition, t.atom, nothing)
        (!waiting(k) || e === nothing || uses[t.atom] > 1) && continue
        for slot in factor_slots(e.op, e)
            e.inputs[slot] isa Var || continue
            group = unique(first, [g for g in groups[map_key(e, slot)] if waiting(g[1])])
            operands = [Term(s.terms[i].negative, definition[s.terms[i].atom].inputs[position]) for (i, position) in group]
            length(operands) > 1 && independent(definition, operands) || continue
            place = group[1][1]
            s.terms[place] = join_terms(s, e, slot, operands, fresh_equations)
            joined[place] = true
            for (i, _) in group[2:end]; gone[i] = true; end
            s.changed = true
            break
        end
    end
    s.terms = s.terms[.!gone]
end

"The one term that stands for terms under one linear map: the map of the sum of their operands."
function join_terms(s::Sum, e::Equation, slot, operands, fresh_equations)
    b = Builder(Equation[], s.root.source)
    flip = all(t -> t.negative, operands)
    total = emit_sum!(b, flip ? [Term(false, t.atom) for t in operands] : operands)
    inputs = Atom[k == slot ? total : a for (k, a) in enumerate(e.inputs)]
    joined = only_one(emit!(b, e.op, inputs, e.attrs))
    append!(fresh_equations, b.equations)
    Term(flip, joined)
end

"Adds signed terms, a positive one first if there is one."
function emit_sum!(b::Builder, terms)
    start = something(findfirst(t -> !t.negative, terms), 1)
    total = terms[start].negative ? emit(b, :neg, terms[start].atom) : terms[start].atom
    for (k, t) in enumerate(terms)
        k == start || (total = emit(b, t.negative ? :sub : :add, total, t.atom))
    end
    total
end

# ---- pairs of terms that several sums share

"A pair of signed terms up to a common sign: its key, and whether this occurrence is negated."
function pair_key(t::Term, u::Term)
    i, j = objectid(t.atom), objectid(u.atom)
    i > j && return pair_key(u, t)
    (i, j, t.negative == u.negative), t.negative
end

function share_pairs!(sums, before)
    while true
        occurrences = Dict{Any,Vector{Tuple{Sum,Int,Int}}}()
        for s in sums
            length(s.terms) <= LONGEST_SHARED || continue
            for j in 2:length(s.terms), i in 1:j-1
                key, _ = pair_key(s.terms[i], s.terms[j])
                list = get!(Vector{Tuple{Sum,Int,Int}}, occurrences, key)
                any(o -> o[1] === s, list) || push!(list, (s, i, j))
            end
        end
        # Sums come in program order: the first to hold the pair computes it.
        candidates = [list for list in values(occurrences) if length(list) > 1 && worthwhile(list)]
        isempty(candidates) && return
        sort!(candidates; by = list -> (-length(list), findfirst(s -> s === list[1][1], sums), list[1][2], list[1][3]))
        share!(candidates[1], before)
    end
end

"Sharing saves an equation unless the pair is the whole of every sum already (common subexpressions see to that)."
worthwhile(list) = any(o -> length(o[1].terms) > 2, list)

function share!(list, before)
    s, i, j = list[1]
    _, negated = pair_key(s.terms[i], s.terms[j])
    b = Builder(Equation[], s.root.source)
    terms = [s.terms[i], s.terms[j]]
    flip = all(t -> t.negative, terms)
    total = emit_sum!(b, flip ? [Term(false, t.atom) for t in terms] : terms)
    append!(before[s.root], b.equations)
    # `total` is the pair with the sign it has in `s`, or negated when flipped.
    for (other, k, l) in list
        _, other_negated = pair_key(other.terms[k], other.terms[l])
        sign = (other_negated != negated) != flip
        other.terms[k] = Term(sign, total)
        deleteat!(other.terms, l)
        other.changed = true
    end
end

# ---- writing the result

function rebuild(p::Program, sums, before)
    owner = IdDict{Equation,Sum}(s.root => s for s in sums if s.changed)
    dropped = Base.IdSet{Equation}()
    for s in sums
        s.changed && union!(dropped, s.members)
    end
    equations, env = Equation[], Environment()
    substitute(e) = with(e; inputs = Atom[a isa Var ? get(env, a, a) : a for a in e.inputs])
    for e in p.equations
        haskey(before, e) && append!(equations, map(substitute, before[e]))
        if haskey(owner, e)
            b = Builder(Equation[], e.source)
            s = owner[e]
            terms = [Term(t.negative, t.atom isa Var ? get(env, t.atom, t.atom) : t.atom) for t in s.terms]
            env[e.outputs[1]] = emit_sum!(b, terms)
            append!(equations, b.equations)
        elseif !(e in dropped)
            push!(equations, substitute(e))
        end
    end
    with(p; equations = equations, outputs = Atom[a isa Var ? get(env, a, a) : a for a in p.outputs])
end
