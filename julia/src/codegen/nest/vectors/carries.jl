# Carried arrays of a loop whose trips read them as vectors: these stay in registers from trip to
# trip, where the trip before has computed the elements. (They go to memory, too, for others.)

"""
Moves readings of carried arrays from a trip's code, which begins at statement `from`, to in front
of the loop. Gives the variables with the values that they take at the end of the trip. `carried`
are pairs of pointers, to an array in this trip and to where its next elements are."""
function keep_in_registers!(g::Generator, from, carried)
    pairs, known = Tuple{Symbol,Any}[], known_elements(g)
    isempty(known) && return pairs
    c, before = VectorCode(g, known, Inf), VectorStep[]
    for (now, next) in carried, k in first_readings(g, from, now)
        s = g.code[k]
        elements = Any[get(known, (next, s.instruction.at + k), nothing) for k in 0:s.n-1]
        # a number from memory is in all lanes at once, one from a lane has to be brought there
        (any(isnothing, elements) || s.n == 1 && elements[1] isa Lane) && continue
        x = gathered!(c, elements)
        push!(pairs, (s.result, s.n == 1 ? number!(c, x) : vector!(c, x, s.n)))
        push!(before, s)
    end
    filter!(x -> !(x isa VectorStep && any(s -> s === x, before)), g.code)
    append!(g.entry, before)
    foreach(x -> emit_code!(g, statement(x, x.instruction)), c.code)
    pairs
end

"The places of statements that read there before anything may write there."
function first_readings(g::Generator, from, pointer)
    found = Int[]
    for k in from:length(g.code)
        x = g.code[k]
        x isa VectorStep && x.instruction isa Reading && x.instruction.pointer === pointer &&
            push!(found, k)
        may_write(x, pointer, g.types) && break
    end
    found
end
may_write(x, pointer, types) = false
may_write(s::VectorStep, pointer, types) =
    s.instruction isa Writing && s.instruction.pointer === pointer
may_write(p::Parallel, pointer, types) = true
function may_write(ex::Expr, pointer, types)
    ex.head === :call || return any(a -> may_write(a, pointer, types), ex.args)
    f = ex.args[1]
    f === unsafe_store! && return ex.args[2] === pointer || may_write(ex.args[3], pointer, types)
    # another function that takes a pointer may write there; others are of numbers
    f in (unsafe_load, as_pointer, +) || !any(a -> is_pointer(a, types), ex.args[2:end]) ||
        return true
    any(a -> may_write(a, pointer, types), ex.args[2:end])
end
is_pointer(x, types) = x isa Symbol && get(types, x, Nothing) <: Ptr
