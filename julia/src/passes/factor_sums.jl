# Sums as wholes: terms under the same linear map are added first, terms that several sums share are
# added once.
#
# A sum is a tree of add, sub and neg whose inner nodes are used once. Its terms may be regrouped,
# which changes the value by rounding only; nothing cancels. Programs that compute with rounding
# errors themselves (compensated summation, error-free products) reach one quantity by two ways of
# adding and subtract, so their terms have additive ancestors in common, with opposite signs: such
# terms are left as they stand.
#
# The range is that of sums: a sum may overflow on the way in one order of its terms and not in
# another. Through a linear map terms are added only where the map moves or adds elements, or
# multiplies by a number that is not below 1 (`linear_slots`); else u + v may be infinite where
# u w + v w is not. The exception are matrix products of terms over half of the largest number, in
# all but half precision: adding first halves their work.

"A signed term."
struct Term
    negative::Bool
    atom::Atom
end

mutable struct Sum
    place::Int                      # among the Program's sums
    root::Equation                  # the equation whose result the sum is
    members::Vector{Var}            # the results of all equations of the tree
    terms::Vector{Term}
    before::Vector{Equation}        # new equations, in front of the root
    changed::Bool
    # whether its terms may be regrouped, found out when it matters
    independent::Union{Bool,Nothing}
end

"""
    factor_sums(program) -> Program

`L(u) + L(v) → L(u + v)` for linear maps L, and pairs of terms common to several sums computed once;
the Program itself where there are none."""
function factor_sums(p::Program)
    uses = use_counts(p)
    definition = IdDict{Var,Equation}(v => e for e in p.equations for v in e.outputs)
    sums = find_sums(p, uses, definition)
    foreach(s -> factor_linear_maps!(s, uses, definition), sums)
    share_pairs!(sums, definition)
    any(s -> s.changed, sums) ? rebuild(p, sums) : p
end

isadditive(e) = e !== nothing && name(e.op) in (:add, :sub, :neg)
issum(e) = isadditive(e) && isinexact(dtype(e.outputs[1])) && all(a -> a isa Var, e.inputs)
"The signed operands of an add, sub or neg."
signed_operands(e::Equation) =
    name(e.op) === :add ? [Term(false, a) for a in e.inputs] :
    name(e.op) === :sub ?
    [Term(false, e.inputs[1]),
        Term(true, e.inputs[2])] : [Term(true, e.inputs[1])]

function find_sums(p::Program, uses, definition)
    inner, sums = VarSet(), Sum[]
    for e in Iterators.reverse(p.equations)
        issum(e) && !(e.outputs[1] in inner) || continue
        members, terms = sum_tree(e, uses, definition)
        union!(inner, members)
        length(terms) > 1 && push!(sums, Sum(0, e, members, terms, Equation[], false, nothing))
    end
    reverse!(sums)
    for (k, s) in enumerate(sums)
        s.place = k
    end
    sums
end

"The results of a sum's equations, and its terms."
function sum_tree(root::Equation, uses, definition)
    result = root.outputs[1]
    # with each: whether this sum alone needs what is between the root and it
    members, terms, stack = Var[], Term[], [(Term(false, result), true)]
    while !isempty(stack)
        t, own = pop!(stack)
        e = t.atom isa Var ? get(definition, t.atom, nothing) : nothing
        summed = issum(e)
        whole = summed && (t.atom === result || uses[t.atom] == 1)
        own &= whole
        own && push!(members, t.atom)
        # A sign is exact, so it may be looked through however often it is used.
        if whole || summed && name(e.op) === :neg
            for operand in Iterators.reverse(signed_operands(e))
                push!(stack, (Term(operand.negative != t.negative, operand.atom), own))
            end
        else
            push!(terms, t)
        end
    end
    members, terms
end

"""
Whether no two of the terms have an additive ancestor in common with opposite signs (in doubt, that
is with very many ancestors: no). What they share with one sign cannot cancel."""
function independent(definition, terms)
    # additive ancestors of the terms so far -> the signs they come with, as bits
    reached = IdDict{Var,UInt8}()
    for t in terms
        t.atom isa Var || continue
        own, count, stack = IdDict{Var,UInt8}(), 0, [t]
        while !isempty(stack)
            s = pop!(stack)
            mine, opposite = s.negative ? (0x2, 0x1) : (0x1, 0x2)
            signs = get(own, s.atom, 0x0)
            signs & mine == 0x0 || continue
            (get(reached, s.atom, 0x0) & opposite == 0x0 && count <= MANY_ANCESTORS) || return false
            own[s.atom] = signs | mine
            count += 1
            e = get(definition, s.atom, nothing)
            isadditive(e) || continue
            for o in signed_operands(e)
                o.atom isa Var && push!(stack, Term(o.negative != s.negative, o.atom))
            end
        end
        merge!(|, reached, own)
    end
    true
end
function mayregroup(s::Sum, definition)
    s.independent === nothing && (s.independent = independent(definition, s.terms))
    s.independent
end

"The signed sum of the terms; of negative ones alone, the sum of their opposites, negated."
function summed!(b::Builder, terms)
    flip = all(t -> t.negative, terms)
    Term(flip, emit_sum!(b, flip ? [Term(false, t.atom) for t in terms] : terms))
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

# ---- L(u) + L(v) → L(u + v)

"""
All but the operand in `slot`: terms with equal maps are the same linear map of that operand, its
axes in any order."""
function linear_map(e::Equation, slot)
    axes, attrs = standard_axes(e.op, e, slot)
    u = aval(e.inputs[slot])
    Computation(e.op, Atom[a for (k, a) in enumerate(e.inputs) if k != slot],
        [TensorType(u.dtype, u.shape[axes.+1])],
        Any[name(e.op) === :mul ? 0 : slot, attribute_values(with(e; attrs = attrs))...])
end

"""
The linear maps of which a term is a value that nothing else uses, with the positions
of their operands."""
function linear_maps(t::Term, uses, definition)
    e = t.atom isa Var && uses[t.atom] == 1 ? get(definition, t.atom, nothing) : nothing
    e === nothing ? Tuple{Computation,Int}[] :
    [(linear_map(e, slot), slot) for slot in linear_slots(e.op, e) if e.inputs[slot] isa Var]
end

function factor_linear_maps!(s::Sum, uses, definition)
    maps = [linear_maps(t, uses, definition) for t in s.terms]
    count(!isempty, maps) > 1 || return
    groups = Dict{Computation,Vector{Tuple{Int,Int}}}()
    for (k, found) in enumerate(maps), (map, slot) in found
        push!(get!(Vector{Tuple{Int,Int}}, groups, map), (k, slot))
    end
    gone, joined = falses(length(maps)), falses(length(maps))
    waiting(k) = !gone[k] && !joined[k]
    for k in eachindex(maps), (map, slot) in maps[k]
        waiting(k) || continue
        group = unique(first, [g for g in groups[map] if waiting(g[1])])
        length(group) > 1 && mayregroup(s, definition) || continue
        equations = [definition[s.terms[i].atom] for (i, _) in group]
        operands = [
            Term(s.terms[i].negative, e.inputs[position])
            for ((i, position), e) in zip(group, equations)
        ]
        independent(definition, operands) || continue
        place = group[1][1]
        orders = [standard_axes(e.op, e, position)[1]
                  for ((_, position), e) in zip(group, equations)]
        s.terms[place] =
            joined_terms!(s, definition[s.terms[k].atom], slot, operands, orders)
        joined[place] = true
        for (i, _) in group[2:end]
            gone[i] = true
        end
        s.changed = true
    end
    s.terms = s.terms[.!gone]
end

"""
The one term that stands for terms under one linear map: the map of the sum of their operands, whose
axes are in these orders where they are in their standard order."""
function joined_terms!(s::Sum, e::Equation, slot, operands, orders)
    b = Builder(s.before, s.root.source)
    standard, _ = standard_axes(e.op, e, slot)
    total = summed!(b, [with_axes!(b, t, axes[sortperm(standard)])
                        for (t, axes) in zip(operands, orders)])
    inputs = Atom[k == slot ? total.atom : a for (k, a) in enumerate(e.inputs)]
    Term(total.negative, only_one(emit!(b, e.op, inputs, e.attrs)))
end

with_axes!(b::Builder, t::Term, perm) =
    issorted(perm) ? t : Term(t.negative, emit(b, :transpose, t.atom; perm = perm))

# ---- pairs of terms that several sums share

"Two terms of a sum."
struct Pairing
    sum::Sum
    first::Int
    second::Int
end
const PairKey = Tuple{UInt,UInt,Bool}

"A pair of signed terms up to a common sign: its key, and whether this occurrence is negated."
function pair_key(t::Term, u::Term)
    i, j = objectid(t.atom), objectid(u.atom)
    i > j && return pair_key(u, t)
    (i, j, t.negative == u.negative), t.negative
end
pair_key(o::Pairing) = pair_key(o.sum.terms[o.first], o.sum.terms[o.second])

"""
Computes shared pairs once, the most shared first, until none is left. A pass touches each sum once;
the pairs that this makes are the next one's."""
function share_pairs!(sums, definition)
    while true
        touched = falses(length(sums))
        for list in shared_pairs(sums, definition)
            any(o -> touched[o.sum.place], list) && continue
            share!(list)
            for o in list
                touched[o.sum.place] = true
            end
        end
        any(touched) || return
    end
end

function shared_pairs(sums, definition)
    occurrences = Dict{PairKey,Vector{Pairing}}()
    for s in sums
        length(s.terms) <= LONGEST_SHARED || continue
        for j in 2:length(s.terms), i in 1:j-1
            key, _ = pair_key(s.terms[i], s.terms[j])
            list = get!(Vector{Pairing}, occurrences, key)
            isempty(list) || last(list).sum !== s ? push!(list, Pairing(s, i, j)) : nothing
        end
    end
    lists = [
        filter(o -> mayregroup(o.sum, definition), list)
        for list in values(occurrences) if length(list) > 1
    ]
    # Sums come in program order: the first to hold the pair computes it.
    sort!(filter!(isworthwhile, lists);
        by = list -> (-length(list), list[1].sum.place, list[1].first, list[1].second))
end

"""
Sharing saves an equation unless the pair is the whole of every sum already (common subexpressions
see to that)."""
isworthwhile(list) = length(list) > 1 && any(o -> length(o.sum.terms) > 2, list)

function share!(list)
    s, (_, negated) = list[1].sum, pair_key(list[1])
    total = summed!(Builder(s.before, s.root.source),
        [s.terms[list[1].first], s.terms[list[1].second]])
    for o in list
        _, other_negated = pair_key(o)
        o.sum.terms[o.first] = Term((other_negated != negated) != total.negative, total.atom)
        deleteat!(o.sum.terms, o.second)
        o.sum.changed = true
    end
end

# ---- writing the result

function rebuild(p::Program, sums)
    owner, dropped = IdDict{Var,Sum}(s.root.outputs[1] => s for s in sums if s.changed), VarSet()
    for s in sums
        s.changed && union!(dropped, s.members)
    end
    b, env = Builder(), Environment()
    current(a) = a isa Var ? get(env, a, a) : a
    append_current!(e) =
        push!(
            b.equations,
            any(a -> haskey(env, a), e.inputs) ?
            with(e; inputs = Atom[current(a) for a in e.inputs]) : e
        )
    for e in p.equations
        s = get(owner, e.outputs[1], nothing)
        if s !== nothing
            foreach(append_current!, s.before)
            b.source = e.source
            env[e.outputs[1]] = emit_sum!(b, [Term(t.negative, current(t.atom)) for t in s.terms])
        elseif !(e.outputs[1] in dropped)
            append_current!(e)
        end
    end
    with(p; equations = b.equations, outputs = Atom[current(a) for a in p.outputs])
end
