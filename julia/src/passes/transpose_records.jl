# Records of the items of a batch, with the items last: one after the other in memory lie the same
# numbers of several items, which vectors hold, and not the several numbers of one.

"""
    transpose_records(program) -> Program

The same Program, in which the records that loops stack for the items of a batch, [trips, items,
numbers], have their numbers in front of the items. `transpose_stacks` brings the transpositions
that are next to the loops into the loops."""
function transpose_records(p::Program)
    any(hasbodies, p.equations) || return p
    equations, results = Equation[], VarSet(v for v in p.outputs if v isa Var)
    sources, records = IdDict{Var,Equation}(), IdDict{Atom,Atom}()  # by what takes their place
    for e in p.equations
        e = map_bodies(transpose_records, e)
        e = with(e; inputs = Atom[get(records, a, a) for a in e.inputs])
        transposed = IdDict{Var,Equation}(
            e.outputs[k] => numbers_first(e.outputs[k], e.source)
            for k in stacked_records(e.op, e)
            if !(e.outputs[k] in results) && shape(e.outputs[k])[end-1] >= ITEMS_OF_VECTORS
        )
        push!(equations, transpose_stacks(e.op, e, sources, transposed))
        for (v, there) in transposed
            back = numbers_first(there.outputs[1], e.source)
            push!(equations, back)
            records[v], sources[back.outputs[1]] = back.outputs[1], back
        end
    end
    dce(with(p; equations = equations))
end
"""
The transposition of a stack of records that puts the numbers in front of the items, or back behind
them."""
function numbers_first(v::Var, source)
    b, axes = Builder(Equation[], source), collect(0:ndims(aval(v))-1)
    emit(b, :transpose, v; perm = vcat(axes[1:end-2], axes[end], axes[end-1]))
    only_one(b.equations)
end
