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
