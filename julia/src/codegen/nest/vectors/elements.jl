# The elements of small arrays while straight-line code of vectors is written: lanes of vectors,
# local variables and numbers.

"A vector, a local variable of so many lanes, as the values at a pack of points."
struct Pack
    vector::Symbol
    width::Int
end
"One number of a vector; the first lane is 0."
struct Lane
    vector::Symbol
    width::Int
    lane::Int
end
# A value is a pack, or one element at all points.
lane_of(x::Pack, k) = Lane(x.vector, x.width, k)
lane_of(x, k) = x

"""
Straight-line code that is being written: instructions with their results, and what writes; the
elements of memory that are known (`KnownMemory`), and what it is estimated to take, in vectors'
additions. It is not continued beyond the `limit`."""
mutable struct VectorCode
    generator::Generator
    symbols::Vector{Symbol}             # its local variables
    code::Vector{Any}
    cost::Float64
    limit::Float64
    results::Dict{Computed,Any}
    elements::Dict{Tuple{Symbol,Int},Any}
end
VectorCode(g::Generator, elements, limit) =
    VectorCode(g, Symbol[], Any[], 0.0, limit, Dict(), copy(elements))

type_of(c::VectorCode, x::Symbol) = c.generator.types[x]
type_of(c::VectorCode, x::Number) = typeof(x)
type_of(c::VectorCode, x::Union{Pack,Lane}) = eltype(c.generator.types[x.vector]).parameters[1]

function new_symbol!(c::VectorCode, @nospecialize(T))
    push!(c.symbols, fresh_symbol!(c.generator, T))
    last(c.symbols)
end

"The result of an instruction, a vector of n lanes or, where n is 1, a number."
function computed!(c::VectorCode, n, @nospecialize(T), @nospecialize(i::Instruction); cost = 1.0)
    result = Computed(n, T, i)
    haskey(c.results, result) && return c.results[result]
    v = new_symbol!(c, vector_type(n, T))
    push!(c.code, VectorStep(v, i, n, T))
    c.cost += cost
    c.results[result] = n == 1 ? v : Pack(v, n)
end

number!(c::VectorCode, x) = x
number!(c::VectorCode, x::Lane) =
    computed!(c, 1, type_of(c, x), Extraction(x.width, x.vector, x.lane))
numbers!(c::VectorCode, values) = Any[number!(c, x) for x in values]

"The value as a vector of n lanes."
vector!(c::VectorCode, x::Pack, n) = x.vector
vector!(c::VectorCode, x, n) = computed!(c, n, type_of(c, x), Splat(x); cost = 0.5).vector
vector!(c::VectorCode, x::Lane, n) =
    shuffled!(c, n, type_of(c, x), x.width, fill(x.lane, n), x.vector).vector
shuffled!(c::VectorCode, n, T, width, order, a, b = a) =
    computed!(c, n, T, Shuffle(width, order, a, b))

"A value whose first lanes are these elements; the element where all are the same."
function gathered!(c::VectorCode, elements)
    x = first(elements)
    all(y -> y === x, elements) && return x
    n, T, whole = nextpow(2, length(elements)), type_of(c, x), nothing
    for (v, width) in unique((y.vector, y.width) for y in elements if y isa Lane)
        order = Int[y isa Lane && y.vector === v ? y.lane : -1 for y in elements]
        append!(order, fill(-1, n - length(order)))
        part = width == n && all(k -> order[k] in (-1, k - 1), 1:n) ? Pack(v, n) :
               shuffled!(c, n, T, width, order, v)
        chosen(k) = order[k] < 0 ? k - 1 : n + k - 1
        whole = whole === nothing ? part :
                shuffled!(c, n, T, n, map(chosen, 1:n), whole.vector, part.vector)
    end
    for y in unique(y for y in elements if !(y isa Lane))
        whole === nothing && (whole = Pack(vector!(c, y, n), n); continue)
        for k in findall(z -> z === y, elements)
            whole = computed!(c, n, T, Insertion(whole.vector, y, k - 1); cost = 1.5)
        end
    end
    whole
end

# ---- memory

"""
The value whose lanes are the elements at these positions. What lies together is read as vectors,
with what little lies between."""
function elements_at!(c::VectorCode, pointer, positions, T)
    unknown = sort!(unique(p for p in positions if !haskey(c.elements, (pointer, p))))
    k = 1
    while k <= length(unknown)
        at = unknown[k]
        while k < length(unknown) && unknown[k+1] - unknown[k] <= MOST_BETWEEN
            k += 1
        end
        read_stretch!(c, pointer, at, unknown[k] + 1, T)
        k += 1
    end
    gathered!(c, Any[c.elements[(pointer, p)] for p in positions])
end
function read_stretch!(c, pointer, at, stop, T)
    while at < stop
        n = prevpow(2, min(stop - at, VECTOR_BYTES ÷ sizeof(T)))
        x = computed!(c, n, T, Reading(pointer, at); cost = n == 1 ? 0.5 : 1.0)
        foreach(k -> get!(c.elements, (pointer, at + k), lane_of(x, k)), 0:n-1)
        at += n
    end
end

"Writes n numbers to memory from position `at` on."
store_numbers!(c::VectorCode, pointer, at, n, T, x) =
    push!(c.code, VectorStep(new_symbol!(c, Cvoid), Writing(pointer, at, x), n, T))

"Writes elements to memory, by position: what lies together, as vectors."
function put_elements!(c::VectorCode, pointer, elements, T)
    positions = sort!(collect(keys(elements)))
    k = 1
    while k <= length(positions)
        at = positions[k]
        last_ = findnext(j -> j == length(positions) || positions[j+1] != positions[j] + 1,
            1:length(positions), k)
        n = prevpow(2, min(last_ - k + 1, VECTOR_BYTES ÷ sizeof(T)))
        together = lanes_together(elements, at)
        together > 1 && (n = min(n, prevpow(2, together)))
        x = n == 1 ? number!(c, elements[at]) :
            vector!(c, gathered!(c, Any[elements[at+j] for j in 0:n-1]), n)
        store_numbers!(c, pointer, at, n, T, x)
        c.cost += 1
        k += n
    end
    foreach(((p, x),) -> c.elements[(pointer, p)] = x, elements)
end
"How many elements from that position on are one after the other in a vector."
function lanes_together(elements, at)
    x, n = elements[at], 1
    x isa Lane || return 1
    while get(elements, at + n, nothing) === Lane(x.vector, x.width, x.lane + n)
        n += 1
    end
    n
end
