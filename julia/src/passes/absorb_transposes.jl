# Products read their factors as they lie: a transposed copy takes longer than a product of few
# rows. Values stay the same. A result that is transposed stays so: a product of few columns is
# slower than one of few rows with a copy of its result.

"""
    absorb_transposes(program) -> Program

The same Program, in which equations read what is transposed before it is, where they can
(`absorbed`)."""
function absorb_transposes(p::Program)
    definition = IdDict{Var,Equation}()
    bound(a::Atom) = a isa Var ? get(definition, a, nothing) : nothing
    equations = map(p.equations) do e
        e = absorbing(map_bodies(absorb_transposes, e), bound)
        foreach(v -> definition[v] = e, e.outputs)
        e
    end
    dce(with(p; equations = equations))
end
function absorbing(e::Equation, definition)
    better = absorbed(e.op, e, definition)
    better === nothing ? e : absorbing(better, definition)
end
