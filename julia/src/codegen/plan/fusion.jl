# Fusion: which roots one loop nest computes, and the order of the stages. (Which arrays are kept in
# memory, and so are not computed where they are read, is decided in materialization.jl.)

"""
Calls `f(u, here)` for every variable in memory or a register that computing `v` reads; `here` says
that it is read at the very place of the element computed."""
function each_leaf(@nospecialize(f), atoms, producer, memory; here = true,
    seen = (VarSet(), VarSet()))
    for v in atoms
        v isa Var || continue
        v in seen[here+1] && continue
        push!(seen[here+1], v)
        if isvirtual(memory, producer, v)
            each_leaf(f, producer[v], producer, memory; here = here, seen = seen)
        else
            f(v, here)
        end
    end
end
each_leaf(@nospecialize(f), e::Equation, producer, memory; here = true,
    seen = (VarSet(), VarSet())) =
    for (k, a) in enumerate(e.inputs)
        each_leaf(f, (a,), producer, memory; seen = seen,
            here = here && (isreduction(e) || reads_here(e.op, k)))
    end

function fuse(p::Program, producer, memory)
    stages, made = Stage[], IdDict{Var,Int}()
    for e in p.equations
        check_cancelled()
        if isreduction(e) || (isfusable(e.op, e) && !isscalar(e.outputs[1]))
            for v in e.outputs
                (isreduction(e) || haskey(memory, v)) || continue
                domain = sizes(isreduction(e) ? e.inputs[1] : v)
                k = place_of_root(stages, made, e, domain, producer, memory)
                k > length(stages) && push!(stages, NestStage(domain, []))
                push!(stages[k].roots, (v, e))
                made[v] = k
            end
        else
            push!(stages, isfusable(e.op, e) ? ScalarStage(e) : OwnStage(e))
            foreach(v -> made[v] = length(stages), e.outputs)
        end
    end
    stages
end

"The number of the nest that a root joins, one more than there are for a new one."
function place_of_root(stages, made, e, domain, producer, memory)
    earliest = 1
    each_leaf(e, producer, memory) do u, here
        k = get(made, u, 0)
        k == 0 && return
        at_hand =
            here && stages[k] isa NestStage && stages[k].domain == domain &&
            !isreduction(producer[u])
        earliest = max(earliest, at_hand ? k : k + 1)
    end
    for k in length(stages):-1:earliest
        stage = stages[k]
        stage isa NestStage && stage.domain == domain && length(stage.roots) < MOST_ROOTS &&
            return k
    end
    length(stages) + 1
end

stage_equations(s::NestStage) = unique(e for (_, e) in s.roots)
stage_equations(s::Union{ScalarStage,OwnStage}) = (s.equation,)
