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
# LLVM has a prefetch for each type of pointer since version 10.
const PREFETCH, BYTES = OPAQUE_POINTERS ? ("llvm.prefetch.p0", "ptr") :
    (Base.libllvm_version >= v"10" ? "llvm.prefetch.p0i8" : "llvm.prefetch", "i8*")
# Has what is at the address fetched into the core's second cache; any address will do.
@eval @inline prefetch(p::Ptr) = Base.llvmcall(
    $(llvm_function(["declare void @$PREFETCH($BYTES, i32, i32, i32)"], "void", ["i64 %0"], """
        %p = inttoptr i64 %0 to $BYTES
        call void @$PREFETCH($BYTES %p, i32 0, i32 2, i32 1)
        ret void""")), Cvoid, Tuple{UInt64}, UInt64(UInt(p)))
@inline product(x::V, y::V) where {W,T,V<:Lanes{W,T}} = multiply_add(x, y, lanes(V, -zero(T)))
@inline added(x::V, y::V) where {W,T,V<:Lanes{W,T}} = multiply_add(x, lanes(V, one(T)), y)

# Bytes of a register where a vector is multiplied, which waits for memory. Tiles take what the
# processor has; 12 registers hold results at a time: all of AVX2's but those for operands.
const REGISTER = 32

"""
C = A B, or C + A B, with C[i, j] at i · c_row + j, and the sum over s of `segments` and t of
`run`: A[i, (s, t)] is at i · a_row + s · a_segment + t · a_step, B[(s, t), j] at
s · b_segment + t · b_step + j. `W` columns, of which there are at least as many, go in a
register. While a row of B is read the one so far `ahead` of it is fetched, unless that is 0."""
struct TiledProduct{W}
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
    ahead::Int
end
TiledProduct{W}(extents_and_steps::Vararg{Int,10}) where {W} =
    TiledProduct{W}(extents_and_steps..., 0)
@inline part_of(p::P, rows, run; ahead = p.ahead) where {P<:TiledProduct} =
    P(rows, p.columns, p.segments, run, p.a_row, p.a_segment, p.a_step, p.b_segment, p.b_step,
        p.c_row, ahead)

"The lanes of a product with so many columns."
lane_count(T, columns, register) = min(register ÷ sizeof(T), prevpow(2, columns))

"""
Of one segment, so many of B's rows at a time as stay in a cache: each tile reads them there. A
tile's columns lie in pieces far apart, which no processor foresees: where B has to come from
memory, each block of its rows is fetched while the one before it is multiplied."""
@noinline function multiply_tiles!(c::Ptr{T}, a::Ptr{T}, b::Ptr{T}, p::TiledProduct,
    add::Bool) where {T}
    most = p.segments == 1 ? max(16, quotient(TILED_BYTES, p.columns * sizeof(T))) : p.run
    isfar = p.run * p.b_step * sizeof(T) > FETCHED_BYTES
    t = 0
    while true      # of no rows the product is zero
        left = p.run - t
        ahead = isfar & (left > most) ? most : 0
        multiply_blocks!(c, a + t * p.a_step * sizeof(T), b + t * p.b_step * sizeof(T),
            part_of(p, p.rows, min(most, left); ahead = ahead), add | (t > 0))
        left > most || return
        t += most
    end
end
"So many rows at a time as stay in a cache while the columns pass."
@noinline function multiply_blocks!(c::Ptr{T}, a::Ptr{T}, b::Ptr{T}, p::TiledProduct,
    add::Bool) where {T}
    block = 24 * max(1, quotient(1 << 16, 24 * sizeof(T) * max(1, p.segments * p.run)))
    i = 0
    while i < p.rows
        multiply_columns!(c + i * p.c_row * sizeof(T), a + i * p.a_row * sizeof(T), b,
            part_of(p, min(block, p.rows - i), p.run), add)
        i += block
    end
end

# What one function calls for several widths or heights has a name for each: in an object file
# (`codegen/objects/`) functions are told apart by their names.

# Columns go in groups of one to three registers. The last one ends with the last column, and may
# share columns with the one before: a tile is read before it is written.
@inline function multiply_columns!(c, a, b, p::TiledProduct{W}, add) where {W}
    j, n, last_ = 0, p.columns, p.columns - W
    while j < n
        if n - j == W
            multiply_rows_of_one!(c, a, b, p, add, (j,), Val(8))
            j += W
        elseif 2W < n - j <= 3W
            multiply_rows_of_three!(c, a, b, p, add, (j, j + W, last_), Val(4))
            j += 3W
        else
            multiply_rows_of_two!(c, a, b, p, add, (j, min(j + W, last_)), Val(6))
            j += 2W
        end
    end
end

for name in (:multiply_rows_of_one!, :multiply_rows_of_two!, :multiply_rows_of_three!)
    @eval @noinline $name(c, a, b, p::TiledProduct, add, at, most) =
        multiply_rows!(c, a, b, p, add, at, most)
end
@inline function multiply_rows!(c, a, b, p::TiledProduct, add, at, most::Val{R}) where {R}
    i = multiply_rows_by!(c, a, b, p, add, at, 0, most)
    i = R > 4 ? multiply_rows_by!(c, a, b, p, add, at, i, Val(4)) : i
    i = multiply_rows_by!(c, a, b, p, add, at, i, Val(2))
    multiply_rows_by!(c, a, b, p, add, at, i, Val(1))
    nothing
end
@inline function multiply_rows_by!(c::Ptr{T}, a::Ptr{T}, b, p::TiledProduct, add, at, i,
    rows::Val{R}) where {T,R}
    while i + R <= p.rows
        multiply_runs!(c + i * p.c_row * sizeof(T), a + i * p.a_row * sizeof(T), b,
            i == 0 ? p : part_of(p, p.rows, p.run; ahead = 0), add, at, rows)
        i += R
    end
    i
end
# Numbers are added up one after the other only so far: the sums of runs are more exact.
@inline function multiply_runs!(c::Ptr{T}, a, b, p::TiledProduct, add, at, rows) where {T}
    p.segments == 1 || return tile!(rows)(c, a, b, p, add, at, rows)
    t = 0
    while t < p.run
        tile!(rows)(c, a + t * p.a_step * sizeof(T), b + t * p.b_step * sizeof(T),
            part_of(p, p.rows, min(LONGEST_RUN, p.run - t)), add | (t > 0), at, rows)
        t += LONGEST_RUN
    end
    nothing
end

"""
`R` rows, and the columns of a register each from `columns` on. Every sum is a
variable of its own."""
@generated function multiply_tile!(c::Ptr{T}, a::Ptr{T}, b::Ptr{T}, p::TiledProduct{W}, add::Bool,
    columns::NTuple{N,Int}, ::Val{R}) where {T,W,N,R}
    V, S = Lanes{W,T}, sizeof(T)
    total(i, j) = Symbol(:total, i, :_, j)
    each(f) = Expr(:block, (f(i, j) for i in 1:R for j in 1:N)...)
    row(j) = Symbol(:row, j)
    fetch = (:(prefetch(b_now + ahead + columns[$j] * $S)) for j in 1:N)
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
        a_now, b_now = a_now + p.a_step * $S, b_now + p.b_step * $S
    end
    quote
        $(Expr(:meta, :inline))
        $(each((i, j) -> :($(total(i, j)) = lanes($V, zero($T)))))
        ahead = p.ahead * p.b_step * $S
        for s in 0:p.segments-1
            a_now, b_now = a + s * p.a_segment * $S, b + s * p.b_segment * $S
            if ahead == 0
                for t in 1:p.run
                    $step
                end
            else
                for t in 1:p.run
                    $(fetch...)
                    $step
                end
            end
        end
        if add      # last, so that each run has a sum of its own
            $(each(
                (i, j) ->
                    :($(total(i, j)) = added($(total(i, j)),
                        load($V, c, $(i - 1) * p.c_row + columns[$j])))
            ))
        end
        $(each((i, j) -> :(save!(c, $(total(i, j)), $(i - 1) * p.c_row + columns[$j]))))
        nothing
    end
end

for rows in (1, 2, 4, 6, 8)
    name = Symbol(:multiply_tile_of_, rows, :!)
    @eval @noinline $name(c, a, b, p, add, columns, rows) =
        multiply_tile!(c, a, b, p, add, columns, rows)
    @eval tile!(::Val{$rows}) = $name
end
