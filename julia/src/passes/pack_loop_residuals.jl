# Numbers that a loop keeps for every trip lie side by side, a record a trip, and not each in an
# array of its own.

"""
    pack_loop_residuals(split, input_bytes) -> Split

The same split with all residuals of rank 0 and one dtype in one array, except known inputs that
take no bytes and need not be kept."""
function pack_loop_residuals(s::Split, input_bytes)
    p, m = s.known, length(s.known.outputs) - s.residuals
    atoms, there = p.outputs[m+1:end], VarSet(v for (v, n) in zip(p.inputs, input_bytes) if n == 0)
    loose = [a for a in atoms if isscalar(a) && !(a in there)]
    lists = filter!(list -> length(list) > 1,
        [alike_together(p, filter(a -> dtype(a) === T, loose)) for T in unique(map(dtype, loose))])
    isempty(lists) && return s
    others = setdiff(atoms, lists...)::Vector{Atom}
    b = Builder(copy(p.equations), "")
    records =
        Atom[
            emit!(b, primitive(:concatenate),
                Atom[emit(b, :reshape, a; shape = [1]) for a in list],
                Attributes(:dim => 0))[1] for list in lists
        ]
    unknown = build(s.unknown.name,
        vcat(map(aval, others), map(aval, records),
            map(aval, s.unknown.inputs[s.residuals+1:end]))) do b, v
        env = Environment(zip(others, v))
        for (list, record) in zip(lists, v[length(others)+1:end])
            parts = emit!(b, primitive(:split), Atom[record],
                Attributes(:axis => 0, :sizes => ones(Int, length(list))))
            foreach((a, part) -> env[a] = emit(b, :reshape, part; shape = Int[]), list, parts)
        end
        inline!(b, s.unknown,
            vcat(Atom[lookup(env, a) for a in atoms], v[length(others)+length(records)+1:end]))
    end
    Split(with(p; equations = b.equations, outputs = vcat(p.outputs[1:m], others, records)),
        unknown, s.isknown, length(others) + length(records))
end

"""
The variables, those that are computed in the same way next to each other: what a loop written out
does for each of many nodes, LLVM does for several at once where the results are neighbours
(superword level parallelism; S. Larsen, S. Amarasinghe, PLDI 2000)."""
function alike_together(p::Program, list)
    producer = IdDict{Var,Equation}(v => e for e in p.equations for v in e.outputs)
    kind(a, depth) =
        a isa Literal ? hash(a.value) :
        !haskey(producer, a) ? hash(:input) :
        depth == 0 ? hash(:computed) :
        foldl((h, x) -> hash(kind(x, depth - 1), h), producer[a].inputs;
            init = hash(name(producer[a].op)))
    kinds = [kind(a, LIKENESS) for a in list]
    list[sortperm(indexin(kinds, unique(kinds)))]
end
