# The variables of one Program while its code is written.

"""
The variables of one Program while its code is written.

`parts`: the workspace behind variables that this frame allocated; `aliases`: variables that share
another's memory.
"""
struct Frame
    generator::Generator
    storages::IdDict{Var,Storage}
    parts::IdDict{Var,Part}
    aliases::IdDict{Var,Var}
    targets::IdDict{Var,Memory}         # where results of the Program are wanted
    last::IdDict{Var,Int}               # the last stage that reads a variable's memory
    now::Ref{Int}                       # the stage being written
    donatable::VarSet                   # the operands whose memory nobody reads after it
    plan::Plan
end
Frame(g::Generator, plan::Plan) =
    Frame(g, IdDict(), IdDict(), IdDict(), IdDict(), IdDict(), Ref(0), VarSet(), plan)

storage(s::Frame, v::Var) = s.storages[v]
isinmemory(s::Frame, v::Var) = get(s.storages, v, nothing) isa Memory
owner(s::Frame, v::Var) = haskey(s.aliases, v) ? owner(s, s.aliases[v]) : v

"Memory for a result, in the place where it is wanted or in the workspace."
function memory!(s::Frame, v::Var)
    get!(s.storages, v) do
        haskey(s.targets, v) && return s.targets[v]
        part = s.parts[v] = allocate!(s.generator.arena, bytes(aval(v)))
        Memory(pointer_at!(s.generator, dtype(v), part), aval(v), true)
    end
end

"Memory of a type for the time that `f(memory)` writes code."
function with_memory(@nospecialize(f), s::Frame, type::TensorType)
    part = allocate!(s.generator.arena, bytes(type))
    f(Memory(pointer_at!(s.generator, type.dtype, part), type, true))
    release!(s.generator.arena, part)
end

"`v` is in the memory of `x`, which is needed for as long as either."
function share_memory!(s::Frame, v::Var, x::Var)
    s.aliases[v] = x
    o = owner(s, x)
    s.last[o] = max(get(s.last, o, 0), get(s.last, v, 0))
end

"Sets a result of rank 0."
define!(s::Frame, v::Var, ex) = s.storages[v] = Register(local!(s.generator, dtype(v), ex))

"A rank-0 atom as an expression."
scalar(s::Frame, l::Literal) = l.value
scalar(s::Frame, v::Var) = scalar(s, storage(s, v), v)
scalar(s::Frame, r::Register, v) = r.symbol

"An operand's memory; a rank-0 one is written there first."
memory_of(s::Frame, a::Atom) =
    a isa Var && storage(s, a) isa Memory ? storage(s, a) : spilled!(s, a)
function spilled!(s::Frame, a::Atom)
    v = Var(aval(a))
    s.last[v] = s.now[]
    m = memory!(s, v)
    emit_code!(s.generator, :($(unsafe_store!)($(m.pointer), $(scalar(s, a)))))
    m
end
