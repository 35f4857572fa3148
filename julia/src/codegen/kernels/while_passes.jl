# Passes over the trips of a while loop. Nobody knows how many trips there will be, so records are
# on a tape of C's memory that grows while the loop runs.

"""
Records of a pass, one after the other: `base` is the local variable that points to the first,
`places` where in a record each value is."""
struct Tape
    base::Symbol
    types::Vector{TensorType}
    places::Vector{Int}
    stride::Int
end

const RECORD_ALIGNMENT = 16
function Tape(g::Generator, types)
    ends = cumsum(Int[RECORD_ALIGNMENT * cld(bytes(t), RECORD_ALIGNMENT) for t in types])
    Tape(local!(g, Ptr{UInt8}, :($(no_memory)())), types, vcat(0, ends)[1:length(types)],
        isempty(ends) ? 0 : ends[end])
end
no_memory() = Ptr{UInt8}(0)

"""
Memory for one record more: the same as before, moved to a larger place when the number of records
is a power of two, or null. Sizes are `Csize_t` by `%`: a conversion is code that throws."""
function lengthened(base::Ptr{UInt8}, records::Int, stride::Int)
    records == 0 || (records >= SHORTEST_TAPE && ispow2(records)) || return base
    Ptr{UInt8}(Libc.realloc(Ptr{Cvoid}(base), stride * max(SHORTEST_TAPE, 2records) % Csize_t))
end
whole_tape(records::Int, stride::Int) = Ptr{UInt8}(Libc.malloc(max(1, stride * records) % Csize_t))
free_tape(base::Ptr{UInt8}) = Libc.free(Ptr{Cvoid}(base))

"Where a value of record `t` of the tape is."
record_memory!(g::Generator, tape::Tape, k, t) =
    Memory(
        local!(g, Ptr{tape.types[k].dtype},
            :($(as_pointer)($(tape.types[k].dtype), $(tape.base),
                $t * $(tape.stride) + $(tape.places[k])))),
        tape.types[k], false)
function read_record!(g::Generator, tape::Tape, k, t)
    m = record_memory!(g, tape, k, t)
    isempty(m.type.shape) ? Register(local!(g, m.type.dtype, :($(unsafe_load)($(m.pointer))))) : m
end

function emit_step!(::Passes, s::Frame, e)
    g = s.generator
    cond_consts, consts, starts = pass_parts(e.attrs, e.inputs)
    results = cut(e.outputs, e[:carry])
    fixed_cond, fixed = (Storage[shared(s, a) for a in cond_consts],
        Storage[shared(s, a) for a in consts])
    tapes = Tape[
        Tape(g, TensorType[aval(a) for a in body.outputs[m+1:end]])
        for (body, m) in zip(e[:passes], e[:carry])
    ]
    trips = local!(g, Int, 0)

    function trip!(j, carries, t)
        records = Storage[
            read_record!(g, tape, k, t) for tape in tapes[1:j-1]
            for k in eachindex(tape.types)
        ]
        places = Memory[record_memory!(g, tapes[j], k, t) for k in eachindex(tapes[j].types)]
        emit_trip!(g, e[:passes][j], fixed, carries, records, places)
    end

    for j in eachindex(tapes)
        isempty(results[j]) && isempty(tapes[j].types) && j > 1 && continue
        carries = Carry[start_carry!(s, v, a, 0) for (v, a) in zip(results[j], starts[j])]
        if j == 1
            loop!(g, true) do
                now = Storage[unowned(c.now) for c in carries]
                goes_on = emit_program!(g, e[:cond], vcat(fixed_cond, now), Any[nothing])[1]
                emit_code!(g,
                    Expr(:||, goes_on isa Register ? goes_on.symbol : goes_on, Expr(:break)))
                longer!(g, tapes[1], trips,
                    :($(lengthened)($(tapes[1].base), $trips, $(tapes[1].stride))), Expr(:break))
                trip!(1, carries, trips)
                emit_code!(g, :($trips = $(+)($trips, 1)))
            end
        else
            longer!(g, tapes[j], trips, :($(whole_tape)($trips, $(tapes[j].stride))), nothing)
            counted_loop!(t -> trip!(j, carries, t), g, trips; backwards = iseven(j))
        end
        foreach((v, c) -> finish_carry!(s, v, c), results[j], carries)
    end
    foreach(tape -> emit_code!(g, :($(free_tape)($(tape.base)))), tapes)
end

"""
Takes memory for a tape. Where there is none the kernel reports it, and no later
pass makes a trip."""
function longer!(g::Generator, tape::Tape, trips::Symbol, memory::Expr, leave)
    tape.stride == 0 && return
    longer = local!(g, Ptr{UInt8}, memory)
    failed = block(g) do
        fail!(g)
        emit_code!(g, :($trips = 0))
        leave === nothing || emit_code!(g, leave)
    end
    emit_code!(g,
        Expr(:if, :($longer === $(no_memory)()), failed, Expr(:block, :($(tape.base) = $longer))))
end
