# Products of small matrices: a tile of the result at a time in registers, the operands where they
# lie. A library that first packs its operands, as for large matrices (Goto, van de Geijn 2008,
# Anatomy of high-performance matrix multiplication), spends most of its time on that.

"Numbers that one instruction works on."
const Lanes{W,T} = NTuple{W,VecElement{T}}
@inline lanes(::Type{Lanes{W,T}}, x::T) where {W,T} = ntuple(_ -> VecElement(x), Val(W))
@inline load(::Type{Lanes{W,T}}, p::Ptr{T}, i::Int) where {W,T} =
    unsafe_load(Ptr{Lanes{W,T}}(p + i * sizeof(T)))
@inline save!(p::Ptr{T}, x::Lanes{W,T}, i::Int) where {W,T} =
    unsafe_store!(Ptr{Lanes{W,T}}(p + i * sizeof(T)), x)
@generated function multiply_add(x::Lanes{W,T}, y::Lanes{W,T}, z::Lanes{W,T}) where {W,T}
    V = Lanes{W,T}
    :($(Expr(:meta, :inline));
    ccall($("llvm.fmuladd.v$(W)f$(8sizeof(T))"), llvmcall, $V,
        ($V, $V, $V), x, y, z))
end

# Bytes of a register, of which 12 hold results at a time: as many as AVX2 has,
# without those for operands.
const REGISTER = 32

"""
C = A B, or C + A B, with C[i, j] at i · c_row + j, and the sum over s of `segments` and t of `run`:
A[i, (s, t)] is at i · a_row + s · a_segment + t · a_step, B[(s, t), j] at s · b_segment + t ·
b_step + j."""
struct TiledProduct
    rows::Int
    columns::Int
    segments::Int
    run::Int
    a_row::Int
    a_segment::Int
    a_step::Int
    b_segment::Int
    b_step::Int
    c_row::Int
end

"""
At least two columns are needed: along them the lanes lie. So many rows at a time as stay in a cache
while the columns pass."""
@noinline function multiply_tiles!(c::Ptr{T}, a::Ptr{T}, b::Ptr{T}, p::TiledProduct,
    add::Bool) where {T}
    full, block, i = (REGISTER ÷ sizeof(T),
        24 * max(1, quotient(1 << 16, 24 * sizeof(T) * max(1, p.segments * p.run))), 0)
    while i < p.rows
        c_now, a_now, q = (c + i * p.c_row * sizeof(T), a + i * p.a_row * sizeof(T),
            with_rows(p, min(block, p.rows - i)))
        q.columns >= full ? multiply_columns!(c_now, a_now, b, q, add, Val(full)) :
        q.columns >= 4 ? multiply_four_columns!(c_now, a_now, b, q, add) :
        multiply_two_columns!(c_now, a_now, b, q, add)
        i += block
    end
end
with_rows(p::TiledProduct, n) =
    TiledProduct(n, p.columns, p.segments, p.run, p.a_row, p.a_segment, p.a_step, p.b_segment,
        p.b_step, p.c_row)

# What one function calls for several widths or heights has a name for each: in an object file
# (`codegen/objects/`) functions are told apart by their names.

@noinline multiply_four_columns!(c, a, b, p, add) = multiply_columns!(c, a, b, p, add, Val(4))
@noinline multiply_two_columns!(c, a, b, p, add) = multiply_columns!(c, a, b, p, add, Val(2))

# Columns go in groups of one to three registers. The last one ends with the last column, and may
# share columns with the one before: a tile is read before it is written.
@inline function multiply_columns!(c, a, b, p::TiledProduct, add, w::Val{W}) where {W}
    j, n, last_ = 0, p.columns, p.columns - W
    while j < n
        if n - j == W
            multiply_rows_of_one!(c, a, b, p, add, w, (j,), Val(8))
            j += W
        elseif 2W < n - j <= 3W
            multiply_rows_of_three!(c, a, b, p, add, w, (j, j + W, last_), Val(4))
            j += 3W
        else
            multiply_rows_of_two!(c, a, b, p, add, w, (j, min(j + W, last_)), Val(6))
            j += 2W
        end
    end
end

for name in (:multiply_rows_of_one!, :multiply_rows_of_two!, :multiply_rows_of_three!)
    @eval @noinline $name(c, a, b, p::TiledProduct, add, w, at, most) =
        multiply_rows!(c, a, b, p, add, w, at, most)
end
@inline function multiply_rows!(c, a, b, p::TiledProduct, add, w, at, most::Val{R}) where {R}
    i = multiply_rows_by!(c, a, b, p, add, w, at, 0, most)
    i = R > 4 ? multiply_rows_by!(c, a, b, p, add, w, at, i, Val(4)) : i
    i = multiply_rows_by!(c, a, b, p, add, w, at, i, Val(2))
    multiply_rows_by!(c, a, b, p, add, w, at, i, Val(1))
    nothing
end
@inline function multiply_rows_by!(c::Ptr{T}, a::Ptr{T}, b, p::TiledProduct, add, w, at, i,
    rows::Val{R}) where {T,R}
    while i + R <= p.rows
        tile!(rows)(c + i * p.c_row * sizeof(T), a + i * p.a_row * sizeof(T), b, p, add, w,
            at, rows)
        i += R
    end
    i
end

"""
`R` rows, and the columns of a register each from `columns` on. Every sum is a
variable of its own."""
@generated function multiply_tile!(c::Ptr{T}, a::Ptr{T}, b::Ptr{T}, p::TiledProduct, add::Bool,
    ::Val{W}, columns::NTuple{N,Int}, ::Val{R}) where {T,W,N,R}
    V, S = Lanes{W,T}, sizeof(T)
    total(i, j) = Symbol(:total, i, :_, j)
    each(f) = Expr(:block, (f(i, j) for i in 1:R for j in 1:N)...)
    place(i, j) = :($(i - 1) * p.c_row + columns[$j])
    row(j) = Symbol(:row, j)
    step = quote
        $((:($(row(j)) = load($V, b_now, columns[$j])) for j in 1:N)...)
        $(
            (
                quote
                    x = lanes($V, unsafe_load(a_now + $((i - 1) * S) * p.a_row))
                    $(
                        (
                            :($(total(i, j)) = multiply_add(x, $(row(j)), $(total(i, j)))) for
                            j in 1:N
                        )...
                    )
                end for i in 1:R
            )...
        )
    end
    quote
        $(Expr(:meta, :inline))
        $(each(
            (i, j) ->
                :($(total(i, j)) = add ? load($V, c, $(place(i, j))) : lanes($V, zero($T)))
        ))
        for s in 0:p.segments-1
            a_now, b_now = a + s * p.a_segment * $S, b + s * p.b_segment * $S
            for t in 1:p.run
                $step
                a_now, b_now = a_now + p.a_step * $S, b_now + p.b_step * $S
            end
        end
        $(each((i, j) -> :(save!(c, $(total(i, j)), $(place(i, j))))))
        nothing
    end
end

for rows in (1, 2, 4, 6, 8)
    name = Symbol(:multiply_tile_of_, rows, :!)
    @eval @noinline $name(c, a, b, p, add, w, columns, rows) =
        multiply_tile!(c, a, b, p, add, w, columns, rows)
    @eval tile!(::Val{$rows}) = $name
end
