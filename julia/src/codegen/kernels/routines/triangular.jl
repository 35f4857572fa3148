# Triangular systems with several right-hand sides, a row for the unknowns of the same number.
# A few rows at a time are solved in registers, after the product with all solved rows has been
# added by tiles (tiles.jl).

"""
op(A) X = B for a triangle of the row-major matrix A with `unknowns` rows, X with `columns` columns
and rows that are `apart`. `W` columns, of which there are at least as many, go in a register."""
struct TriangularRows{W}
    unknowns::Int
    columns::Int
    apart::Int
    lower::Bool
    transposed::Bool
    unit::Bool
end
"Whether the first row of X is solved first."
@inline goes_down(t::TriangularRows) = t.lower != t.transposed

"The X of each of the systems; `w` is memory for a triangle."
@noinline function solve_left!(y::Ptr{T}, a::Ptr{T}, b::Ptr{T}, w::Ptr{T}, t::TriangularRows,
    batches::Int) where {T}
    k, n = t.unknowns, t.unknowns * t.columns
    for i in 0:batches-1
        give_vector!(nth(y, i, n), nth(b, i, n), n)
        take_triangle!(w, nth(a, i, k * k), t)
        solve_rows!(nth(y, i, n), w, t)
    end
end
"As `solve_left!`, of systems X op(A) = B, which `t` describes transposed, with Xᵀ at `x`."
@noinline function solve_right!(y::Ptr{T}, a::Ptr{T}, b::Ptr{T}, w::Ptr{T}, x::Ptr{T},
    t::TriangularRows, batches::Int) where {T}
    k, n = t.unknowns, t.unknowns * t.columns
    for i in 0:batches-1
        take!(x, nth(b, i, n), t.columns, k, t.apart)
        take_triangle!(w, nth(a, i, k * k), t)
        solve_rows!(x, w, t)
        give!(nth(y, i, n), x, t.columns, k, t.apart)
    end
end

"-A off the diagonal, and on it the reciprocals, by which BLAS multiplies, too."
@inline function take_triangle!(w::Ptr{T}, a::Ptr{T}, t::TriangularRows) where {T}
    for i in 0:t.unknowns-1
        row, diagonal = i * t.unknowns, i * t.unknowns + i
        first_, last_ = t.lower ? (row, diagonal - 1) : (diagonal + 1, row + t.unknowns - 1)
        @vector for j in first_:last_
            put!(w, -at(a, j), j)
        end
        put!(w, t.unit ? one(T) : inv(at(a, diagonal)), diagonal)
    end
end

@noinline function solve_rows!(x::Ptr{T}, w::Ptr{T}, t::TriangularRows) where {T}
    i = 0
    i = solve_blocks!(x, w, t, i, Val(8))
    i = solve_blocks!(x, w, t, i, Val(4))
    i = solve_blocks!(x, w, t, i, Val(2))
    solve_blocks!(x, w, t, i, Val(1))
    nothing
end
"The rows from the i-th on, in the order in which they are solved, by blocks of R; gives the next."
@inline function solve_blocks!(x, w, t::TriangularRows{W}, i, rows::Val{R}) where {W,R}
    k, n = t.unknowns, t.apart
    row, column = t.transposed ? (1, k) : (k, 1)
    p = TiledProduct{W}(R, t.columns, 1, i, row, 0, column, 0, n, n)
    while i + R <= k
        least, solved = goes_down(t) ? (i, 0) : (k - i - R, k - i)      # in memory
        i == 0 ||
            multiply_tiles!(nth(x, least, n), nth(w, least * row + solved * column, 1),
                nth(x, solved, n), part_of(p, R, i), true)
        at_ = goes_down(t) ? i : k - 1 - i
        solve_block!(rows)(nth(x, at_, n), nth(w, at_, k + 1), t)
        i += R
    end
    i
end

"R rows, of which the first to be solved begins at x and has its diagonal element at w."
@inline function solve_columns!(x, w, t::TriangularRows{W}, rows) where {W}
    j, n, last_ = 0, t.columns, t.columns - W
    while j < n         # as in `multiply_columns!`
        if n - j == W
            solve_tile!(x, w, t, (j,), rows)
            j += W
        elseif 2W < n - j <= 3W
            solve_tile!(x, w, t, (j, j + W, last_), rows)
            j += 3W
        else
            solve_tile!(x, w, t, (j, min(j + W, last_)), rows)
            j += 2W
        end
    end
end
for rows in (1, 2, 4, 8)
    name = Symbol(:solve_block_of_, rows, :!)
    @eval @noinline $name(x, w, t) = solve_columns!(x, w, t, Val($rows))
    @eval solve_block!(::Val{$rows}) = $name
end

@generated function solve_tile!(x::Ptr{T}, w::Ptr{T}, t::TriangularRows{W},
    columns::NTuple{N,Int}, ::Val{R}) where {T,W,N,R}
    V = Lanes{W,T}
    value(r, c) = Symbol(:value, r, :_, c)
    each(f) = Expr(:block, (f(r, c) for r in 0:R-1 for c in 1:N)...)
    here(r, c) = :($r * apart + columns[$c])
    step(r) = quote
        $((
            quote
                factor = lanes($V, at(w, $r * row + $q * column))
                $((:($(value(r, c)) = multiply_add(factor, $(value(q, c)), $(value(r, c))))
                   for c in 1:N)...)
            end for q in 0:r-1
        )...)
        factor = lanes($V, at(w, $r * (row + column)))
        $((:($(value(r, c)) = product(factor, $(value(r, c)))) for c in 1:N)...)
    end
    quote
        $(Expr(:meta, :inline))
        apart, row, column = t.apart, t.unknowns, 1
        t.transposed && ((row, column) = (1, t.unknowns))
        goes_down(t) || ((apart, row, column) = (-apart, -row, -column))
        $(each((r, c) -> :($(value(r, c)) = load($V, x, $(here(r, c))))))
        $((step(r) for r in 0:R-1)...)
        $(each((r, c) -> :(save!(x, $(value(r, c)), $(here(r, c))))))
        nothing
    end
end
