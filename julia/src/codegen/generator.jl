# The state of code generation: the code so far, its local variables, the workspace; and the frame of one Program.

mutable struct Generator
    arena::Arena
    code::Vector{Any}                   # the block being written
    types::Dict{Symbol,DataType}        # of local variables
    threaded::Bool                      # whether that block runs on several threads
    results::Int                        # of the kernel; the workspace comes after them
    plain::Bool                         # whether the code is a plain function, for Enzyme
    canfail::Bool                       # whether the kernel has a status
end
Generator(results; plain = false) = Generator(Arena(reuses = !plain), Any[], Dict{Symbol,DataType}(), plain, results, plain, false)

const WORKSPACE = :workspace

function fresh_symbol!(g::Generator, T::DataType)
    v = Symbol(:v, length(g.types) + 1)
    g.types[v] = T
    v
end

emit_code!(g::Generator, ex) = push!(g.code, ex)
"A new local variable set to that expression."
function local!(g::Generator, T::DataType, ex)
    v = fresh_symbol!(g, T)
    emit_code!(g, :($v = $ex))
    v
end

"The code that `f` writes, as a block of its own."
function block(f, g::Generator)
    outer, g.code = g.code, Any[]
    try
        f()
        return Expr(:block, g.code...)
    finally
        g.code = outer
    end
end

"A loop `while condition`, its body written by `f`."
function loop!(f, g::Generator, condition; annotations = ())
    body = block(f, g)
    isempty(annotations) || push!(body.args, Expr(:loopinfo, annotations...))
    emit_code!(g, Expr(:while, condition, body))
end

"`f(i)` writes the body of a loop with i from `from` to n - 1, or backwards."
function counted_loop!(f, g::Generator, n; from = 0, backwards = false, annotations = ())
    i = local!(g, Int, backwards ? :($(-)($n, 1)) : from)
    loop!(g, backwards ? :($(>=)($i, $from)) : :($(<)($i, $n)); annotations = annotations) do
        f(i)
        emit_code!(g, backwards ? :($i = $(-)($i, 1)) : :($i = $(+)($i, 1)))
    end
end

"A pointer to part of the workspace, as a local variable."
function pointer_at!(g::Generator, T::DataType, part::Part)
    g.plain || return local!(g, Ptr{T}, :($(as_pointer)($T, $WORKSPACE, $(first(part)))))
    base = scratch_base(T)
    g.types[base] = Ptr{T}
    local!(g, Ptr{T}, :($(+)($base, $(first(part)))))
end
as_pointer(::Type{T}, base::Ptr{UInt8}, offset::Int) where {T} = convert(Ptr{T}, base + offset)

# XLA_FFI_Buffer: struct_size, extension, dtype, then the data.
const DATA_OFFSET = 24
"The elements of buffer `k` of a list of XLA's."
buffer_data(::Type{T}, list::Ptr{Ptr{Cvoid}}, k::Int) where {T} = unsafe_load(Ptr{Ptr{T}}(unsafe_load(list, k) + DATA_OFFSET))

bytes(type::TensorType) = Int(size_of(type.shape)) * sizeof(type.dtype)

"""
The variables of one Program while its code is written.

`parts`: the workspace behind variables that this frame allocated; `aliases`: variables that share another's memory.
"""
struct Frame
    generator::Generator
    storages::IdDict{Var,Storage}
    parts::IdDict{Var,Part}
    aliases::IdDict{Var,Var}
    targets::IdDict{Var,Memory}         # where results of the Program are wanted
    last::IdDict{Var,Int}               # the last stage that reads a variable's memory
    now::Ref{Int}                       # the stage being written
    dying::VarSet                       # the operands that nobody reads after it
    plan::Any                           # nothing where there is no Program, only parts of an equation
end
Frame(g::Generator, plan = nothing) = Frame(g, IdDict(), IdDict(), IdDict(), IdDict(), IdDict(), Ref(0), VarSet(), plan)

storage(s::Frame, v::Var) = s.storages[v]
isinmemory(s::Frame, v::Var) = get(s.storages, v, nothing) isa Memory
owner(s::Frame, v::Var) = haskey(s.aliases, v) ? owner(s, s.aliases[v]) : v

"Writes that memory ran out; the kernel goes on to its end."
function fail!(g::Generator)
    g.canfail = true
    g.types[STATUS] = Ptr{Cint}
    emit_code!(g, :($(unsafe_store!)($STATUS, $OUT_OF_MEMORY)))
end
const STATUS, OUT_OF_MEMORY = :status, Cint(1)

"Memory for a result, in the place where it is wanted or in the workspace."
function memory!(s::Frame, v::Var)
    get!(s.storages, v) do
        haskey(s.targets, v) && return s.targets[v]
        part = s.parts[v] = allocate!(s.generator.arena, bytes(aval(v)))
        Memory(pointer_at!(s.generator, dtype(v), part), aval(v), true)
    end
end

"Memory of a type for the time that `f(memory)` writes code."
function with_memory(f, s::Frame, type::TensorType)
    part = allocate!(s.generator.arena, bytes(type))
    f(Memory(pointer_at!(s.generator, type.dtype, part), type, true))
    release!(s.generator.arena, part)
end

"""
Memory for the result of an equation that may take over an operand's: that operand's memory if nobody needs it afterwards, else fresh
memory into which it is copied."""
function taken_over!(s::Frame, v::Var, operand::Atom)
    if operand isa Var && operand in s.dying && !haskey(s.targets, v) && storage(s, operand) isa Memory && storage(s, operand).owned
        m = storage(s, operand)
        share_memory!(s, v, operand)
        return s.storages[v] = Memory(m.pointer, aval(v), true)
    end
    m = memory!(s, v)
    copy_elements!(s, m, operand)
    m
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
memory_of(s::Frame, a::Atom) = a isa Var && storage(s, a) isa Memory ? storage(s, a) : spilled!(s, a)
function spilled!(s::Frame, a::Atom)
    v = Var(aval(a))
    s.last[v] = s.now[]
    m = memory!(s, v)
    emit_code!(s.generator, :($(unsafe_store!)($(m.pointer), $(scalar(s, a)))))
    m
end
