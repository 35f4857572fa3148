# Nests large enough for several threads: the first axis is cut into chunks.

most_chunks() = CHUNKS_A_THREAD * Sys.CPU_THREADS

"How many chunks a nest is cut into; 1 for not at all."
function chunk_count(g::Generator, domain, parts, reduces)
    (g.threaded || isempty(domain) || Sys.CPU_THREADS == 1) && return 1
    length(domain) == 1 && length(parts) > 1 && return 1
    steps = sum(Int[length(p.steps) for p in parts]) + length(reduces)
    prod(domain) * steps < WORTH_THREADS && return 1
    n = min(domain[1], most_chunks())
    partials = sum(Int[kept_size(r, domain) * sizeof(r.type) for r in reduces if r.reduced[1]])
    n * partials > LARGEST_PARTIALS ? 1 : n
end
kept_size(r::Reduce, domain) = prod(Int[n for (n, gone) in zip(domain, r.reduced) if !gone])

function write_parallel!(s::Frame, domain, parts, stores, reduces, chunks)
    g, chunk = s.generator, fresh_symbol!(s.generator, Int)
    split_sums = [r for r in reduces if r.reduced[1]]
    areas = IdDict{Reduce,Part}(
        r =>
            allocate!(g.arena, chunks * kept_size(r, domain) * sizeof(r.type)) for r in split_sums
    )
    body = threaded_block(g) do
        own = Reduce[
            haskey(areas, r) ?
            own_accumulator!(g, r, areas[r], chunk, kept_size(r, domain)) : r for r in
            reduces
        ]
        from, to = (
            local!(g, Int, :($(÷)($(*)($(domain[1]), $(k)), $chunks)))
            for k in (chunk, :($chunk + 1))
        )
        write_loops!(g, domain, parts, stores, own; from = from, to = to)
        for (r, mine) in zip(reduces, own)
            r.pointer === nothing &&
                emit_code!(g,
                    :($(unsafe_store!)($(pointer_at!(g, r.type, areas[r])), $(mine.total),
                        $chunk + 1)))
        end
    end
    emit_code!(g, Parallel(chunk, chunks, body))
    for r in split_sums
        gather_sums!(g, r, areas[r], chunks, kept_size(r, domain))
        release!(g.arena, areas[r])
    end
end

"The code that `f` writes, for several threads; within it there is one thread."
function threaded_block(f, g::Generator)
    g.threaded = true
    try
        block(f, g)
    finally
        g.threaded = false
    end
end

"A chunk's own accumulators, set to the neutral element."
function own_accumulator!(g, r::Reduce, area, chunk, n)
    start = neutral(r.op, r.type)
    r.pointer === nothing && return with(r; total = local!(g, r.type, start))
    base = pointer_at!(g, r.type, area)
    mine = local!(g, Ptr{r.type}, :($base + $chunk * $(n * sizeof(r.type))))
    vector_loop!(i -> emit_code!(g, :($(unsafe_store!)($mine, $start, $i + 1))), g, n)
    with(r; pointer = mine)
end
with(r::Reduce; pointer = r.pointer, total = r.total) =
    Reduce(r.value, r.op, r.type, r.reduced, pointer, r.at, total)

"Combines the chunks' accumulators."
function gather_sums!(g, r::Reduce, area, chunks, n)
    f, base = combiner(r.op), pointer_at!(g, r.type, area)
    counted_loop!(g, chunks) do k
        r.pointer === nothing &&
            return emit_code!(g,
                :($(r.total) = $(stored)($(r.type), $f($(r.total), $(unsafe_load)($base, $k + 1)))))
        vector_loop!(g, n) do i
            part = :($(unsafe_load)($base, $k * $n + $i + 1))
            emit_code!(g,
                :($(unsafe_store!)($(r.pointer),
                    $(stored)($(r.type), $f($(unsafe_load)($(r.pointer), $i + 1), $part)), $i + 1)))
        end
    end
end
