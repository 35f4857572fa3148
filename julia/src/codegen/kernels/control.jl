# Loops and branches.

"Memory for one slice of an array along its first axis; `at` is the slice's number, an expression."
function slice_memory!(g::Generator, m::Memory, at)
    type = TensorType(m.type.dtype, m.type.shape[2:end])
    apart = m.strides[1] * sizeof(type.dtype)
    pointer = local!(g, Ptr{type.dtype}, :($(m.pointer) + $at * $apart))
    Memory(pointer, type, m.owned, m.strides[2:end])
end

"""
A carried value while its loop runs: a local variable, or a pointer to its memory and one to spare
memory for the next value, which change places after each trip. A value that is updated in place has
the same memory as both, and no spare."""
struct Carry
    now::Storage
    next::Union{Memory,Nothing}
    home::Union{Memory,Nothing}
    spare::Union{Part,Nothing}
end

function start_carry!(s::Frame, v::Var, initial::Atom, trips; in_place = false, loop = nothing)
    g = s.generator
    isscalar(v) &&
        return Carry(Register(local!(g, dtype(v), scalar(s, initial))), nothing, nothing, nothing)
    left = loop === nothing ? nothing : donated_initial(s, loop, initial)
    stays = left !== nothing && !haskey(s.targets, v)
    stays && share_memory!(s, v, initial)
    home = stays ? (s.storages[v] = left) : memory!(s, v)
    starts_here = isinmemory(s, initial) && storage(s, initial).pointer === home.pointer
    if in_place
        starts_here || copy_elements!(s, home, initial)
        return Carry(unowned(home), unowned(home), home, nothing)
    end
    part = stays || left === nothing ? allocate!(g.arena, bytes(aval(v))) : nothing
    spare = part === nothing ? left : Memory(pointer_at!(g, dtype(v), part), aval(v), true)
    first_, second = stays || iseven(trips) ? (home, spare) : (spare, home)
    first_ === left || starts_here && first_ === home || copy_elements!(s, first_, initial)
    now = local!(g, Ptr{dtype(v)}, first_.pointer)
    next = local!(g, Ptr{dtype(v)}, second.pointer)
    Carry(Memory(now, aval(v), true), Memory(next, aval(v), true), home, part)
end

"The memory of an operand that nobody reads any more once a loop has started from it."
function donated_initial(s::Frame, loop::Equation, a::Atom)
    a isa Var && isinmemory(s, a) && count(b -> b === a, loop.inputs) == 1 && is_read_last(s, a) ?
    storage(s, a) : nothing
end

"After a trip: the results become the carried values; what was read of them in advance, too."
function advance_carries!(g::Generator, carries, results, pairs)
    for (c, y) in zip(carries, results)
        if c.next === nothing
            push!(pairs, (c.now.symbol, y isa Register ? y.symbol : y))
        elseif y.pointer !== c.now.pointer
            append!(pairs, [(c.now.pointer, c.next.pointer), (c.next.pointer, c.now.pointer)])
        end
    end
    filter!(pair -> pair[1] !== pair[2], pairs)
    held = [local!(g, g.types[v], x) for (v, x) in pairs]
    for ((v, _), x) in zip(pairs, held)
        emit_code!(g, :($v = $x))
    end
end

"Puts a carried value where the loop's result belongs."
function finish_carry!(s::Frame, v::Var, c::Carry)
    c.next === nothing && return s.storages[v] = c.now
    c.next === c.now && return
    g = s.generator
    body = block(g) do
        vector_loop!(g, size_of(shape(v))) do i
            emit_code!(g,
                :($(unsafe_store!)($(c.home.pointer), $(unsafe_load)($(c.now.pointer), $i + 1),
                    $i + 1)))
        end
    end
    emit_code!(g, Expr(:if, :($(c.now.pointer) !== $(c.home.pointer)), body))
    c.spare === nothing || release!(g.arena, c.spare)
end

"What a nested Program may read but not overwrite."
shared(s::Frame, l::Literal) = Register(local!(s.generator, typeof(l.value), l.value))
shared(s::Frame, v::Var) = unowned(storage(s, v))

"""
Writes a loop's body for one trip: its inputs are what is `fixed`, the carries and what the trip
reads (`slices`); what it gives besides the next carries goes to `places`."""
function emit_trip!(g::Generator, body::Program, fixed, carries, slices, places;
    plan_ = plan(body))
    targets = Any[isempty(m.type.shape) ? nothing : m for m in places]
    inputs, from = vcat(fixed, Storage[c.now for c in carries], slices), length(g.code) + 1
    results = emit_program!(g, body, inputs, vcat(Any[c.next for c in carries], targets);
        plan_ = plan_)
    m = length(carries)
    for (y, place) in zip(results[m+1:end], places)
        isempty(place.type.shape) &&
            emit_code!(g, :($(unsafe_store!)($(place.pointer), $(y isa Register ? y.symbol : y))))
    end
    carried = [c.now.pointer => y.pointer
               for (c, y) in zip(carries, results) if c.now isa Memory && y isa Memory]
    advance_carries!(g, carries, results[1:m], keep_in_registers!(g, from, carried))
end

replaced_operand(::Scan, e, k) =
    k > e[:carry] ? nothing : operand_parts(e.attrs, e.inputs)[2][k]
replaced_operand(::While, e, k) = loop_parts(e.attrs, e.inputs)[3][k]
# Of branches the operand that each of them updates in place or hands on.
function replaced_operand(::Cond, e, k)
    alike = [j for (j, a) in enumerate(e.inputs[2:end]) if aval(a) == aval(e.outputs[k])]
    (isempty(alike) || isscalar(e.outputs[k])) && return nothing
    plans = map(plan, e[:branches])
    stays(body, plan_, j) =
        (u = body.inputs[j]; y = body.outputs[k];
        y === u && count(a -> a === u, body.outputs) == 1 || updates_in_place(body, plan_, u, y))
    i = findfirst(j -> all(stays(p, plan_, j) for (p, plan_) in zip(e[:branches], plans)), alike)
    i === nothing ? nothing : e.inputs[alike[i]+1]
end

# A carried value is copied from where it starts.
reads_elements(::Scan, e, k) = e[:consts] < k <= e[:consts] + e[:carry]
reads_elements(::While, e, k) = k > e[:cond_consts] + e[:body_consts]

function emit_step!(::Scan, s::Frame, e)
    blocks = item_blocks(s.generator, e)
    blocks === nothing ? emit_scan!(s, e) : emit_blocks!(s, e, blocks)
end
writes_views(::Scan, e, k) = k > e[:carry]
function emit_scan!(s::Frame, e)
    g, n, body = s.generator, e[:length], e[:body]
    consts, carry, xs = operand_parts(e.attrs, e.inputs)
    kept, stacks = result_parts(e.attrs, e.outputs)
    sources = Memory[memory_of(s, a) for a in xs]
    fixed = Storage[shared(s, a) for a in consts]
    plan_ = plan(body)
    old = operand_parts(e.attrs, body.inputs)[2]
    carries =
        Carry[
            start_carry!(s, v, a, n;
                in_place = reuses_memory(g.target) && updates_in_place(body, plan_, u, y), loop = e
            )
            for (v, a, u, y) in zip(kept, carry, old, body.outputs)
        ]
    sinks = Memory[memory!(s, v) for v in stacks]
    function trip(t)
        slices = Storage[slice!(g, m, t) for m in sources]
        places = Memory[slice_memory!(g, m, t) for m in sinks]
        emit_trip!(g, body, fixed, carries, slices, places; plan_ = plan_)
    end
    if hasindependent_trips(g, e)
        shared_loop!(trip, g, n)
    elseif n > 0
        counted_loop!(trip, g, n; backwards = e[:reverse])
    end
    foreach((v, c) -> finish_carry!(s, v, c), kept, carries)
end

"Whether threads share the trips of a scan: it carries nothing, and is work enough."
hasindependent_trips(g::Generator, e) =
    splits_work(g.target) && !g.threaded && e[:carry] == 0 && e[:length] > 1 &&
    work(e) >= WORTH_THREADS

function slice!(g::Generator, m::Memory, t)
    part = slice_memory!(g, unowned(m), t)
    isempty(part.type.shape) ?
    Register(local!(g, part.type.dtype, :($(unsafe_load)($(part.pointer))))) : part
end

function emit_step!(::While, s::Frame, e)
    g = s.generator
    cond_consts, body_consts, carry = loop_parts(e.attrs, e.inputs)
    fixed_cond, fixed_body = (Storage[shared(s, a) for a in cond_consts],
        Storage[shared(s, a) for a in body_consts])
    plan_ = plan(e[:body])
    old = e[:body].inputs[e[:body_consts]+1:end]
    carries =
        Carry[
            start_carry!(s, v, a, 0;
                in_place = reuses_memory(g.target) && updates_in_place(e[:body], plan_, u, y),
                loop = e)
            for (v, a, u, y) in zip(e.outputs, carry, old, e[:body].outputs)
        ]
    loop!(g, true) do
        now = Storage[c.now for c in carries]
        goes_on = emit_program!(g, e[:cond], vcat(fixed_cond, map(unowned, now)), Any[nothing])[1]
        emit_code!(g, Expr(:||, goes_on isa Register ? goes_on.symbol : goes_on, Expr(:break)))
        emit_trip!(g, e[:body], fixed_body, carries, Storage[], Memory[]; plan_ = plan_)
    end
    foreach((v, c) -> finish_carry!(s, v, c), e.outputs, carries)
end

function emit_step!(::Cond, s::Frame, e)
    g, branches = s.generator, e[:branches]
    inputs = Storage[shared(s, a) for a in e.inputs[2:end]]
    results = Any[isscalar(v) ? local!(g, dtype(v), zero(dtype(v))) : memory!(s, v)
        for v in e.outputs]
    targets = Any[r isa Memory ? r : nothing for r in results]
    bodies = map(branches) do body
        block(g) do
            for (r, y) in zip(results, emit_program!(g, body, inputs, targets))
                r isa Symbol && emit_code!(g, :($r = $(y isa Register ? y.symbol : y)))
            end
        end
    end
    index, last_ = scalar(s, e.inputs[1]), length(bodies)
    choice = bodies[last_]
    for k in last_-1:-1:1
        choice = Expr(:if, :($(<=)($index, $(Int32(k - 1)))), bodies[k], choice)
    end
    emit_code!(g, choice)
    for (v, r) in zip(e.outputs, results)
        r isa Symbol && (s.storages[v] = Register(r))
    end
end
