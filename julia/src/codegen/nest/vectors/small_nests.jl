# Small nests in the bodies of loops, as straight-line code of vectors. The points of the domain are
# cut into packs, the lanes of one vector each, along whichever axes cost least; what a nest before
# has computed or read is taken from registers. LLVM makes vectors along the last axis alone, and
# none of rows shorter than a vector.

"Whether a nest is to be written so: in a loop, of few points, in short rows."
function is_small(g::Generator, domain, parts, stores, reduces)
    g.loops > 0 && writes_vectors(g.target) && length(parts) == 1 &&
        length(domain) <= MOST_PACKED_AXES && prod(domain) <= MOST_PACKED_POINTS || return false
    part = only(parts)
    prod(domain) * length(part.steps) <= MOST_PACKED_STEPS &&
        (isempty(part.steps) || last_size(domain) < at_once(part)) &&
        part.interior === nothing && all(isstatic, positions(parts, stores, reduces)) &&
        all(step -> has_vectors(g, step, domain), part.steps) &&
        all(r -> r.op isa ReduceSum, reduces) &&
        all(((x, v),) -> isvectorized(x.type) && number_type(g, v) === x.type,
            vcat(collect(zip(stores, part.stores)), collect(zip(reduces, part.reduces))))
end
number_type(g, x::Number) = typeof(x)
number_type(g, x::Symbol) = g.types[x]
# Positions are numbers at hand, or there is no vector of them.
has_vectors(g, (_, step, T), domain) = true
function has_vectors(g, (_, step, T)::Tuple{Symbol,Apply,DataType}, domain)
    types = DataType[number_type(g, x) for x in step.operands]
    # of whole rows LLVM's loops need no way by memory
    T === Int || has_instruction(step.f, types, T) ||
        is_function(step.f, types, T) && last_size(domain) % (VECTOR_BYTES ÷ sizeof(T)) != 0
end
"Whether f is one of real numbers that LLVM makes vectors of; one with a fast form asks for rows."
is_function(@nospecialize(f), types, T) =
    isvectorized(T) && all(==(T), types) && fast_form(f, T) === nothing

"Writes the nest in the cheapest way, if there is one; says whether."
function write_small!(g::Generator, domain, part, stores, reduces)
    known, best, least = known_elements(g), nothing, Inf
    for packs in ways(domain, part)
        c = VectorCode(g, known, least)
        write_packs!(c, packs, part, stores, reduces) && ((best, least) = (packs, c.cost))
        foreach(v -> delete!(g.types, v), c.symbols)
    end
    best === nothing && return false
    c, parts = VectorCode(g, known, Inf), Part[]
    write_packs!(c, best, part, stores, reduces)
    foreach(x -> emit_part!(g, parts, x), c.code)
    foreach(p -> release!(g.arena, p), parts)
    g.known = KnownMemory(g.code, length(g.code), c.elements)
    true
end

"What is known of memory here."
known_elements(g::Generator) =
    g.known.code === g.code &&
    all(writes_nothing, view(g.code, g.known.statements+1:length(g.code))) ? g.known.elements :
    KnownMemory().elements
writes_nothing(ex) =
    ex isa Expr && ex.head === :(=) && ex.args[2] isa Expr && ex.args[2].head === :call &&
    ex.args[2].args[1] in (as_pointer, unsafe_load, buffer_data, stored, KEEP_DTYPE...)

"""
The ways to cut the points of a domain into packs: along each set of axes, with what is left of a
row as one vector or as several."""
function ways(domain, part)
    largest, found = VECTOR_BYTES ÷ widest(part), Vector{Vector{Vector{Int}}}[]
    # the last axes first: most memory lies along them
    for apart in points(Int[n > 1 ? 2 : 1 for n in reverse(domain)])
        chosen = [n > 1 && k == 0 for (n, k) in zip(domain, reverse(apart))]
        any(chosen) || prod(domain) <= FEW_POINTS || continue
        lanes = points([c ? n : 1 for (n, c) in zip(domain, chosen)])
        outer = points([c ? 1 : n for (n, c) in zip(domain, chosen)])
        for whole in (false, true)
            pieces = cut(lanes, largest, whole)
            whole && all(p -> ispow2(length(p)), pieces) && continue
            push!(found, [[a .+ b for b in piece] for a in outer for piece in pieces])
        end
    end
    found
end
"The points of a domain in row-major order."
function points(sizes)
    found = [Int[]]
    for n in sizes
        found = Vector{Int}[[p; k] for p in found for k in 0:n-1]
    end
    found
end
"Pieces of `largest` points; of what is left, `whole` or in falling powers of two."
function cut(points, largest, whole)
    pieces, at = typeof(points)[], 1
    while at <= length(points)
        n = min(largest, length(points) - at + 1)
        n = whole ? n : prevpow(2, n)
        push!(pieces, points[at:at+n-1])
        at += n
    end
    pieces
end

# ---- one way

"""
Writes the nest pack by pack, all that is read before all that is written; says whether it could, at
no more than the limit."""
function write_packs!(c::VectorCode, packs, part, stores, reduces)
    written = Dict{Symbol,Dict{Int,Any}}(x.pointer => Dict{Int,Any}() for x in stores)
    terms = [PlacedTerms() for _ in reduces]
    values = [Dict{Symbol,Any}() for _ in packs]
    for (v, step, T) in part.steps
        x = step_values!(c, step, T, packs, values)
        (any(isnothing, x) || c.cost > c.limit) && return false
        foreach((here, y) -> here[v] = y, values, x)
    end
    for (pack, here) in zip(packs, values)
        value(x) = get(here, x, x)
        for (x, v) in zip(stores, part.stores), (k, point) in enumerate(pack)
            written[x.pointer][place(x.at, point)] = lane_of(value(v), k - 1)
        end
        for (r, v, t) in zip(reduces, part.reduces, terms)
            add_pack!(c, t, r, value(v), [place(r.at, p) for p in pack])
        end
    end
    types = Dict{Symbol,DataType}(x.pointer => x.type for x in stores)
    for (r, t) in zip(reduces, terms)
        total = totals!(c, r, t)
        if r.pointer === nothing
            push!(c.code, :($(r.total) = $(+)($(r.total), $(number!(c, total[0])))))
        else
            types[r.pointer] = r.type
            merge!(get!(written, r.pointer, Dict{Int,Any}()), total)
        end
    end
    foreach(p -> put_elements!(c, p, written[p], types[p]), sort!(collect(keys(written))))
    c.cost <= c.limit
end
place(a::Affine, point) = a.offset + sum(Int[k * i for (k, i) in zip(a.coefs, point)])
all_equal(x) = all(==(first(x)), x)

"The values of a step at each pack, nothing where no instruction computes it."
function step_values!(c, s::Union{Load,Position}, T, packs, values)
    map(packs) do pack
        places = [place(s.at, p) for p in pack]
        isvectorized(T) || all_equal(places) ? value_at!(c, s, places, T) : nothing
    end
end
value_at!(c, s::Load, places, T) = elements_at!(c, s.pointer, places, T)
value_at!(c, s::Position, places, T) = first(places)
function step_values!(c, s::Apply, @nospecialize(T), packs, values)
    operands = Vector{Any}[Any[get(here, x, x) for x in s.operands] for here in values]
    types = DataType[type_of(c, x) for x in operands[1]]
    T === Int || has_instruction(s.f, types, T) || return function_values!(c, s.f, T, operands)
    Any[step_value!(c, s.f, T, xs) for xs in operands]
end
function step_value!(c, @nospecialize(f), @nospecialize(T), operands)
    n = foldl(max, Int[x.width for x in operands if x isa Pack]; init = 0)
    n > 0 && return T === Int ? nothing : calculated!(c, n, T, f, operands)
    scalar!(c, T, f, numbers!(c, operands); cost = step_cost(f, 1))
end
