# Loops before their bodies are looked at: what is constant in them, and which two are one.

"""
    loop_constants(program, finish = identity) -> Program

The same Program, whose loops carry, and read trip by trip, nothing that is the same in each.
`finish` is done to the bodies of loops that change."""
function loop_constants(p::Program, finish = identity)
    any(hasbodies, p.equations) || return p
    definition = IdDict{Var,Equation}()
    with(p;
        equations = Equation[
            q for e in p.equations for
            q in finished(finish, e, loop_constants(e.op, e, defining!(definition, e)))
        ])
end
finished(finish, e, made) =
    length(made) == 1 && made[1] === e ? made : Equation[map_bodies(finish, q) for q in made]
defining!(definition, e) = (foreach(v -> definition[v] = e, e.outputs); definition)

"""
    merge_loops(program) -> Program

The same Program without loops that only move elements into stacks of which one other loop reads
slice by slice (K. Kennedy, K. S. McKinley, Maximizing loop parallelism and improving data locality
via loop fusion and distribution, 1993): the stacks, as of an array in each trip of a loop that
changes it little by little, are never there."""
function merge_loops(p::Program)
    any(e -> movesonly(e.op, e), p.equations) || return p
    equations = copy(p.equations)
    for first_ in p.equations
        movesonly(first_.op, first_) || continue
        i = findfirst(e -> e === first_, equations)
        readers = findall(e -> any(a -> any(v -> v === a, first_.outputs), e.inputs), equations)
        length(readers) == 1 && !any(a -> any(v -> v === a, first_.outputs), p.outputs) || continue
        merged = one_loop(first_.op, first_, equations[only(readers)])
        merged === nothing && continue
        equations[only(readers)] = merged
        deleteat!(equations, i)
    end
    with(p; equations = equations)
end
