# Products read their factors as they lie, and give their result as it is read: a transposed copy
# takes longer than a product of few rows. Values stay the same.

"""
    absorb_transposes(program) -> Program

The same Program, in which equations read what is transposed before it is, and give what is
transposed after them, where they can (`absorbed`)."""
function absorb_transposes(p::Program)
    bindings = Bindings(IdDict{Var,Equation}(), use_counts(p))
    equations = map(p.equations) do e
        e = absorbing(bindings, map_bodies(absorb_transposes, e))
        foreach(v -> bindings.definition[v] = e, e.outputs)
        e
    end
    dce(with(p; equations = equations))
end

"What binds a variable, and how often that is used."
struct Bindings
    definition::IdDict{Var,Equation}
    uses::IdDict{Var,Int}
end
(b::Bindings)(a::Atom) = a isa Var ? get(b.definition, a, nothing) : nothing
isonly_use(b::Bindings, a) = get(b.uses, a, 0) == 1

function absorbing(bindings::Bindings, e::Equation)
    better = absorbed(e.op, e, bindings)
    better === nothing ? e : absorbing(bindings, better)
end
