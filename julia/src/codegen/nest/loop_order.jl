# Which loops a nest has, and in which order: as memory is passed.

# ---- neighbouring axes that memory does not tell apart become one

function collapsed(domain, parts, stores, reduces)
    for k in length(domain)-1:-1:1
        length(parts) == 1 || k + 1 < length(domain) || continue
        n = domain[k+1]
        joins(a::Affine) =
            domain[k] == 1 || (n == 1 && a.coefs[k+1] == 0) || a.coefs[k] == n * a.coefs[k+1]
        all(joins, positions(parts, stores, reduces)) &&
            all(r -> joins_axes(r, domain, k), reduces) || continue
        merged(a::Affine) =
            Affine(n == 1 ? deleteat!(copy(a.coefs), k + 1) : deleteat!(copy(a.coefs), k), a.offset,
                a.dynamic)
        reduced(r) = deleteat!(copy(r.reduced), n == 1 ? k + 1 : k)
        parts = [moved(merged, p, k + 1 < length(domain) ? p.inner : 0:domain[k]*n-1)
         for p in parts]
        stores = [Store(x.value, x.pointer, x.type, merged(x.at)) for x in stores]
        reduces = [
            Reduce(x.value, x.op, x.type, reduced(x), x.pointer, merged(x.at), x.total)
            for x in reduces
        ]
        domain = vcat(domain[1:k-1], domain[k] * n, domain[k+2:end])
    end
    domain, parts, stores, reduces
end
joins_axes(r::Reduce, domain, k) =
    domain[k] == 1 || domain[k+1] == 1 || r.reduced[k] == r.reduced[k+1]

positions(parts, stores, reduces) =
    Affine[Iterators.flatten(map(positions, parts))..., (x.at for x in stores)...,
        (x.at for x in reduces)...]
positions(::Nothing) = Affine[]
positions(p::RowPart) =
    Affine[(st.at for (_, st, _) in p.steps if !(st isa Apply))..., (a for (a, _) in p.edges)...,
        positions(p.interior)...]
moved(f, ::Nothing, inner) = nothing
moved(f, p::RowPart, inner = p.inner) =
    RowPart(inner, [(v, moved(f, st), T) for (v, st, T) in p.steps], p.stores, p.reduces,
        [(f(a), size) for (a, size) in p.edges], moved(f, p.interior, inner))
moved(f, s::Load) = Load(s.pointer, f(s.at))
moved(f, s::Position) = Position(f(s.at))
moved(f, s::Apply) = s

# ---- the order of the loops

"""
The axes put in the order in which most of memory is passed in sequence: the last becomes the one
along which most of what is accessed lies together, what is stored counting more, and before it
comes the one along which the rest does, if any."""
function in_memory_order(domain, parts, stores, reduces)
    (length(domain) < 2 || length(parts) > 1 || any(p -> p.interior !== nothing, parts)) &&
        return domain, parts, stores, reduces
    gains = [contiguous_accesses(k, domain, parts, stores, reduces) for k in eachindex(domain)]
    inner = gains[end] == maximum(gains) ? length(domain) : argmax(gains)
    others = [k for k in eachindex(domain) if k != inner]
    next = any(>(0), gains[others]) ? others[argmax(gains[others])] : others[end]
    permuted = Int[filter(!=(next), others)..., next, inner]
    permuted == collect(eachindex(domain)) && return domain, parts, stores, reduces
    f(a::Affine) = Affine(a.coefs[permuted], a.offset, a.dynamic)
    parts = [moved(f, p, 0:domain[inner]-1) for p in parts]
    stores = [Store(x.value, x.pointer, x.type, f(x.at)) for x in stores]
    reduces = [
        Reduce(x.value, x.op, x.type, x.reduced[permuted], x.pointer, f(x.at), x.total)
        for x in reduces
    ]
    domain[permuted], parts, stores, reduces
end
function contiguous_accesses(k, domain, parts, stores, reduces)
    elements(a::Affine) = a.coefs[k] == 1 ? prod(domain[a.coefs.!=0]) : 0
    sum(Int[elements(st.at) for p in parts for (_, st, _) in p.steps if st isa Load]) +
    2sum(Int[elements(x.at) for x in stores]) +
    sum(Int[elements(r.at) for r in reduces if r.pointer !== nothing])
end

"""
Whether some accesses are contiguous along the last axis but one: rows are then cut so that both
directions stay in the cache."""
is_crossed(domain, part, stores) =
    length(domain) > 1 && domain[end] > TILE && domain[end-1] > 1 &&
    any(a -> a.coefs[end-1] == 1 && abs(a.coefs[end]) > 1,
        vcat(Affine[st.at for (_, st, _) in part.steps
                    if st isa Load], Affine[x.at for x in stores]))
