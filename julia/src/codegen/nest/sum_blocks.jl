# Sums over many rows, added up block by block: one number after the other, the error grows with the
# number of rows; by blocks, with the length of a block and the number of blocks.

"Which of several threads' chunks the code is for, and how many there are."
struct Chunk
    index::Union{Symbol,Int}
    count::Int
end
const WHOLE = Chunk(0, 1)

"""
`f(reduces, a, b)` writes the loop over positions a … b - 1 of an axis, within loops over
`variables`. Where sums have many terms along it, the loop is cut into blocks, with sums of their
own that are added to the whole at the end of each; where they are many, into blocks of blocks."""
function in_sum_blocks!(f, g::Generator, domain, reduces, variables, from, to, chunk)
    axis = length(variables) + 1
    rows = block_rows(domain, reduces, axis)
    steps = domain[axis] < 2rows * SUM_BLOCK * chunk.count ? [rows] : [rows * SUM_BLOCK, rows]
    in_sum_blocks!(f, g, domain, reduces, variables, from, to, chunk, steps)
end
function in_sum_blocks!(f, g::Generator, domain, reduces, variables, from, to, chunk, steps)
    isempty(steps) && return f(reduces, from, to)
    rows, smaller = steps[1], steps[2:end]
    axis = length(variables) + 1
    inner = axis+1:length(domain)
    long = [r for r in reduces if is_long_sum(r, domain, axis, rows, chunk)]
    isempty(long) &&
        return in_sum_blocks!(f, g, domain, reduces, variables, from, to, chunk, smaller)
    areas = IdDict{Reduce,Part}(r => accumulators!(g, r, domain, inner, chunk) for r in long)
    stepped_loop!(g, from, to; step = rows) do a, b
        own = own_accumulators!(g, reduces, areas, domain, inner, chunk)
        in_sum_blocks!(f, g, domain, own, variables, a, b, chunk, smaller)
        for (r, mine) in zip(reduces, own)
            r === mine || add_accumulators!(g, r, mine, domain, inner, variables)
        end
    end
    foreach(x -> release!(g.arena, x), values(areas))
end

"""
`f(reduces, a, b)` likewise, for positions of a row of n elements that is passed in blocks of that
size, each of them one term of the row's sums."""
function in_row_sums!(f, g::Generator, reduces, variables, n, from, to, size)
    long = [r for r in reduces if r.reduced[end] && adds_floats(r)]
    step = SUM_BLOCK * size
    (isempty(long) || n < 2step) && return f(reduces, from, to)
    stepped_loop!(g, from, to; step = step) do a, b
        own = map(reduces) do r
            r in long || return r
            with(r; pointer = nothing, total = local!(g, r.type, neutral(r.op, r.type)))
        end
        f(own, a, b)
        for (r, mine) in zip(reduces, own)
            r === mine || combine!(g, r, Any[variables..., 0], mine.total)
        end
    end
end

"How many rows make a block of `SUM_BLOCK` terms."
function block_rows(domain, reduces, axis)
    between = axis+1:length(domain)-1
    terms(r) = prod(Int[domain[k] for k in between if r.reduced[k]])
    max(1, SUM_BLOCK ÷ foldl(max, Int[terms(r) for r in reduces if r.reduced[axis]]; init = 1))
end
is_long_sum(r::Reduce, domain, axis, rows, chunk) =
    adds_floats(r) && r.reduced[axis] &&
    domain[axis] >= 2rows * chunk.count && lies_together(r, domain, axis+1:length(domain)) &&
    chunk.count * kept_size(r, domain, axis+1:length(domain)) * sizeof(r.type) <= LARGEST_PARTIALS

adds_floats(r::Reduce) = r.op isa ReduceSum && r.type <: Union{AbstractFloat,Complex}

# ---- accumulators of a part of a nest, for some of the axes

kept_size(r::Reduce, domain, axes = eachindex(domain)) =
    prod(Int[domain[k] for k in axes if !r.reduced[k]])
"Whether the accumulators along these axes lie one after the other, in any order."
function lies_together(r::Reduce, domain, axes)
    r.pointer === nothing && return true
    stride = 1
    for (k, n) in sort!([r.at.coefs[k] => domain[k] for k in axes if !r.reduced[k]])
        n == 1 && continue
        k == stride || return false
        stride *= n
    end
    true
end

"Part of the workspace with accumulators for each of the chunks."
accumulators!(g::Generator, r::Reduce, domain, axes, chunk) =
    allocate!(g.arena, chunk.count * kept_size(r, domain, axes) * sizeof(r.type))
"The reductions; those that have `areas`, with accumulators there, set to the neutral element."
function own_accumulators!(g::Generator, reduces, areas, domain, axes, chunk)
    map(reduces) do r
        haskey(areas, r) || return r
        start = neutral(r.op, r.type)
        r.pointer === nothing && return with(r; total = local!(g, r.type, start))
        mine = accumulators(g, r, areas[r], domain, axes, chunk.index)
        vector_loop!(g, kept_size(r, domain, axes)) do i
            emit_code!(g, :($(unsafe_store!)($(mine.pointer), $start, $i + 1)))
        end
        mine
    end
end
"The reduction with a chunk's accumulators as they are in memory."
function accumulators(g::Generator, r::Reduce, area, domain, axes, index)
    base = pointer_at!(g, r.type, area)
    r.pointer === nothing &&
        return with(r; total = local!(g, r.type, :($(unsafe_load)($base, $index + 1))))
    bytes = kept_size(r, domain, axes) * sizeof(r.type)
    mine = local!(g, Ptr{r.type}, :($base + $index * $bytes))
    inner = Int[k in axes ? c : 0 for (k, c) in enumerate(r.at.coefs)]
    with(r; pointer = mine, at = Affine(inner, 0, []))
end
with(r::Reduce; pointer = r.pointer, at = r.at, total = r.total) =
    Reduce(r.value, r.op, r.type, r.reduced, pointer, at, total)

"Combines a part's accumulators with those of the whole, at these positions of the other axes."
function add_accumulators!(g, r::Reduce, mine::Reduce, domain, axes, variables)
    r.pointer === nothing &&
        return emit_code!(g, :($(r.total) = $(accumulated(r, r.total, mine.total))))
    outer = Affine(Int[k in axes ? 0 : c for (k, c) in enumerate(r.at.coefs)], r.at.offset,
        r.at.dynamic)
    from = local!(g, Int, expression(outer + 1, variables))
    vector_loop!(g, kept_size(r, domain, axes)) do i
        part = :($(unsafe_load)($(mine.pointer), $i + 1))
        update_element!(old -> accumulated(r, old, part), g, r.pointer, :($i + $from))
    end
end
