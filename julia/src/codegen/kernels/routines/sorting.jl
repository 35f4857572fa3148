# Merge sort of anything of fixed size: stable, without recursion, in the memory given.

"Sorts n elements at `a`; `spare` has room for as many."
@noinline function merge_sort!(less::F, a::Ptr{T}, spare::Ptr{T}, n::Int) where {F,T}
    from = 0
    while from < n
        insertion_sort!(less, a, from, min(from + SHORT_RUN, n))
        from += SHORT_RUN
    end
    source, target, width = a, spare, SHORT_RUN
    while width < n
        from = 0
        while from < n
            merge!(less, target, source, from, min(from + width, n), min(from + 2width, n))
            from += 2width
        end
        source, target, width = target, source, 2width
    end
    source === a || copy!(a, source, n)
    nothing
end

@inline function copy!(to::Ptr{T}, from::Ptr{T}, n) where {T}
    for i in 0:n-1
        put!(to, at(from, i), i)
    end
end

@inline function insertion_sort!(less, a, from, stop)
    for i in from+1:stop-1
        x, j = at(a, i), i
        while j > from && less(x, at(a, j - 1))
            put!(a, at(a, j - 1), j)
            j -= 1
        end
        put!(a, x, j)
    end
end

@inline function merge!(less, target, source, from, middle, stop)
    i, j = from, middle
    for k in from:stop-1
        # The right one only if it is less: equals keep their order.
        right = j < stop && (i >= middle || less(at(source, j), at(source, i)))
        put!(target, at(source, right ? j : i), k)
        i, j = ifelse(right, i, i + 1), ifelse(right, j + 1, j)
    end
end

"What is sorted by its key and tells where it was."
struct Item{K}
    key::K
    place::Int
end

# Keys in lexicographic order.
@inline less(a, b) = precedes(a, b)
@inline less(a::Item, b::Item) = less(a.key, b.key)
@inline less(a::Tuple{K}, b::Tuple{K}) where {K} = precedes(a[1], b[1])
@inline less(a::Tuple, b::Tuple) =
    precedes(a[1], b[1]) | (!precedes(b[1], a[1]) & less(Base.tail(a), Base.tail(b)))
"As XLA orders for top_k, greatest first."
@inline greater(a::Item, b::Item) = a.key > b.key

"Each line of y sorted; `line` and `spare` have room for one."
@noinline function sort_lines!(y::Ptr{T}, x::Ptr{T}, line::Ptr{T}, spare::Ptr{T}, before::Int,
    along::Int, after::Int) where {T}
    for b in 0:before-1, i in 0:after-1
        start = b * along * after + i
        for j in 0:along-1
            put!(line, at(x, start + j * after), j)
        end
        merge_sort!(less, line, spare, along)
        for j in 0:along-1
            put!(y, at(line, j), start + j * after)
        end
    end
end

"The lines of all operands xs in the order of their keys."
@noinline function sort_together!(ys::Y, xs::X, keys::N, items::Ptr{Item{K}}, spare::Ptr{Item{K}},
    before::Int, along::Int, after::Int) where {Y<:Tuple,X<:Tuple,N<:Tuple,K}
    for b in 0:before-1, i in 0:after-1
        start = b * along * after + i
        for j in 0:along-1
            unsafe_store!(items, Item{K}(numbers_at(keys, start + j * after), j), j + 1)
        end
        merge_sort!(less, items, spare, along)
        permute_lines!(ys, xs, items, start, along, after)
    end
end
@inline numbers_at(::Tuple{}, i) = ()
@inline numbers_at(p::Tuple, i) = (at(p[1], i), numbers_at(Base.tail(p), i)...)

permute_lines!(::Tuple{}, ::Tuple{}, items, start, along, after) = nothing
@inline function permute_lines!(ys::Tuple, xs::Tuple, items, start, along, after)
    permute_line!(ys[1], xs[1], items, start, along, after)
    permute_lines!(Base.tail(ys), Base.tail(xs), items, start, along, after)
end
@inline function permute_line!(y::Ptr{T}, x::Ptr{T}, items, start, along, after) where {T}
    for j in 0:along-1
        put!(y, at(x, start + at(items, j).place * after), start + j * after)
    end
end

"The k greatest of each line and where they were."
@noinline function top_lines!(values::Ptr{T}, places::Ptr{Int32}, x::Ptr{T}, items::Ptr{Item{K}},
    spare::Ptr{Item{K}}, before::Int, along::Int, after::Int, k::Int) where {T,K}
    for b in 0:before-1, i in 0:after-1
        start, to = b * along * after + i, b * k * after + i
        n =
            k <= SHORT_RUN ? collect_greatest!(items, x, start, along, after, k) :
            collect_all!(items, x, start, along, after)
        k <= SHORT_RUN || merge_sort!(greater, items, spare, n)
        for j in 0:k-1
            place = at(items, j).place
            put!(values, at(x, start + place * after), to + j * after)
            put!(places, place, to + j * after)
        end
    end
end

@inline function collect_all!(items::Ptr{Item{K}}, x, start, along, after) where {K}
    for j in 0:along-1
        unsafe_store!(items, Item{K}(total_order(at(x, start + j * after)), j), j + 1)
    end
    along
end

"The k greatest in order: each element is put among those found so far."
@inline function collect_greatest!(items::Ptr{Item{K}}, x, start, along, after, k) where {K}
    n = 0
    for j in 0:along-1
        item = Item{K}(total_order(at(x, start + j * after)), j)
        n == k && (k == 0 || !greater(item, at(items, k - 1))) && continue
        place = n == k ? k - 1 : n
        while place > 0 && greater(item, at(items, place - 1))
            put!(items, at(items, place - 1), place)
            place -= 1
        end
        put!(items, item, place)
        n = min(n + 1, k)
    end
    n
end
