# Running totals along the middle axis of three. `totals` holds `after` accumulators.

@noinline function accumulate!(f::F, y::Ptr{T}, x::Ptr{T}, totals::Ptr{A}, before::Int, along::Int,
    after::Int, backwards::Bool) where {F,T,A}
    along == 0 && return
    for b in 0:before-1
        line = b * along * after
        after == 1 ? accumulate_line!(f, y, x, A, line, along, backwards) :
        accumulate_lines!(f, y, x, totals, line, along, after, backwards)
    end
end

@inline function accumulate_line!(f, y, x, ::Type{A}, line, along, backwards) where {A}
    step, i = backwards ? -1 : 1, backwards ? line + along - 1 : line
    total = stored(A, at(x, i))
    put!(y, total, i)
    for _ in 2:along
        i += step
        total = stored(A, f(total, stored(A, at(x, i))))
        put!(y, total, i)
    end
end

@inline function accumulate_lines!(f, y, x, totals::Ptr{A}, line, along, after, backwards) where {A}
    for j in 0:along-1
        row = line + (backwards ? along - 1 - j : j) * after
        @vector for i in 0:after-1
            v = stored(A, at(x, row + i))
            total = j == 0 ? v : stored(A, f(at(totals, i), v))
            put!(totals, total, i)
            put!(y, total, row + i)
        end
    end
end

# The same where combining rounds: a million numbers added one by one lose what is small beside the
# sum so far. A running total is that of all blocks before, combined with the one in its own block;
# blocks are combined likewise, `RUNNING_BLOCK` of one level to one of the next, so that an error
# comes of some `RUNNING_BLOCK` combinations a level. `memory` has, after a block of one line where
# there is one, rows of `after` accumulators:
#
#     row 0        the running totals in the block
#     row 2l - 1   the total of those blocks of level l that no block of a higher level has
#     row 2l       the total of the blocks of all levels from l on

"The levels of so many blocks, of which the last one is added to none."
running_levels(blocks) = blocks > 1 ? ndigits(blocks - 1; base = RUNNING_BLOCK) : 0
"The accumulators of `memory`."
running_memory(along, after) =
    (after == 1 ? RUNNING_BLOCK : 0) + (1 + 2running_levels(cld(along, RUNNING_BLOCK))) * after

@noinline function accumulate_blocks!(f::F, y::Ptr{T}, x::Ptr{T}, memory::Ptr{A}, before::Int,
    along::Int, after::Int, backwards::Bool) where {F,T,A}
    rows = after == 1 ? memory + RUNNING_BLOCK * sizeof(A) : memory
    last_block = quotient(along - 1, RUNNING_BLOCK)
    for b in 0:before-1, k in 0:last_block
        start = k * RUNNING_BLOCK
        n, line = min(RUNNING_BLOCK, along - start), b * along * after
        after > 1 ? block_of_lines!(f, y, x, rows, line, along, after, backwards, start, n) :
        backwards ? block_of_line!(f, y, x, memory, rows, line + along - 1 - start, -1, k, n) :
        block_of_line!(f, y, x, memory, rows, line + start, 1, k, n)
        k < last_block && add_block!(f, rows, k, after)
    end
end

@inline function block_of_line!(f, y, x, inside::Ptr{A}, rows, start, step, k, n) where {A}
    total = stored(A, at(x, start))
    put!(inside, total, 0)
    for j in 1:n-1
        total = stored(A, f(total, stored(A, at(x, start + j * step))))
        put!(inside, total, j)
    end
    put!(rows, total, 0)
    if k == 0
        @vector for j in 0:n-1
            put!(y, at(inside, j), start + j * step)
        end
    else
        before = at(rows, 2)
        @vector for j in 0:n-1
            put!(y, f(before, at(inside, j)), start + j * step)
        end
    end
end

@inline function block_of_lines!(f, y, x, inside::Ptr{A}, line, along, after, backwards, start,
    n) where {A}
    before = nth(inside, 2, after)
    for j in 0:n-1
        row = line + (backwards ? along - 1 - start - j : start + j) * after
        @vector for i in 0:after-1
            v = stored(A, at(x, row + i))
            total = j == 0 ? v : stored(A, f(at(inside, i), v))
            put!(inside, total, i)
            put!(y, start == 0 ? total : f(at(before, i), total), row + i)
        end
    end
end

"Adds a finished block, after k others, to what is before the next one."
@inline function add_block!(f, rows::Ptr{A}, k, after) where {A}
    level, block, total = 1, rows, nth(rows, 1, after)
    place, rest = remainder(k, RUNNING_BLOCK), quotient(k, RUNNING_BLOCK)
    while true
        @vector for i in 0:after-1
            v = at(block, i)
            put!(total, place == 0 ? v : stored(A, f(at(total, i), v)), i)
        end
        place == RUNNING_BLOCK - 1 || break
        level, block, total = level + 1, total, nth(rows, 2level + 1, after)
        place, rest = remainder(rest, RUNNING_BLOCK), quotient(rest, RUNNING_BLOCK)
    end
    # No level below has a block now.
    higher = nth(rows, rest == 0 ? 2level - 1 : 2level + 2, after)
    @vector for i in 0:after-1
        v = at(total, i)
        put!(nth(rows, 2level, after), rest == 0 ? v : stored(A, f(at(higher, i), v)), i)
    end
    for l in 1:level-1
        @vector for i in 0:after-1
            put!(nth(rows, 2l, after), at(nth(rows, 2level, after), i), i)
        end
    end
end
