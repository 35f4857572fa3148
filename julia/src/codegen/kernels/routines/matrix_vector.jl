# Products of a matrix and a vector, several rows at a time: what is read of the vector, or of the
# result, serves all of them.

"""
y[i] = Σ a[i, j] x[j] for so many rows and columns; rows are `apart`, columns lie together, and so
do y and x."""
@noinline function multiply_vector!(y::Ptr{T}, a::Ptr{T}, x::Ptr{T}, rows::Int, columns::Int,
    apart::Int) where {T}
    i = 0
    while i + 4 <= rows
        dot_four_rows!(y + i * sizeof(T), a + i * apart * sizeof(T), x, columns, apart)
        i += 4
    end
    while i < rows
        dot_row!(y + i * sizeof(T), a + i * apart * sizeof(T), x, columns, apart)
        i += 1
    end
end

# Each by a name of its own, as in tiles.jl.
@noinline dot_four_rows!(y::Ptr{T}, a, x, columns, apart) where {T} =
    dot_rows!(y, a, x, columns, apart, Val(4), Val(REGISTER ÷ sizeof(T)))
@noinline dot_row!(y::Ptr{T}, a, x, columns, apart) where {T} =
    dot_rows!(y, a, x, columns, apart, Val(1), Val(REGISTER ÷ sizeof(T)))

# Two totals a row, since each waits for its last sum.
@generated function dot_rows!(y::Ptr{T}, a::Ptr{T}, x::Ptr{T}, n::Int, apart::Int, ::Val{R},
    ::Val{W}) where {T,R,W}
    V = Lanes{W,T}
    total(i, half) = Symbol(:total, i, :_, half)
    number(i) = Symbol(:number, i)
    each(f) = Expr(:block, (f(i) for i in 1:R)...)
    entry(i, j) = :(load($V, a, $(i - 1) * apart + $j))
    quote
        $(Expr(:meta, :inline))
        $(each(i -> :($(total(i, 1)) = $(total(i, 2)) = lanes($V, zero($T)))))
        j = 0
        while j + $(2W) <= n
            x1, x2 = load($V, x, j), load($V, x, j + $W)
            $(each(
                i ->
                    :($(total(i, 1)) = multiply_add($(entry(i, :j)), x1,
                        $(total(i, 1)));
                    $(total(i, 2)) = multiply_add($(entry(i, :(j + $W))), x2, $(total(i, 2))))
            ))
            j += $(2W)
        end
        if j + $W <= n
            x1 = load($V, x, j)
            $(each(i -> :($(total(i, 1)) = multiply_add($(entry(i, :j)), x1, $(total(i, 1))))))
            j += $W
        end
        $(each(i -> :($(number(i)) = sum_of($(total(i, 1))) + sum_of($(total(i, 2))))))
        while j < n
            x1 = at(x, j)
            $(each(i -> :($(number(i)) = muladd(at(a, $(i - 1) * apart + j), x1, $(number(i))))))
            j += 1
        end
        $(each(i -> :(put!(y, $(number(i)), $(i - 1)))))
        nothing
    end
end
@inline sum_of(x::Lanes{W,T}) where {W,T} = sum_of(map(e -> e.value, x))
@inline sum_of(x::NTuple{1,T}) where {T<:Number} = x[1]
@inline sum_of(x::NTuple{W,T}) where {W,T<:Number} =
    sum_of(ntuple(k -> x[k] + x[k+W÷2], Val(W ÷ 2)))

"""
y[j] = Σ x[i] a[i, j], likewise, from the last row to the first: where both products of one matrix
take turns, as in a gradient and in conjugate gradients, each finds in the cache the rows that the
one before met last."""
@noinline function multiply_vector_left!(y::Ptr{T}, a::Ptr{T}, x::Ptr{T}, rows::Int, columns::Int,
    apart::Int) where {T}
    @vector for j in 0:columns-1
        put!(y, zero(T), j)
    end
    i = rows
    while i >= 8
        i -= 8
        add_eight_rows!(y, a + i * apart * sizeof(T), x + i * sizeof(T), columns, apart)
    end
    while i > 0
        i -= 1
        add_row!(y, a + i * apart * sizeof(T), x + i * sizeof(T), columns, apart)
    end
end
# Two names, since one that a function calls for two types cannot be told apart in LLVM's text.
@noinline add_eight_rows!(y, a, x, n, apart) = add_rows!(y, a, x, n, apart, Val(8), register(y))
@noinline add_row!(y, a, x, n, apart) = add_rows!(y, a, x, n, apart, Val(1), register(y))
register(::Ptr{T}) where {T} = Val(REGISTER ÷ sizeof(T))
@generated function add_rows!(y::Ptr{T}, a::Ptr{T}, x::Ptr{T}, n::Int, apart::Int, ::Val{R},
    ::Val{W}) where {T,R,W}
    V = Lanes{W,T}
    number(i) = Symbol(:number, i)
    entry(i) = :($(i - 1) * apart + j)
    each(f) = Expr(:block, (f(i) for i in 1:R)...)
    quote
        $(Expr(:meta, :inline))
        $(each(i -> :($(number(i)) = at(x, $(i - 1)))))
        j = 0
        while j + $W <= n
            total = load($V, y, j)
            $(each(
                i ->
                    :(
                        total =
                            multiply_add(load($V, a, $(entry(i))), lanes($V, $(number(i))), total)
                    )
            ))
            save!(y, total, j)
            j += $W
        end
        while j < n
            rest = at(y, j)
            $(each(i -> :(rest = muladd(at(a, $(entry(i))), $(number(i)), rest))))
            put!(y, rest, j)
            j += 1
        end
        nothing
    end
end

"y[j] = Σ x[i, j] for so many rows that lie one after the other."
@noinline function add_rows_of!(y::Ptr{T}, x::Ptr{T}, rows::Int, columns::Int) where {T}
    @vector for j in 0:columns-1
        put!(y, at(x, j), j)
    end
    for i in 1:rows-1
        @vector for j in 0:columns-1
            put!(y, at(y, j) + at(x, i * columns + j), j)
        end
    end
end
