# Which arrays are materialised. The others are virtual: each element is computed where it is read.

"Fusable variables that must be in memory, or had better be, with the reason."
function materialized(p::Program, producer)
    consumers = IdDict{Var,Vector{Tuple{Equation,Int}}}()
    for e in p.equations, (k, a) in enumerate(e.inputs)
        a isa Var && push!(get!(() -> Tuple{Equation,Int}[], consumers, a), (e, k))
    end
    memory, costs, chains = Materialized(), IdDict{Var,Int}(), IdDict{Var,Int}()
    for a in p.outputs
        a isa Var && (memory[a] = Reason(:result))
    end
    keep_overwritten!(memory, p, consumers)
    for e in p.equations
        isfusable(e.op, e) || continue
        operands = [a for a in e.inputs if a isa Var && isvirtual(memory, producer, a)]
        own = cost(e.op, e) + sum(Int[costs[a] for a in operands])
        chain = 1 + sum(Int[chains[a] for a in operands])
        for v in e.outputs
            isscalar(v) && continue
            costs[v], chains[v] = own, chain
            haskey(memory, v) && continue
            reason =
                chain > LONGEST_CHAIN ? Reason(:long_chain) :
                worth_memory(v, get(consumers, v, ()), own)
            reason === nothing || (memory[v] = reason)
        end
    end
    memory
end

"""
Keeps small parts of arrays that are needed after the array is updated: computed where they are
read, they would need the array as it was, and so a copy of it."""
function keep_overwritten!(memory, p::Program, consumers)
    updates = [(i, e) for (i, e) in enumerate(p.equations) if overwrites(e.op, e) > 0]
    isempty(updates) && return
    latest = IdDict{Var,Int}()      # the last equation that reads elements of a variable
    for (i, e) in Iterators.reverse(enumerate(p.equations))
        inlined = isfusable(e.op, e) ? e.outputs : Var[]
        read = reduce(max, (get(latest, v, 0) for v in inlined if !isscalar(v)); init = i)
        for a in e.inputs
            a isa Var && (latest[a] = max(get(latest, a, 0), read))
        end
    end
    for (i, e) in updates
        w = e.inputs[overwrites(e.op, e)]
        w isa Var || continue
        for (reader, _) in consumers[w], v in reader.outputs
            isfusable(reader.op, reader) && !isscalar(v) && get(latest, v, 0) > i &&
                size_of(shape(v)) <= SMALL_WINDOW * size_of(shape(w)) && !haskey(memory, v) &&
                (memory[v] = Reason(:overwritten, e))
        end
    end
end

"The reason to keep an array that costs so much an element, or nothing."
function worth_memory(v::Var, consumers, cost)
    elsewhere = 0
    for (e, k) in consumers
        (isreduction(e) || (isfusable(e.op, e) && reads_here(e.op, k))) && continue
        reads_elements(e.op, e, k) || return Reason(:needed_whole, e)
        cost > CHEAP && reads_in_turn(e.op, e) && return Reason(:read_in_turn, e)
        any(o -> size_of(shape(o)) >= 2size_of(shape(v)), e.outputs) && cost >= CHEAP &&
            return Reason(:read_often, e)
        elsewhere += 1
    end
    elsewhere > 0 && length(consumers) > 1 && cost * length(consumers) > AFFORDABLE ?
    Reason(:expensive) : nothing
end

"""
Virtual variables, not cheap, that more than one stage would compute; not what these are computed
from, which then only one stage needs, unless they follow from one array alone at little cost, which
is then kept for all that follow from it."""
function shared_by_stages(stages, producer, memory)
    first_user, costs, shared = IdDict{Var,Int}(), IdDict{Var,Int}(), Materialized()
    follows(v) = v isa Var && isvirtual(memory, producer, v)
    total(v) =
        follows(v) ?
        get!(
            () -> min(
                LARGEST_COST,
                cost(producer[v].op, producer[v]) +
                sum(Int[total(a) for a in producer[v].inputs])
            ),
            costs, v) : 0
    little(v) = bytes(aval(v)) < LEAVES_CACHE ? -1 : LITTLE
    isexpensive_here(v) =
        total(v) > CHEAP &&
        (total(v) > little(v) || length(large_leaves(v, v, producer, memory)) > 1)
    # The array from which v follows at a cost of `left`, or v.
    function origin(v, left)
        left -= cost(producer[v].op, producer[v])
        large = unique(a for a in producer[v].inputs if a isa Var &&
                       !isempty(large_leaves(a, v, producer, memory)))
        left < 0 || length(large) != 1 || !follows(large[1]) || total(large[1]) <= CHEAP ? v :
        origin(large[1], left)
    end
    function visit(v, k)
        follows(v) && !haskey(shared, v) || return
        user = get(first_user, v, nothing)
        user === nothing || return user != k && isexpensive_here(v) ?
               (shared[origin(v, little(v))] = Reason(:shared); nothing) : nothing
        first_user[v] = k
        foreach(a -> visit(a, k), producer[v].inputs)
    end
    for (k, stage) in enumerate(stages), e in stage_equations(stage), a in e.inputs
        visit(a, k)
    end
    shared
end

"The arrays in memory, not much smaller than `v`, from which `a` is computed."
function large_leaves(a::Var, v::Var, producer, memory)
    found = VarSet()
    each_leaf(Atom[a], producer, memory) do x, _
        isscalar(x) || 2size_of(shape(x)) < size_of(shape(v)) || push!(found, x)
    end
    found
end
