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

# The same where combining rounds: a million numbers added one by one lose what is small compared
# with the sum so far. A running total is that of all blocks before, combined with the one in its
# own block. Blocks are combined two by two, and these again, so that an error comes of as many
# combinations as a block and the logarithm of the number of blocks have. `memory` has what is
# inside of the blocks of one line, where there is one, and then rows of `after` accumulators:
#
#     row 0        the running totals in the block
#     row 2l - 1   the total of that block of level l that is in none of a higher level, if any
#     row 2l       the total of the blocks of all levels from l on

"The levels of so many blocks, of which the last one is added to none."
running_levels(blocks) = blocks > 1 ? ndigits(blocks - 1; base = 2) : 0
"The accumulators of `memory`."
running_memory(along, after) =
    (after == 1 ? RUNNING_BLOCK^2 : 0) +
    (1 + 2running_levels(cld(along, RUNNING_BLOCK))) * after

@noinline function accumulate_blocks!(f::F, y::Ptr{T}, x::Ptr{T}, memory::Ptr{A}, before::Int,
    along::Int, after::Int, backwards::Bool) where {F,T,A}
    rows = after == 1 ? memory + RUNNING_BLOCK^2 * sizeof(A) : memory
    for b in 0:before-1
        line = b * along * after
        after > 1 ? accumulate_lines_by_blocks!(f, y, x, rows, line, along, after, backwards) :
        backwards ?
        accumulate_line_by_blocks!(f, y, x, memory, rows, line + along - 1, -1, along) :
        accumulate_line_by_blocks!(f, y, x, memory, rows, line, 1, along)
    end
end

# Of a line, as many blocks side by side as a block has elements are vectors.
@inline function accumulate_line_by_blocks!(f, y, x, inside, rows, start, step, along)
    last_block = quotient(along - 1, RUNNING_BLOCK)
    whole = quotient(along, RUNNING_BLOCK^2) * RUNNING_BLOCK
    k = 0
    while k <= last_block
        together = ifelse(k < whole, RUNNING_BLOCK, 1)
        n = min(RUNNING_BLOCK, along - k * RUNNING_BLOCK)
        from = start + k * RUNNING_BLOCK * step
        k < whole ? totals_of_blocks!(f, inside, x, from, step) :
        totals_of_block!(f, inside, x, from, step, n)
        for lane in 0:together-1
            put!(rows, at(inside, (n - 1) * RUNNING_BLOCK + lane), 0)
            sofar, place = at(rows, 2), from + lane * RUNNING_BLOCK * step
            if k + lane == 0
                @vector for j in 0:n-1
                    put!(y, at(inside, j * RUNNING_BLOCK), place + j * step)
                end
            else
                @vector for j in 0:n-1
                    put!(y, f(sofar, at(inside, j * RUNNING_BLOCK + lane)), place + j * step)
                end
            end
            k + lane < last_block && add_block!(f, rows, k + lane, 1)
        end
        k += together
    end
end
@inline function totals_of_blocks!(f, inside::Ptr{A}, x, from, step) where {A}
    for j in 0:RUNNING_BLOCK-1
        @vector for lane in 0:RUNNING_BLOCK-1
            v = stored(A, at(x, from + (lane * RUNNING_BLOCK + j) * step))
            i = j * RUNNING_BLOCK + lane
            put!(inside, j == 0 ? v : stored(A, f(at(inside, i - RUNNING_BLOCK), v)), i)
        end
    end
end
@inline function totals_of_block!(f, inside::Ptr{A}, x, from, step, n) where {A}
    total = stored(A, at(x, from))
    put!(inside, total, 0)
    for j in 1:n-1
        total = stored(A, f(total, stored(A, at(x, from + j * step))))
        put!(inside, total, j * RUNNING_BLOCK)
    end
end

@inline function accumulate_lines_by_blocks!(f, y, x, inside::Ptr{A}, line, along, after,
    backwards) where {A}
    sofar = nth(inside, 2, after)
    for k in 0:quotient(along - 1, RUNNING_BLOCK)
        start = k * RUNNING_BLOCK
        n = min(RUNNING_BLOCK, along - start)
        for j in 0:n-1
            row = line + (backwards ? along - 1 - start - j : start + j) * after
            @vector for i in 0:after-1
                v = stored(A, at(x, row + i))
                total = j == 0 ? v : stored(A, f(at(inside, i), v))
                put!(inside, total, i)
                put!(y, k == 0 ? total : f(at(sofar, i), total), row + i)
            end
        end
        start + n < along && add_block!(f, inside, k, after)
    end
end

"Adds a finished block, after k others, to what is before the next one."
@inline function add_block!(f, rows::Ptr{A}, k, after) where {A}
    level, block = 1, rows
    while (k >> (level - 1)) & 1 == 1       # with the block that this level has, to the next
        total = nth(rows, 2level - 1, after)
        @vector for i in 0:after-1
            put!(total, stored(A, f(at(total, i), at(block, i))), i)
        end
        level, block = level + 1, total
    end
    total, sofar = nth(rows, 2level - 1, after), nth(rows, 2level, after)
    some_higher = k >> level != 0
    higher = nth(rows, some_higher ? 2level + 2 : 0, after)
    @vector for i in 0:after-1
        v = at(block, i)
        put!(total, v, i)
        put!(sofar, some_higher ? stored(A, f(at(higher, i), v)) : v, i)
    end
    for l in 1:level-1
        @vector for i in 0:after-1
            put!(nth(rows, 2l, after), at(sofar, i), i)
        end
    end
end
