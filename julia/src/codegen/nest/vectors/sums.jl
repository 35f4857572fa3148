# Sums over axes of a small nest. A sum's terms are by places: the positions in memory, or 0 for
# a variable, that the values of a pack are added to.

const PlacedTerms = Vector{Pair{Vector{Int},Any}}

"Adds the values of a pack to what is there for their places."
function add_pack!(c::VectorCode, terms::PlacedTerms, r::Reduce, x, places)
    if !(x isa Pack) && length(places) > 1
        n = nextpow(2, length(places))
        x = all_equal(places) ?
            scalar!(c, r.type, *, Any[number!(c, x), r.type(length(places))]) :
            Pack(vector!(c, x, n), n)
    end
    k = findfirst(p -> first(p) == places, terms)
    k === nothing ? push!(terms, places => x) :
    (terms[k] = places => added!(c, r.type, last(terms[k]), x))
end
"f of numbers of type T."
function scalar!(c, @nospecialize(T), @nospecialize(f), operands; cost = 1.0)
    types = DataType[type_of(c, x) for x in operands]
    i = has_instruction(f, types, T) && !isexpanded(f) ? Calculation(f, operands, types) :
        Scalar(f, operands)
    computed!(c, 1, T, i; cost = cost)
end
function added!(c, T, a, b)
    a isa Pack || b isa Pack || return scalar!(c, T, +, Any[number!(c, a), number!(c, b)])
    n = a isa Pack ? a.width : b.width
    computed!(c, n, T, Addition(vector!(c, a, n), vector!(c, b, n)))
end

"""
The sum's elements by position, with what memory had there. (In a variable it is added at
the end.)"""
function totals!(c::VectorCode, r::Reduce, terms::PlacedTerms)
    total = Dict{Int,Any}()
    for (places, x) in lanes_added!(c, r.type, terms)
        if any(p -> haskey(total, p), places)
            for (k, p) in enumerate(places)
                y = lane_of(x, k - 1)
                total[p] = haskey(total, p) ? added!(c, r.type, total[p], y) : begun!(c, r, y, [p])
            end
        else
            x = begun!(c, r, x, places)
            foreach(k -> total[places[k]] = lane_of(x, k - 1), eachindex(places))
        end
    end
    total
end
function begun!(c, r, x, places)
    r.pointer === nothing && return x
    old = elements_at!(c, r.pointer, places, r.type)
    old isa Number && iszero(old) ? x : added!(c, r.type, old, x)
end

"The terms, the places of each all different: lanes that belong to one place are added up."
function lanes_added!(c, T, terms::PlacedTerms)
    apart = filter(t -> allunique(first(t)), terms)
    whole = Dict{Int,Vector{Pair{Int,Symbol}}}()        # vectors to be added up, by their width
    for (places, x) in terms
        allunique(places) && continue
        if all_equal(places) && x isa Pack && x.width == length(places)
            push!(get!(whole, x.width, []), places[1] => x.vector)
        else
            for p in unique(places)
                lanes = findall(==(p), places) .- 1
                push!(apart, [p] => sum_of_lanes!(c, T, x, lanes))
            end
        end
    end
    for n in sort!(collect(keys(whole)))
        for some in Iterators.partition(sort!(whole[n]; by = first), n)
            length(some) == n ?
            push!(apart, first.(some) => sums_of_vectors!(c, n, T, last.(some))) :
            append!(apart, [[p] => sum_of_lanes!(c, T, Pack(v, n), 0:n-1) for (p, v) in some])
        end
    end
    apart
end

"The sum of some lanes of a vector: of all, by halves."
function sum_of_lanes!(c, T, x, lanes)
    x isa Pack || return number!(c, x)
    length(lanes) == x.width ||
        return foldl((a, b) -> added!(c, T, a, b), Any[number!(c, lane_of(x, k)) for k in lanes])
    n = x.width ÷ 2
    half(from) = n == 1 ? lane_of(x, from) :
                 shuffled!(c, n, T, 2n, collect(from:from+n-1), x.vector)
    sum_of_lanes!(c, T, added!(c, T, half(0), half(n)), 0:n-1)
end

"""
The sums of the lanes of n vectors, of n lanes each, as one vector. Of each two vectors the blocks
of even number and those of odd number are added, of 1 lane, then of 2, and so on."""
function sums_of_vectors!(c, n, T, vectors, block = 1)
    length(vectors) == 1 && return Pack(only(vectors), n)
    lanes(odd) = vec([vector * n + 2block * pair + odd * block + k
                      for k in 0:block-1, vector in 0:1, pair in 0:n÷2block-1])
    halved = map(zip(vectors[1:2:end], vectors[2:2:end])) do (a, b)
        even, odd = (shuffled!(c, n, T, n, lanes(o), a, b) for o in 0:1)
        added!(c, T, even, odd).vector
    end
    sums_of_vectors!(c, n, T, halved, 2block)
end
