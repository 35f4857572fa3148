# What is kept in memory, and in which order and company it is computed.

abstract type Stage end
"A rank-0 equation, computed into local variables."
struct ScalarStage <: Stage
    equation::Equation
end
"One loop nest: variables stored whole, and reductions, over one domain."
struct NestStage <: Stage
    domain::Vector{Int}
    roots::Vector{Tuple{Var,Equation}}
end
"An equation that writes its own code."
struct OwnStage <: Stage
    equation::Equation
end

struct Plan
    stages::Vector{Stage}
    memory::VarSet                  # fusable variables that are nevertheless kept in memory
    producer::IdDict{Var,Equation}
    last::IdDict{Var,Int}           # the last stage that reads a variable; typemax for results
end

isscalar(v) = isempty(shape(v))
sizes(v::Atom) = Int[Int(d) for d in shape(v)]
isreduction(e::Equation) = e.op isa Reduction
"A reshape that moves nothing but could not be computed element by element without divisions."
isalias(e::Equation) = e.op isa Reshape && !isfusable(e.op, e)
isvirtual(plan_memory, producer, v) = haskey(producer, v) && !isscalar(v) && isfusable(producer[v].op, producer[v]) && !(v in plan_memory)

function plan(p::Program)
    producer = IdDict{Var,Equation}(v => e for e in p.equations for v in e.outputs)
    memory = kept_in_memory(p, producer)
    for _ in 1:4
        stages = schedule(p, producer, memory)
        again = recomputed(p, stages, producer, memory)
        isempty(again) && return Plan(stages, memory, producer, last_reads(p, stages, producer, memory))
        union!(memory, again)
    end
    stages = schedule(p, producer, memory)
    Plan(stages, memory, producer, last_reads(p, stages, producer, memory))
end

# ---- memory or not

const LONGEST_CHAIN = 200       # equations computed in one expression
const CHEAP = 3                 # what may be computed more than once without a thought
const AFFORDABLE = 12           # cost × times

"Fusable variables that must be in memory, or had better be."
function kept_in_memory(p::Program, producer)
    consumers = IdDict{Var,Vector{Tuple{Equation,Int}}}()
    for e in p.equations, (k, a) in enumerate(e.inputs)
        a isa Var && push!(get!(() -> Tuple{Equation,Int}[], consumers, a), (e, k))
    end
    memory, costs, chains = VarSet(), IdDict{Var,Int}(), IdDict{Var,Int}()
    for a in p.outputs
        a isa Var && push!(memory, a)
    end
    for e in p.equations
        isfusable(e.op, e) || continue
        operands = [a for a in e.inputs if a isa Var && isvirtual(memory, producer, a)]
        own = cost(e.op, e) + sum(Int[costs[a] for a in operands])
        chain = 1 + sum(Int[chains[a] for a in operands])
        for v in e.outputs
            isscalar(v) && continue
            costs[v], chains[v] = own, chain
            (chain > LONGEST_CHAIN || wants_memory(v, get(consumers, v, ()), own)) && push!(memory, v)
        end
    end
    memory
end

function wants_memory(v::Var, consumers, cost)
    elsewhere = 0
    for (e, k) in consumers
        (isreduction(e) || (isfusable(e.op, e) && ispointwise(e.op))) && continue
        reads_elements(e.op, e, k) || return true
        any(o -> size_of(shape(o)) >= 2size_of(shape(v)), e.outputs) && cost >= CHEAP && return true
        elsewhere += 1
    end
    elsewhere > 0 && length(consumers) > 1 && cost * length(consumers) > AFFORDABLE
end

# ---- order and company

"""
Calls `f(u, here)` for every variable in memory or a register that computing `v` reads; `here` says that it is read at the very place of
the element computed."""
function each_leaf(f, atoms, producer, memory; here = true, seen = Set{Tuple{UInt,Bool}}())
    for v in atoms
        v isa Var || continue
        (objectid(v), here) in seen && continue
        push!(seen, (objectid(v), here))
        if isvirtual(memory, producer, v)
            e = producer[v]
            each_leaf(f, e.inputs, producer, memory; here = here && ispointwise(e.op), seen = seen)
        else
            f(v, here)
        end
    end
end

"A nest takes this many roots at most: each needs pointers in registers."
const MOST_ROOTS = 12

function schedule(p::Program, producer, memory)
    stages, made = Stage[], IdDict{Var,Int}()
    for e in p.equations
        checkpoint()
        if isreduction(e) || (isfusable(e.op, e) && !isscalar(e.outputs[1]))
            for v in e.outputs
                (isreduction(e) || v in memory) || continue
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
    each_leaf(e.inputs, producer, memory; here = isreduction(e) || ispointwise(e.op)) do u, here
        k = get(made, u, 0)
        k == 0 && return
        at_hand = here && stages[k] isa NestStage && stages[k].domain == domain && !isreduction(producer[u])
        earliest = max(earliest, at_hand ? k : k + 1)
    end
    for k in length(stages):-1:earliest
        stage = stages[k]
        stage isa NestStage && stage.domain == domain && length(stage.roots) < MOST_ROOTS && return k
    end
    length(stages) + 1
end

stage_equations(s::NestStage) = unique(e for (_, e) in s.roots)
stage_equations(s::Union{ScalarStage,OwnStage}) = (s.equation,)

"Virtual variables, not cheap, that more than one stage would compute; not what these are computed from, which then only one stage needs."
function recomputed(p, stages, producer, memory)
    first_user, costs, again = IdDict{Var,Int}(), IdDict{Var,Int}(), VarSet()
    total(v) = v isa Var && isvirtual(memory, producer, v) ?
        get!(() -> min(1000, cost(producer[v].op, producer[v]) + sum(Int[total(a) for a in producer[v].inputs])), costs, v) : 0
    function visit(v, k)
        v isa Var && isvirtual(memory, producer, v) && !(v in again) || return
        user = get(first_user, v, nothing)
        user === nothing || return user != k && total(v) > CHEAP ? (push!(again, v); nothing) : nothing
        first_user[v] = k
        foreach(a -> visit(a, k), producer[v].inputs)
    end
    for (k, stage) in enumerate(stages), e in stage_equations(stage), a in e.inputs
        visit(a, k)
    end
    again
end

function last_reads(p, stages, producer, memory)
    last = IdDict{Var,Int}()
    for (k, stage) in enumerate(stages), e in stage_equations(stage)
        each_leaf((u, _) -> last[u] = k, e.inputs, producer, memory)
    end
    for a in p.outputs
        a isa Var && (last[a] = typemax(Int))
    end
    last
end
