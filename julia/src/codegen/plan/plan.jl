# The plan of a Program's code: which values are materialised in memory (materialization.jl), and
# which are computed together, in which order (fusion.jl).

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

"""
Why an array is in memory: `kind` is one of `REASONS` (codegen/explain.jl), `by` the equation that
asks for it."""
struct Reason
    kind::Symbol
    by::Union{Equation,Nothing}
end
Reason(kind) = Reason(kind, nothing)

const Materialized = IdDict{Var,Reason}

struct Plan
    stages::Vector{Stage}
    memory::Materialized            # fusable variables that are nevertheless kept in memory
    producer::IdDict{Var,Equation}
    last::IdDict{Var,Int}           # the last stage that reads a variable; typemax for results
end

isreduction(e::Equation) = isreduction(e.op)
"A reshape that moves nothing but could not be computed element by element without divisions."
isalias(e::Equation) = e.op isa Reshape && !isfusable(e.op, e)
isvirtual(plan_memory, producer, v) =
    haskey(producer, v) && !isscalar(v) && isfusable(producer[v].op, producer[v]) &&
    !haskey(plan_memory, v)

function plan(p::Program)
    producer = IdDict{Var,Equation}(v => e for e in p.equations for v in e.outputs)
    memory = materialized(p, producer)
    for _ in 1:MOST_PLANS
        stages = fuse(p, producer, memory)
        shared = shared_by_stages(stages, producer, memory)
        isempty(shared) &&
            return Plan(stages, memory, producer, last_reads(p, stages, producer, memory))
        merge!(memory, shared)
    end
    stages = fuse(p, producer, memory)
    Plan(stages, memory, producer, last_reads(p, stages, producer, memory))
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
