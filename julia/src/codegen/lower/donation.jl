# Arrays computed in the memory of one of their operands, where each element of that is read for the
# last time when the new one is written.

"Whether a nest reads `u`'s elements only at the place of the element that it computes."
function reads_in_place(stage::NestStage, u::Var, plan::Plan)
    found, elsewhere = false, false
    for e in stage_equations(stage)
        each_leaf(e, plan.producer, plan.memory) do v, here
            v === u || return
            found = true
            elsewhere |= !here
        end
    end
    found && !elsewhere
end

"""
Whether a loop's body may write the new value `y` of a carried array over the old one, `u`: updates
in place lead from `u` to `y`, or to `y` from what a loop nest computes that reads `u` at no other
place, and nothing reads `u` afterwards."""
function updates_in_place(body::Program, plan::Plan, u::Var, y::Atom)
    y isa Var && y !== u && aval(y) == aval(u) && !isscalar(u) &&
        !any(a -> a === u, body.outputs) && count(a -> a === y, body.outputs) == 1 || return false
    isaliased(plan, u) && return false
    v = y
    while (w = overwritten(plan, v)) !== nothing
        w === u && return true
        v = w
    end
    k = findfirst(
        stage ->
            stage isa NestStage &&
                any(root -> root[1] === v && !isreduction(root[2]), stage.roots), plan.stages)
    last = get(plan.last, u, 0)
    k !== nothing && (last < k || last == k && reads_in_place(plan.stages[k], u, plan))
end
isaliased(plan::Plan, u::Var) = any(e -> isalias(e) && e.inputs[1] === u, values(plan.producer))

"""
The operand over which the equation that makes `v` may write it, since nothing reads the operand
afterwards, or nothing."""
function overwritten(plan::Plan, v::Var)
    e = get(plan.producer, v, nothing)
    w = e === nothing ? nothing : replaced_operand(e.op, e, findfirst(u -> u === v, e.outputs))
    w isa Var && count(a -> a === w, e.inputs) == 1 && !isaliased(plan, w) || return nothing
    last = get(plan.stages, get(plan.last, w, 0), nothing)
    last isa OwnStage && last.equation === e ? w : nothing
end

"""
Memory for the result of an equation that may take over an operand's: that operand's memory if
nobody needs it afterwards, else fresh memory into which it is copied."""
function donated_memory!(s::Frame, v::Var, operand::Atom)
    if operand isa Var && operand in s.donatable
        m = storage(s, operand)
        if haskey(s.targets, v)
            s.targets[v].pointer === m.pointer && return memory!(s, v)
        elseif m.owned
            share_memory!(s, v, operand)
            return s.storages[v] = Memory(m.pointer, aval(v), true)
        end
    end
    m = memory!(s, v)
    copy_elements!(s, m, operand)
    m
end

"""
Memory for a result of a nest: where it is wanted, or else that of an operand which it
replaces, or new."""
function root_memory!(s::Frame, v::Var, stage::NestStage)
    haskey(s.targets, v) && return memory!(s, v)
    for u in operands_in_memory(s, stage)
        can_replace(s, v, u, stage) || continue
        share_memory!(s, v, u)
        return s.storages[v] = Memory(storage(s, u).pointer, aval(v), true)
    end
    memory!(s, v)
end

function operands_in_memory(s::Frame, stage::NestStage)
    found = Var[]
    for e in stage_equations(stage)
        each_leaf((u, _) -> isinmemory(s, u) && !(u in found) && push!(found, u), e.inputs,
            s.plan.producer, s.plan.memory)
    end
    found
end
can_replace(s::Frame, v::Var, u::Var, stage) =
    aval(u) == aval(v) && is_read_last(s, u) && reads_in_place(stage, u, s.plan)

"""
Whether this stage is the last to read a variable in the workspace, and nothing else in the same
memory is read now or later."""
function is_read_last(s::Frame, u::Var)
    o = owner(s, u)
    last(x) = get(s.plan.last, x, 0)
    reuses_memory(s.generator.target) && haskey(s.parts, o) && last(u) <= s.now[] &&
        all(x -> x === u || owner(s, x) !== o || last(x) < s.now[],
            Iterators.flatten(((o,), keys(s.aliases))))
end

"""
Marks an operand as one whose memory the result may take over; other operands that would read it
while it changes are computed first."""
function donate!(s::Frame, a::Atom, others)
    a isa Var && storage(s, a) isa Memory && get(s.last, owner(s, a), 0) <= s.now[] &&
        get(s.last, a, 0) <= s.now[] || return
    readers = [b for b in others if reads_memory(s, b, owner(s, a))]
    all(b -> storage(s, b) isa Virtual, readers) || return
    foreach(b -> materialize!(s, b), readers)
    push!(s.donatable, a)
end

"Whether an atom is in that memory or computed from what is."
function reads_memory(s::Frame, a::Atom, memory::Var, seen = VarSet())
    a isa Var && !(a in seen) || return false
    push!(seen, a)
    x = storage(s, a)
    x isa Virtual ? any(b -> reads_memory(s, b, memory, seen), x.equation.inputs) :
    owner(s, a) === memory
end

"Puts a virtual variable in memory."
function materialize!(s::Frame, v::Var)
    storage(s, v) isa Virtual || return
    part = allocate!(s.generator.arena, bytes(aval(v)))
    m = Memory(pointer_at!(s.generator, dtype(v), part), aval(v), true)
    copy_elements!(s, m, v)
    s.storages[v], s.parts[v] = m, part
end
