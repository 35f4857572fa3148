# Products of a matrix and a vector, several rows at a time: what is read of the vector, or of the
# result, serves all of them.

"""
y[i] = Σ a[i, j] x[j] for so many rows and columns; rows are `apart`, columns lie together, and so
do y and x."""
@noinline function multiply_vector!(y::Ptr{T}, a::Ptr{T}, x::Ptr{T}, rows::Int, columns::Int,
    apart::Int) where {T}
    p = RowProduct{REGISTER ÷ sizeof(T)}(rows, 1, columns, apart, 0, 1, 0, false)
    i = 0
    while i + 4 <= rows
        dot_four_by_one!(y + i * sizeof(T), a + i * apart * sizeof(T), x, p)
        i += 4
    end
    while i < rows
        dot_one_by_one!(y + i * sizeof(T), a + i * apart * sizeof(T), x, p)
        i += 1
    end
end

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
