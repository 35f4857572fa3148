# Products of rows with rows, A Bᵀ, where the terms of each sum lie together: a tile of sums at a
# time, each by the lanes of a register, which are added up at its end.

"""
C[i, j] = Σ a[i, t] b[j, t], of `terms` terms, with C[i, j] at i · c_row + j · c_column; the rows
of A and B are `a_row` and `b_row` apart. `W` terms, of which there are at least as many, go in a
register. `isfar`: A has to come from memory."""
struct RowProduct{W}
    rows::Int
    columns::Int
    terms::Int
    a_row::Int
    b_row::Int
    c_row::Int
    c_column::Int
    isfar::Bool
end

"""
Three rows of A at a time, so that these are read once; all of B should stay in a cache. What is far
is fetched three rows ahead, so that memory is not idle while B's other rows pass."""
@noinline function multiply_by_rows!(c::Ptr{T}, a::Ptr{T}, b::Ptr{T}, p::RowProduct) where {T}
    i = 0
    while i < p.rows
        three = i + 3 <= p.rows
        c_now, a_now = c + i * p.c_row * sizeof(T), a + i * p.a_row * sizeof(T)
        j = 0
        while j < p.columns
            four = j + 4 <= p.columns
            c_tile, b_now = c_now + j * p.c_column * sizeof(T), b + j * p.b_row * sizeof(T)
            three && four && p.isfar && j == 0 ?
            dot_fetching_three_by_four!(c_tile, a_now, b_now, p) :
            three && four ? dot_three_by_four!(c_tile, a_now, b_now, p) :
            three ? dot_three_by_one!(c_tile, a_now, b_now, p) :
            four ? dot_one_by_four!(c_tile, a_now, b_now, p) :
            dot_one_by_one!(c_tile, a_now, b_now, p)
            j += four ? 4 : 1
        end
        i += three ? 3 : 1
    end
end

# Each by a name of its own, as in tiles.jl. A sum waits for its last term: where there are few sums
# each has several totals.
for (name, rows, columns, totals, fetches) in (
    (:dot_three_by_four!, 3, 4, 1, false), (:dot_fetching_three_by_four!, 3, 4, 1, true),
    (:dot_four_by_one!, 4, 1, 2, false), (:dot_three_by_one!, 3, 1, 2, false),
    (:dot_one_by_four!, 1, 4, 2, false), (:dot_one_by_one!, 1, 1, 4, false))

    @eval @noinline $name(c, a, b, p) =
        dot_tile!(c, a, b, p, Val($rows), Val($columns), Val($totals), Val($fetches))
end

@generated function dot_tile!(c::Ptr{T}, a::Ptr{T}, b::Ptr{T}, p::RowProduct{W}, ::Val{R},
    ::Val{N}, ::Val{U}, ::Val{F}) where {T,W,R,N,U,F}
    V, masks = Lanes{W,T}, Lanes{W,T === Float32 ? Int32 : Int64}
    total(i, j, u) = Symbol(:total, i, :_, j, :_, u)
    each(f, totals = 1:U) = Expr(:block, (f(i, j, u) for i in 1:R for j in 1:N for u in totals)...)
    loaded(p, k, apart, place) = :(load($V, $p, $(k - 1) * $apart + $place))
    fetched(k) = :(prefetch(a + ($(k - 1 + R) * p.a_row + t) * $(sizeof(T))))
    # adds the terms from `place` on to the totals u
    function step(u, place, taken = identity)
        column(j) = Symbol(:column, j)
        Expr(:block,
            (:($(column(j)) = $(taken(loaded(:b, j, :(p.b_row), place)))) for j in 1:N)...,
            (
                Expr(:block, :(x = $(taken(loaded(:a, i, :(p.a_row), place)))),
                    (:($(total(i, j, u)) = multiply_add(x, $(column(j)), $(total(i, j, u))))
                     for j in 1:N)...) for i in 1:R
            )...)
    end
    quote
        $(Expr(:meta, :inline))
        $(each((i, j, u) -> :($(total(i, j, u)) = lanes($V, zero($T)))))
        t = 0
        while t + $(U * W) <= p.terms
            $((fetched(k) for k in 1:R if F)...)
            $(Expr(:block, (step(u, :(t + $((u - 1) * W))) for u in 1:U)...))
            t += $(U * W)
        end
        while t + $W <= p.terms
            $(step(1, :t))
            t += $W
        end
        if t < p.terms      # once more the last ones, without those that are in the sums already
            counted = first_lanes($masks, t + $W - p.terms)
            $(step(1, :(p.terms - $W), x -> :(without($x, counted))))
        end
        $(each((i, j, u) -> :($(total(i, j, 1)) = added($(total(i, j, 1)), $(total(i, j, u)))),
            2:U))
        $(each(
            (i, j, u) ->
                :(put!(c, sum_of($(total(i, j, u))), $(i - 1) * p.c_row + $(j - 1) * p.c_column)),
            1:1))
        nothing
    end
end
@inline sum_of(x::Lanes{W,T}) where {W,T} = sum_of(ntuple(k -> x[k].value, Val(W)))
@inline sum_of(x::NTuple{1,T}) where {T<:Number} = x[1]
@inline sum_of(x::NTuple{W,T}) where {W,T<:Number} =
    sum_of(ntuple(k -> x[k] + x[k+W÷2], Val(W ÷ 2)))

"Masks of the first n lanes of a vector, for integers that many bits wide."
@inline first_lanes(::Type{Lanes{W,I}}, n) where {W,I<:Integer} =
    ntuple(k -> VecElement(ifelse(k <= n, -one(I), zero(I))), Val(W))
"The vector with zeros where the mask is set."
@generated function without(x::Lanes{W,T}, mask::Lanes{W,I}) where {W,T,I}
    number, integer = T === Float32 ? "float" : "double", "i$(8sizeof(I))"
    text = """
        %3 = bitcast <$W x $number> %0 to <$W x $integer>
        %4 = xor <$W x $integer> %1, <$(join(fill("$integer -1", W), ", "))>
        %5 = and <$W x $integer> %3, %4
        %6 = bitcast <$W x $integer> %5 to <$W x $number>
        ret <$W x $number> %6"""
    :($(Expr(:meta, :inline));
    Base.llvmcall($text, $(Lanes{W,T}), Tuple{$(Lanes{W,T}),$(Lanes{W,I})}, x, mask))
end
