# dot_general: large matrix products by BLAS, the others as loops.

# Multiplications below which a call of BLAS costs more than it saves, and above which several threads pay.
const SMALL_PRODUCT, LARGE_PRODUCT = 8_000, 2_000_000

"An operand as a stack of matrices: free × contracted, or, if `flipped`, contracted × free, in that order in memory."
struct MatrixStack
    memory::Memory
    batch::Int
    free::Int
    contracted::Int
    flipped::Bool
end

extent(v::Atom, axes) = prod(Int[sizes(v)[k+1] for k in axes])

"How an operand's axes lie: (batch, free, contracted), with the last two the other way round (`true`), or in another order (`nothing`)."
function matrix_order(v::Atom, contract, batch)
    free = axes_except(aval(v), vcat(contract, batch))
    is_order(axes) = [k for k in axes if sizes(v)[k+1] != 1] == [k for k in 0:ndims(aval(v))-1 if sizes(v)[k+1] != 1]
    is_order(vcat(batch, free, contract)) ? false : is_order(vcat(batch, contract, free)) ? true : nothing
end

function emit_step!(op::DotGeneral, s::Frame, e)
    x, y, T = e.inputs[1], e.inputs[2], dtype(e.outputs[1])
    m, n, k = extent(x, free_axes(aval(x), e[:lhs_contract], e[:lhs_batch])), extent(y, free_axes(aval(y), e[:rhs_contract], e[:rhs_batch])), extent(x, e[:lhs_contract])
    by_blas = T <: LinearAlgebra.BlasFloat && min(m, n) > 1 && m * n * k > SMALL_PRODUCT && dtype(x) === T && dtype(y) === T
    by_blas ? multiply_by_blas!(s, e) : multiply_in_loops!(s, e)
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
    lhs_flipped = matrix_order(x, e[:lhs_contract], e[:lhs_batch]) === true
    rhs_flipped = matrix_order(y, e[:rhs_contract], e[:rhs_batch]) === true
    n == 1 && return lhs_flipped ? (:batch, :rhs, :sum, :lhs) : (:batch, :rhs, :lhs, :sum)
    m == 1 && return rhs_flipped ? (:batch, :lhs, :sum, :rhs) : (:batch, :lhs, :rhs, :sum)
    rhs_flipped ? (:batch, :lhs, :sum, :rhs) : (:batch, :lhs, :rhs, :sum)
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

# ---- BLAS

function multiply_by_blas!(s::Frame, e)
    x, y, v = e.inputs[1], e.inputs[2], e.outputs[1]
    with_matrices(s, x, e[:lhs_contract], e[:lhs_batch]) do a
        with_matrices(s, y, e[:rhs_contract], e[:rhs_batch]) do b
            multiply_stacks!(s, memory!(s, v), a, b)
        end
    end
end

"`f(stack)` writes code that uses an operand as matrices, rearranged in the workspace where it has to be."
function with_matrices(f, s::Frame, v::Atom, contract, batch)
    free = axes_except(aval(v), vcat(contract, batch))
    flipped = matrix_order(v, contract, batch)
    stack(m, flipped) = MatrixStack(m, extent(v, batch), extent(v, free), extent(v, contract), flipped)
    flipped === nothing || return f(stack(memory_of(s, v), flipped))
    moved = virtual!(s, :transpose, v; perm = vcat(batch, free, contract))
    with_memory(s, aval(moved)) do m
        copy_elements!(s, m, moved)
        f(stack(m, false))
    end
end

function multiply_stacks!(s::Frame, c::Memory, a::MatrixStack, b::MatrixStack)
    g, T, m, n, k = s.generator, c.type.dtype, a.free, b.free, a.contracted
    # BLAS rearranges B once a call: no more calls than threads.
    rows = a.batch == 1 && !g.threaded && m * n * k >= LARGE_PRODUCT && Sys.CPU_THREADS > 1 ? min(m, Sys.CPU_THREADS) : 1
    chunks = a.batch > 1 && !g.threaded && a.batch * m * n * k >= LARGE_PRODUCT ? a.batch : rows
    area = allocate!(g.arena, chunks * Routines.FORTRAN_ARGUMENTS)
    scratch = pointer_at!(g, UInt8, area)
    function product!(batch, from, count, arguments)
        at(p, elements) = :($p + $elements * $(sizeof(T)))
        pa = at(a.memory.pointer, :($batch * $(m * k) + $from * $(a.flipped ? 1 : k)))
        pb = at(b.memory.pointer, :($batch * $(n * k)))
        pc = at(c.pointer, :($batch * $(m * n) + $from * $n))
        # Row-major C = AB is column-major Cᵀ = BᵀAᵀ.
        emit_code!(g, :($(Routines.gemm!)($(gemm_pointer(T)), $arguments, $(b.flipped ? 'N' : 'T') % UInt8, $(a.flipped ? 'T' : 'N') % UInt8,
                                 $n, $count, $k, $pb, $(b.flipped ? n : k), $pa, $(a.flipped ? m : k), $pc, $n)))
    end
    if chunks == 1
        counted_loop!(i -> product!(i, 0, m, scratch), g, a.batch)
    else
        chunk = fresh_symbol!(g, Int)
        body = threaded_block(g) do
            mine = :($scratch + $chunk * $(Routines.FORTRAN_ARGUMENTS))
            a.batch > 1 && return product!(chunk, 0, m, mine)
            from, to = (local!(g, Int, :($(÷)($(*)($m, $i), $chunks))) for i in (chunk, :($chunk + 1)))
            product!(0, from, :($to - $from), mine)
        end
        emit_code!(g, Parallel(chunk, chunks, body))
    end
    release!(g.arena, area)
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
