# The state of code generation: the code so far, its local variables, the workspace.

"""
What is known of memory at one place in the code: by pointer and position, the element that is
there. It holds as long as `code`, which had so many `statements`, is only added to by what writes
no memory."""
struct KnownMemory
    code::Vector{Any}
    statements::Int
    elements::Dict{Tuple{Symbol,Int},Any}
end
KnownMemory() = KnownMemory(Any[], 0, Dict())

mutable struct Generator
    arena::Arena
    code::Vector{Any}                   # the block being written
    types::Dict{Symbol,DataType}        # of local variables
    threaded::Bool                      # whether that block runs on several threads
    results::Int                        # of the kernel; the workspace comes after them
    canfail::Bool                       # whether the kernel has a status
    workspace::Symbol                   # the pointer to it
    target::Target
    notes::Notes
    loops::Int                          # around that block
    entry::Vector{Any}                  # what is to be run before the innermost of them
    known::KnownMemory
    updates::Bool                       # whether that block updates elements of memory
end
Generator(results; target = KernelTarget(), notes = NoNotes()) =
    Generator(Arena(reuses = reuses_memory(target)), Any[], Dict{Symbol,DataType}(),
        !splits_work(target), results, false, WORKSPACE, target, notes, 0, Any[],
        KnownMemory(), false)

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
function block(@nospecialize(f), g::Generator)
    outer, g.code = g.code, Any[]
    try
        f()
        return Expr(:block, g.code...)
    finally
        g.code = outer
    end
end

# LLVM unrolls a loop of few trips and may then make vectors of the loop around it. Where that loop
# updates an element several times in a trip, as sums in memory do, version 9 writes an early value
# last if the elements of a trip lie together.
const NO_VECTORS = ((Symbol("llvm.loop.vectorize.enable"), false),)

"A loop `while condition`, its body written by `f`."
function loop!(@nospecialize(f), g::Generator, condition; annotations = ())
    outer, g.entry = g.entry, Any[]
    before, g.updates = g.updates, false
    g.loops += 1
    body = block(f, g)
    g.loops -= 1
    entry, g.entry = g.entry, outer
    isempty(annotations) && g.updates && (annotations = NO_VECTORS)
    g.updates |= before
    isempty(annotations) || push!(body.args, Expr(:loopinfo, annotations...))
    loop = Expr(:while, condition, body)
    # one statement: vectors do not go from function to function
    emit_code!(g, isempty(entry) ? loop : Expr(:block, entry..., loop))
end

"`f(i)` writes the body of a loop with i from `from` to n - 1, or backwards."
function counted_loop!(@nospecialize(f), g::Generator, n; from = 0, backwards = false,
    annotations = ())
    i = local!(g, Int, backwards ? :($(-)($n, 1)) : from)
    loop!(g, backwards ? :($(>=)($i, $from)) : :($(<)($i, $n)); annotations = annotations) do
        f(i)
        emit_code!(g, backwards ? :($i = $(-)($i, 1)) : :($i = $(+)($i, 1)))
    end
end

"An element of memory becomes `f(element)`, an expression."
function update_element!(@nospecialize(f), g::Generator, pointer, at)
    g.updates = true
    emit_code!(g, :($(unsafe_store!)($pointer, $(f(:($(unsafe_load)($pointer, $at)))), $at)))
end

"A pointer to part of the workspace, as a local variable."
function pointer_at!(g::Generator, T::DataType, part::Part)
    local!(g, Ptr{T}, workspace_pointer(g.target, g, T, first(part)))
end
workspace_pointer(::Target, g::Generator, ::Type{T}, offset::Int) where {T} =
    :($(as_pointer)($T, $(g.workspace), $offset))
as_pointer(::Type{T}, base::Ptr{UInt8}, offset::Int) where {T} = convert(Ptr{T}, base + offset)

# XLA_FFI_Buffer: struct_size, extension, dtype, then the data.
const DATA_OFFSET = 24
"The elements of buffer `k` of a list of XLA's."
buffer_data(::Type{T}, list::Ptr{Ptr{Cvoid}}, k::Int) where {T} =
    unsafe_load(Ptr{Ptr{T}}(unsafe_load(list, k) + DATA_OFFSET))

"Writes that memory ran out; the kernel goes on to its end."
function fail!(g::Generator)
    g.canfail = true
    g.types[STATUS] = Ptr{Cint}
    emit_code!(g, :($(unsafe_store!)($STATUS, $OUT_OF_MEMORY)))
end
const STATUS, OUT_OF_MEMORY = :status, Cint(1)

"""
A stretch of code run once for each value of `index` in 0 … chunks - 1, in any order and
on several threads. Where there is one thread, from the last to the first if `falling`."""
struct Parallel
    index::Symbol
    chunks::Int
    body::Expr
    falling::Bool
end
Parallel(index, chunks, body; falling = false) = Parallel(index, chunks, body, falling)
with_body(p::Parallel, body) = Parallel(p.index, p.chunks, body, p.falling)

"Ends the code of a stage of the plan, in the kernel's own code until `share_functions`."
struct StageEnd end
