# dot_general as products of stacks of matrices, by the routines that `product_kind` chose.

"""
An operand as a stack of matrices: extents, and distances of neighbours, along (batch, free axes,
contracted axes)."""
struct MatrixStack
    memory::Memory
    extents::NTuple{3,Int}
    steps::NTuple{3,Int}
end

"The distance of neighbours if axes lie so that they count as one; otherwise nothing."
function lies(v::Atom, axes)
    n, strides = sizes(v), row_strides(sizes(v))
    kept = [k + 1 for k in axes if n[k+1] != 1]
    isempty(kept) && return 1
    all(strides[i] == n[j] * strides[j] for (i, j) in zip(kept, kept[2:end])) ?
    strides[kept[end]] : nothing
end

# BLAS wants one of the axes to lie together; tiles want that of the right operand's free axes.
suits(::BlasProduct, steps, side) = steps[2] == 1 || steps[3] == 1
suits(::TileProduct, steps, side) = side === :left || steps[2] == 1
suits(::RowsProduct, steps, side) = steps[3] == 1
suits(::VectorProduct, steps, side) = true      # or else it is none
"The order of the groups of axes in which an operand is rearranged that does not suit."
rearranged(::MatrixProduct) = (1, 3, 2)
rearranged(::RowsProduct) = (1, 2, 3)
# Where the left matrix is a vector, the result is the transpose of a product with it on the right.
ordered(::MatrixProduct, a, b) = (a, b)
ordered(kind::RowsProduct, a, b) = kind.flipped ? (b, a) : (a, b)
ordered(::VectorProduct, a, b) = a.extents[2] == 1 ? (b, a) : (a, b)
"The distances of neighbouring rows and columns of an m × n product in the result."
result_steps(::MatrixProduct, m, n) = (n, 1)
result_steps(kind::RowsProduct, m, n) = kind.flipped ? (1, m) : (n, 1)
# Bytes of each thread for what Fortran takes by reference.
argument_bytes(::MatrixProduct) = 0
argument_bytes(::BlasProduct) = Routines.FORTRAN_ARGUMENTS
# Threads share the rows, or the columns where there are more: each then reads its own part of the
# larger matrix, which BLAS rearranges once a call.
shares_columns(::MatrixProduct, m, n) = false
shares_columns(::Union{TileProduct,BlasProduct}, m, n) = m < n
"How many parts threads share of so many rows or columns, which they take by the unit."
parts(::BlasProduct, shared, unit) = min(cld(shared, LEAST_PART), Sys.CPU_THREADS)
parts(::VectorProduct, shared, unit) = min(shared, most_chunks())
parts(::Union{TileProduct,RowsProduct}, shared, unit) =
    min(cld(shared, LEAST_PART), max(1, shared ÷ unit), most_chunks())
"""
The rows or columns of a whole tile: a part with some of a tile more takes as long as with all of
it. At 8 × 1000 × 1000, in eight parts, f32 115 -> 92 µs, f64 225 -> 166 (AVX-512, one core)."""
unit(::MatrixProduct, T, bycolumns, register) = 1
unit(::TileProduct, T, bycolumns, register) = bycolumns ? 3register ÷ sizeof(T) : 4
# Multiplications from which on several threads pay; those with a vector wait for memory.
large(::MatrixProduct) = LARGE_PRODUCT
large(::VectorProduct) = LARGE_VECTOR_PRODUCT

function multiply_matrices!(kind::MatrixProduct, s::Frame, e)
    x, y, v = e.inputs[1], e.inputs[2], e.outputs[1]
    with_matrices(kind, :left, s, x, e[:lhs_contract], e[:lhs_batch]) do a
        with_matrices(kind, :right, s, y, e[:rhs_contract], e[:rhs_batch]) do b
            multiply_stacks!(kind, s, memory!(s, v), ordered(kind, a, b)...)
        end
    end
end

"""
`f(stack)` writes code that uses an operand as matrices, rearranged in the workspace
where it has to be."""
function with_matrices(f, kind, side, s::Frame, v::Atom, contract, batch)
    groups = axis_groups(v, contract, batch)
    extents, steps = map(axes -> extent(v, axes), groups), map(axes -> lies(v, axes), groups)
    all(!isnothing, steps) && suits(kind, steps, side) &&
        return f(MatrixStack(memory_of(s, v), extents, steps))
    order = rearranged(kind)
    moved = virtual!(s, :transpose, v; perm = reduce(vcat, groups[k] for k in order))
    with_memory(s, aval(moved)) do m
        copy_elements!(s, m, moved)
        within = order[3] == 3 ? (extents[3], 1) : (1, extents[2])
        f(MatrixStack(m, extents, (extents[2] * extents[3], within...)))
    end
end

function multiply_stacks!(kind, s::Frame, c::Memory, a::MatrixStack, b::MatrixStack)
    g, (batch, m, k), n = s.generator, a.extents, b.extents[2]
    islarge = !g.threaded && batch * m * n * k >= large(kind)
    islarge && batch == 1 && adds_rows(kind, a) && return add_parts!(s, c, a, b)
    bycolumns = shares_columns(kind, m, n)
    shared = bycolumns ? n : m
    whole = unit(kind, c.type.dtype, bycolumns, register_bytes(g.target))
    chunks = !islarge ? 1 : batch > 1 ? batch : parts(kind, shared, whole)
    with_elements(s, UInt8, chunks * argument_bytes(kind)) do scratch
        function product!(item, from, count, arguments)
            row, column = bycolumns ? (0, from) : (from, 0)
            at(m, places...) = :($(m.pointer) + $(+)($(places...)) * $(sizeof(c.type.dtype)))
            c_row, c_column = result_steps(kind, m, n)
            pc = at(c, :($item * $(m * n)), :($row * $c_row), :($column * $c_column))
            pa = at(a.memory, :($item * $(a.steps[1])), :($row * $(a.steps[2])))
            pb = at(b.memory, :($item * $(b.steps[1])), :($column * $(b.steps[2])))
            least = chunks == 1 || batch > 1 ? shared : whole * (shared ÷ whole ÷ chunks)
            bycolumns ?
            multiply_columns!(kind, g, pc, pa, pb, arguments, a, b, count, least) :
            multiply_rows!(kind, g, pc, pa, pb, arguments, a, b, count)
        end
        chunks == 1 && return counted_loop!(i -> product!(i, 0, shared, scratch), g, batch)
        chunk = fresh_symbol!(g, Int)
        body = threaded_block(g) do
            mine = :($scratch + $chunk * $(argument_bytes(kind)))
            batch > 1 && return product!(chunk, 0, shared, mine)
            from, to = bounds_by_units!(g, shared, whole, chunk, chunks)
            product!(0, from, :($to - $from), mine)
        end
        emit_code!(g, Parallel(chunk, chunks, body))
    end
end

"Those of a chunk that takes whole units, but for the last, which takes what is left, too."
function bounds_by_units!(g, count, unit, chunk, chunks)
    units = count ÷ unit
    from, to = chunk_bounds!(g, units, chunk, chunks)
    unit == 1 ? (from, to) :
    (:($unit * $from), :($ifelse($to == $units, $count, $unit * $to)))
end

# A product with a vector that adds up rows, eight at a time: each chunk adds up rows of its own.
# One thread goes from the last row to the first, as `multiply_vector_left!` does, for its reason.
adds_rows(::MatrixProduct, a) = false
adds_rows(::VectorProduct, a) = a.steps[3] != 1

function add_parts!(s::Frame, c::Memory, a::MatrixStack, b::MatrixStack)
    g, T, (_, m, k), apart = s.generator, c.type.dtype, a.extents, a.steps[3]
    eights = cld(k, 8)
    chunks = min(eights, most_chunks())
    with_elements(s, T, chunks * m) do sums
        chunk = fresh_symbol!(g, Int)
        body = threaded_block(g) do
            from, to = (:(8 * $eight) for eight in chunk_bounds!(g, eights, chunk, chunks))
            at(pointer, place) = :($pointer + $place * $(sizeof(T)))
            emit_code!(g,
                :($(Routines.multiply_vector_left!)($(at(sums, :($chunk * $m))),
                    $(at(a.memory.pointer, :($from * $apart))), $(at(b.memory.pointer, from)),
                    $(min)($to, $k) - $from, $m, $apart)))
        end
        emit_code!(g, Parallel(chunk, chunks, body; falling = true))
        emit_code!(g, :($(Routines.add_rows_of!)($(c.pointer), $sums, $chunks, $m)))
    end
end

multiply_rows!(kind::TileProduct, g, pc, pa, pb, arguments, a, b, count) =
    multiply_tiles!(g, pc, pa, pb, a, b, count, b.extents[2], b.extents[2])
"So many columns, of which there are `least` or more."
multiply_columns!(kind::TileProduct, g, pc, pa, pb, arguments, a, b, count, least) =
    multiply_tiles!(g, pc, pa, pb, a, b, a.extents[2], count, least)
function multiply_tiles!(g, pc, pa, pb, a, b, rows, columns, least)
    lanes = Routines.lane_count(a.memory.type.dtype, least, register_bytes(g.target))
    product = :($(Routines.TiledProduct{lanes})($rows, $columns, 1, $(a.extents[3]), $(a.steps[2]),
        0, $(a.steps[3]), 0, $(b.steps[3]), $(b.extents[2])))
    emit_code!(g, :($(Routines.multiply_tiles!)($pc, $pa, $pb, $product, false)))
end

function multiply_rows!(kind::RowsProduct, g, pc, pa, pb, arguments, a, b, count)
    T, n, k = a.memory.type.dtype, b.extents[2], a.extents[3]
    isfar = a.extents[2] * a.steps[2] * sizeof(T) > FETCHED_BYTES
    product = :($(Routines.RowProduct{register_bytes(g.target) ÷ sizeof(T)})($count, $n, $k,
        $(a.steps[2]), $(b.steps[2]), $(result_steps(kind, a.extents[2], n)...), $isfar))
    emit_code!(g, :($(Routines.multiply_by_rows!)($pc, $pa, $pb, $product)))
end

function multiply_rows!(::VectorProduct, g, pc, pa, pb, arguments, a, b, count)
    k = a.extents[3]
    emit_code!(
        g,
        a.steps[3] == 1 ?
        :($(Routines.multiply_vector!)($pc, $pa, $pb, $count, $k, $(a.steps[2]))) :
        :($(Routines.multiply_vector_left!)($pc, $pa, $pb, $k, $count, $(a.steps[3])))
    )
end

multiply_rows!(::BlasProduct, g, pc, pa, pb, arguments, a, b, count) =
    multiply_blas!(g, pc, pa, pb, arguments, a, b, count, b.extents[2])
multiply_columns!(::BlasProduct, g, pc, pa, pb, arguments, a, b, count, least) =
    multiply_blas!(g, pc, pa, pb, arguments, a, b, a.extents[2], count)
# Row-major C = AB is column-major Cᵀ = BᵀAᵀ.
function multiply_blas!(g, pc, pa, pb, arguments, a, b, rows, columns)
    n, k = b.extents[2], a.extents[3]
    along_a, along_b = a.steps[3] == 1, b.steps[2] == 1
    leading_a = along_a ? max(k, a.steps[2]) : max(a.extents[2], a.steps[3])
    leading_b = along_b ? max(n, b.steps[3]) : max(k, b.steps[2])
    gemm = :($(Routines.Lapack)($(gemm_pointer(a.memory.type.dtype)), $arguments))
    left = :($(Routines.Factor)($pb, $leading_b, $(!along_b)))
    right = :($(Routines.Factor)($pa, $leading_a, $(!along_a)))
    emit_code!(g, :($(Routines.gemm!)($gemm, $columns, $rows, $k, $left, $right, $pc, $n)))
end

const BlasInt = LinearAlgebra.BlasInt
const GEMM = Dict{DataType,Symbol}(Float32 => :sgemm, Float64 => :dgemm, ComplexF32 => :cgemm,
    ComplexF64 => :zgemm)
gemm_pointer(::Type{T}) where {T} = blas_pointer(GEMM[T])

"""
The address of a BLAS or LAPACK routine that Julia uses, one thread at a time: XLA's
threads split the work."""
function blas_pointer(routine::Symbol)
    BLAS.set_num_threads(1)
    library = VERSION >= v"1.7" ? LinearAlgebra.BLAS.libblastrampoline : LinearAlgebra.BLAS.libblas
    symbol = string(routine, BlasInt === Int64 ? "_64_" : "_")
    pointer = Libdl.dlsym(Libdl.dlopen(library), symbol)
    BLAS_SYMBOLS[pointer] = string(routine, blas_suffix())
    pointer
end
"The symbols of the routines that code refers to, by address, in the library that has them."
const BLAS_SYMBOLS = Dict{Ptr{Cvoid},String}()

# The file of the BLAS that these routines are in, as this Julia has loaded it, and how their names
# end there.
@static if VERSION >= v"1.7"
    function loaded_blas()
        interface = BlasInt === Int64 ? :ilp64 : :lp64
        first(filter(l -> l.interface === interface, BLAS.get_config().loaded_libs))
    end
    blas_library() = Libdl.dlpath(Libdl.dlopen(loaded_blas().libname))
    blas_suffix() = "_" * loaded_blas().suffix
else
    blas_library() = Libdl.dlpath(Libdl.dlopen(LinearAlgebra.BLAS.libblas))
    blas_suffix() = BlasInt === Int64 ? "_64_" : "_"
end
