# dot_general: matrix products by tiles in registers or by BLAS, those with a vector and the smallest as loops.

# Multiplications up to which loops are no slower than calls; up to which they are Enzyme's own; and above which several threads pay.
const TINY_PRODUCT, SMALL_PRODUCT, LARGE_PRODUCT = 200, 8_000, 2_000_000
# The right operand's bytes up to which it stays in a cache while the rows pass, so that nothing is gained from BLAS's packing it.
const TILED_BYTES = 1 << 18
# Rows from which on it pays to rearrange the right operand for tiles.
const REARRANGED_ROWS = 8

extent(v::Atom, axes) = prod(Int[sizes(v)[k+1] for k in axes])

function emit_step!(op::DotGeneral, s::Frame, e)
    x, y, T = e.inputs[1], e.inputs[2], dtype(e.outputs[1])
    m, n, k = extent(x, free_axes(aval(x), e[:lhs_contract], e[:lhs_batch])), extent(y, free_axes(aval(y), e[:rhs_contract], e[:rhs_batch])), extent(x, e[:lhs_contract])
    as_matrices = T <: LinearAlgebra.BlasFloat && min(m, n) > 1 && dtype(x) === T && dtype(y) === T
    as_matrices && m * n * k > (s.generator.plain ? SMALL_PRODUCT : TINY_PRODUCT) || return multiply_in_loops!(s, e)
    in_place = lies(y, free_axes(aval(y), e[:rhs_contract], e[:rhs_batch])) == 1
    if T <: Union{Float32,Float64} && n * k * sizeof(T) <= TILED_BYTES && (in_place || m >= REARRANGED_ROWS)
        multiply_matrices!(TileProduct(), s, e)
    else
        m * n * k > SMALL_PRODUCT ? multiply_matrices!(BlasProduct(), s, e) : multiply_in_loops!(s, e)
    end
end

# ---- loops

function multiply_in_loops!(s::Frame, e)
    x, y, v = e.inputs[1], e.inputs[2], e.outputs[1]
    A = accumulator(dtype(v) === Bool ? Int : dtype(v))
    batch = sizes(x)[e[:lhs_batch].+1]
    lhs_free, rhs_free = free_axes(aval(x), e[:lhs_contract], e[:lhs_batch]), free_axes(aval(y), e[:rhs_contract], e[:rhs_batch])
    groups = (batch = batch, lhs = sizes(x)[lhs_free.+1], rhs = sizes(y)[rhs_free.+1], sum = sizes(x)[e[:lhs_contract].+1])
    order = loop_order(x, y, e, prod(groups.lhs), prod(groups.rhs))
    domain = reduce(vcat, [groups[g] for g in order])
    starts = Dict(g => sum(Int[length(groups[h]) for h in order[1:findfirst(==(g), collect(order))-1]]) for g in order)
    place(g) = collect(starts[g]:starts[g]+length(groups[g])-1)
    left = spread_operand(s, x, vcat(e[:lhs_batch], lhs_free, e[:lhs_contract]), vcat(place(:batch), place(:lhs), place(:sum)), domain, A)
    right = spread_operand(s, y, vcat(e[:rhs_batch], rhs_free, e[:rhs_contract]), vcat(place(:batch), place(:rhs), place(:sum)), domain, A)
    product = combined!(s, :mul, left, right)
    reduced, strides = trues(length(domain)), zeros(Int, length(domain))
    kept = vcat(place(:batch), place(:lhs), place(:rhs)) .+ 1
    reduced[kept] .= false
    strides[kept] = row_strides(sizes(v))
    into(m) = begin
        fill_memory!(s, m, zero(A))
        emit_nest!(s, domain, Store[], [Reduce(product, primitive(:reduce_sum), A, collect(Bool, reduced), m.pointer, Affine(strides, 0, []), :none)])
    end
    in_accumulators!(into, s, v, A)
end

"The order of the loops: what is contiguous in memory runs innermost."
function loop_order(x, y, e, m, n)
    lhs_flipped, rhs_flipped = is_flipped(x, e[:lhs_contract], e[:lhs_batch]), is_flipped(y, e[:rhs_contract], e[:rhs_batch])
    n == 1 && return lhs_flipped ? (:batch, :rhs, :sum, :lhs) : (:batch, :rhs, :lhs, :sum)
    m == 1 && return rhs_flipped ? (:batch, :lhs, :sum, :rhs) : (:batch, :lhs, :rhs, :sum)
    rhs_flipped ? (:batch, :lhs, :sum, :rhs) : (:batch, :lhs, :rhs, :sum)
end

"Whether an operand's axes lie in the order (batch, contracted, free), and not in that of (batch, free, contracted)."
function is_flipped(v::Atom, contract, batch)
    free = free_axes(aval(v), contract, batch)
    in_order(axes) = issorted(k for k in axes if sizes(v)[k+1] != 1)
    !in_order(vcat(batch, free, contract)) && in_order(vcat(batch, contract, free))
end

"An operand, its axes `from` spread over axes `to` of a larger domain, as numbers of type A."
function spread_operand(s::Frame, x::Atom, from, to, domain, A)
    order = sortperm(to)
    x = issorted(from[order]) ? x : virtual!(s, :transpose, x; perm = from[order])
    x = virtual!(s, :broadcast_in_dim, x; shape = Dim[domain...], dims = to[order])
    dtype(x) === A ? x : virtual!(s, :convert_element_type, x; dtype = dtype_name(A))
end

function combined!(s::Frame, op::Symbol, x::Atom...)
    b = Builder()
    v = emit(b, op, x...)
    s.storages[v] = Virtual(b.equations[1], 1)
    v
end

# ---- as matrices

"How the matrices of a product are multiplied."
abstract type MatrixProduct end
struct TileProduct <: MatrixProduct end
struct BlasProduct <: MatrixProduct end

"An operand as a stack of matrices: extents, and distances of neighbours, along (batch, free axes, contracted axes)."
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
    all(strides[i] == n[j] * strides[j] for (i, j) in zip(kept, kept[2:end])) ? strides[kept[end]] : nothing
end

# BLAS wants one of the axes to lie together; tiles want that of the right operand's free axes.
suits(::BlasProduct, steps, side) = steps[2] == 1 || steps[3] == 1
suits(::TileProduct, steps, side) = side === :left || steps[2] == 1

argument_bytes(::TileProduct) = 0
argument_bytes(::BlasProduct) = Routines.FORTRAN_ARGUMENTS

function multiply_matrices!(kind::MatrixProduct, s::Frame, e)
    x, y, v = e.inputs[1], e.inputs[2], e.outputs[1]
    with_matrices(kind, :left, s, x, e[:lhs_contract], e[:lhs_batch]) do a
        with_matrices(kind, :right, s, y, e[:rhs_contract], e[:rhs_batch]) do b
            multiply_stacks!(kind, s, memory!(s, v), a, b)
        end
    end
end

"`f(stack)` writes code that uses an operand as matrices, rearranged in the workspace where it has to be."
function with_matrices(f, kind, side, s::Frame, v::Atom, contract, batch)
    groups = (batch, free_axes(aval(v), contract, batch), contract)
    extents, steps = map(axes -> extent(v, axes), groups), map(axes -> lies(v, axes), groups)
    all(!isnothing, steps) && suits(kind, steps, side) && return f(MatrixStack(memory_of(s, v), extents, steps))
    moved = virtual!(s, :transpose, v; perm = vcat(groups[1], groups[3], groups[2]))
    with_memory(s, aval(moved)) do m
        copy_elements!(s, m, moved)
        f(MatrixStack(m, extents, (extents[2] * extents[3], 1, extents[2])))
    end
end

function multiply_stacks!(kind, s::Frame, c::Memory, a::MatrixStack, b::MatrixStack)
    g, (batch, m, k), n = s.generator, a.extents, b.extents[2]
    # BLAS rearranges B once a call: no more calls than threads.
    rows = batch == 1 && !g.threaded && m * n * k >= LARGE_PRODUCT && Sys.CPU_THREADS > 1 ? min(m, Sys.CPU_THREADS) : 1
    chunks = batch > 1 && !g.threaded && batch * m * n * k >= LARGE_PRODUCT ? batch : rows
    with_elements(s, UInt8, chunks * argument_bytes(kind)) do scratch
        function product!(item, from, count, arguments)
            at(m, place) = :($(m.pointer) + $place * $(sizeof(c.type.dtype)))
            pc, pa, pb = at(c, :($item * $(m * n) + $from * $n)), at(a.memory, :($item * $(a.steps[1]) + $from * $(a.steps[2]))), at(b.memory, :($item * $(b.steps[1])))
            multiply_rows!(kind, g, pc, pa, pb, arguments, a, b, count)
        end
        chunks == 1 && return counted_loop!(i -> product!(i, 0, m, scratch), g, batch)
        chunk = fresh_symbol!(g, Int)
        body = threaded_block(g) do
            mine = :($scratch + $chunk * $(argument_bytes(kind)))
            batch > 1 && return product!(chunk, 0, m, mine)
            from, to = (local!(g, Int, :($(÷)($(*)($m, $i), $chunks))) for i in (chunk, :($chunk + 1)))
            product!(0, from, :($to - $from), mine)
        end
        emit_code!(g, Parallel(chunk, chunks, body))
    end
end

function multiply_rows!(::TileProduct, g, pc, pa, pb, arguments, a, b, count)
    n, k = b.extents[2], a.extents[3]
    product = :($(Routines.TiledProduct)($count, $n, 1, $k, $(a.steps[2]), 0, $(a.steps[3]), 0, $(b.steps[3]), $n))
    emit_code!(g, :($(Routines.multiply_tiles!)($pc, $pa, $pb, $product, false)))
end

# Row-major C = AB is column-major Cᵀ = BᵀAᵀ.
function multiply_rows!(::BlasProduct, g, pc, pa, pb, arguments, a, b, count)
    n, k = b.extents[2], a.extents[3]
    along_a, along_b = a.steps[3] == 1, b.steps[2] == 1
    emit_code!(g, :($(Routines.gemm!)($(gemm_pointer(a.memory.type.dtype)), $arguments, $(along_b ? 'N' : 'T') % UInt8, $(along_a ? 'N' : 'T') % UInt8,
                             $n, $count, $k, $pb, $(along_b ? max(n, b.steps[3]) : max(k, b.steps[2])),
                             $pa, $(along_a ? max(k, a.steps[2]) : max(a.extents[2], a.steps[3])), $pc, $n)))
end

const BlasInt = LinearAlgebra.BlasInt
const GEMM = Dict{DataType,Symbol}(Float32 => :sgemm, Float64 => :dgemm, ComplexF32 => :cgemm, ComplexF64 => :zgemm)
gemm_pointer(::Type{T}) where {T} = blas_pointer(GEMM[T])

"The address of a BLAS or LAPACK routine that Julia uses, one thread at a time: XLA's threads split the work."
function blas_pointer(routine::Symbol)
    BLAS.set_num_threads(1)
    library = VERSION >= v"1.7" ? LinearAlgebra.BLAS.libblastrampoline : LinearAlgebra.BLAS.libblas
    suffix = BlasInt === Int64 ? "_64_" : "_"
    Libdl.dlsym(Libdl.dlopen(library), string(routine, suffix))
end
