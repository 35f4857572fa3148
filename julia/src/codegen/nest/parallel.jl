# Nests large enough for several threads: the first axis is cut into chunks.

most_chunks() = CHUNKS_A_THREAD * Sys.CPU_THREADS

"How many chunks a nest is cut into; 1 for not at all."
function chunk_count(g::Generator, domain, parts, reduces)
    (g.threaded || isempty(domain) || Sys.CPU_THREADS == 1) && return 1
    length(domain) == 1 && length(parts) > 1 && return 1
    additions(domain, parts, reduces) < WORTH_THREADS && return 1
    n = min(domain[1], most_chunks())
    partials = sum(Int[kept_size(r, domain) * sizeof(r.type) for r in reduces if r.reduced[1]])
    n * partials > LARGEST_PARTIALS ? 1 : n
end

"""
What a nest takes, in additions: each part of the last axis has steps of its own, and most rows are
away from the edges of padded arrays."""
additions(domain, parts, reduces) =
    prod(domain[1:end-1]) *
    sum(Int[length(p.inner) * (additions(p) + length(reduces)) for p in parts])
additions(part::RowPart) =
    part.interior === nothing ? sum(Int[islong(s) ? FUNCTION_COST : 1 for s in part.steps]) :
    additions(part.interior)

function write_parallel!(s::Frame, domain, parts, stores, reduces, chunks)
    g, axes = s.generator, eachindex(domain)
    chunk = Chunk(fresh_symbol!(g, Int), chunks)
    split_sums = [r for r in reduces if r.reduced[1]]
    areas = IdDict{Reduce,Part}(r => accumulators!(g, r, domain, axes, chunk) for r in split_sums)
    body = threaded_block(g) do
        own = own_accumulators!(g, reduces, areas, domain, axes, chunk)
        from, to = chunk_bounds!(g, domain[1], chunk.index, chunks)
        write_loops!(g, domain, parts, stores, own; from = from, to = to, chunk = chunk)
        for (r, mine) in zip(reduces, own)
            r.pointer === nothing &&
                emit_code!(g,
                    :($(unsafe_store!)($(pointer_at!(g, r.type, areas[r])), $(mine.total),
                        $(chunk.index) + 1)))
        end
    end
    emit_code!(g, Parallel(chunk.index, chunks, body))
    for r in split_sums
        counted_loop!(g, chunks) do k
            part = accumulators(g, r, areas[r], domain, axes, k)
            add_accumulators!(g, r, part, domain, axes, Any[])
        end
        release!(g.arena, areas[r])
    end
end

"Where a chunk of n begins, and where the next one does, as local variables."
chunk_bounds!(g::Generator, n, chunk, chunks) =
    Tuple(local!(g, Int, :($(÷)($(*)($n, $k), $chunks))) for k in (chunk, :($chunk + 1)))

"The code that `f` writes, for several threads; within it there is one thread."
function threaded_block(f, g::Generator)
    g.threaded = true
    try
        block(f, g)
    finally
        g.threaded = false
    end
end

"""
What `f(chunk)` writes, on several threads, for each of the chunks. Whatever of the workspace it
takes, each chunk has for itself."""
function on_threads!(f, g::Generator, chunks)
    chunk, arena, workspace = fresh_symbol!(g, Int), g.arena, g.workspace
    g.arena = Arena(reuses = arena.reuses)
    g.workspace = fresh_symbol!(g, Ptr{UInt8})
    body = threaded_block(() -> f(chunk), g)
    mine, bytes = g.workspace, g.arena.peak
    g.arena, g.workspace = arena, workspace
    part = allocate!(arena, chunks * bytes)
    pushfirst!(body.args,
        :($mine = $(as_pointer)($UInt8, $workspace, $(first(part))) + $chunk * $bytes))
    emit_code!(g, Parallel(chunk, chunks, body))
    release!(arena, part)
end

"A loop over what `f(k)` writes, for k from 0 to n - 1; threads share it, in chunks."
function shared_loop!(f, g::Generator, n)
    chunks = min(n, most_chunks())
    on_threads!(g, chunks) do chunk
        from, to = chunk_bounds!(g, n, chunk, chunks)
        counted_loop!(f, g, to; from = from)
    end
end
