# Where along the middle axis of three the extremum is: the first of equals, and the first NaN
# before all. `best` holds `after` numbers.

@noinline function arg_extremum!(beats::F, y::Ptr{I}, x::Ptr{T}, best::Ptr{T}, before::Int,
    along::Int, after::Int) where {F,I,T}
    for b in 0:before-1
        if after == 1
            put!(y, first_extremum(beats, x, b * along, along), b)
        else
            extrema_of_lines!(beats, y + b * after * sizeof(I), x, best, b * along * after,
                along, after)
        end
    end
end

@inline function first_extremum(beats, x, line, along)
    best, index = at(x, line), 0
    for j in 1:along-1
        v = at(x, line + j)
        better = leads(beats, v, best)
        best, index = ifelse(better, v, best), ifelse(better, j, index)
    end
    index
end

@inline function extrema_of_lines!(beats, y::Ptr{I}, x, best, start, along, after) where {I}
    for i in 0:after-1
        put!(best, at(x, start + i), i)
        put!(y, zero(I), i)
    end
    for j in 1:along-1
        row = start + j * after
        @vector for i in 0:after-1
            v, w = at(x, row + i), at(best, i)
            better = leads(beats, v, w)
            put!(best, ifelse(better, v, w), i)
            put!(y, ifelse(better, j % I, at(y, i)), i)
        end
    end
end

"Whether a later element takes the place of the best so far."
@inline leads(beats, v, best) = beats(v, best)
@inline leads(beats, v::AbstractFloat, best) = (best == best) & (beats(v, best) | (v != v))
