# dot_general: matrix products by tiles in registers or by BLAS, those with a vector by several rows
# at a time, the smallest as loops.

"How the matrices of a product are multiplied, if not in loops."
abstract type MatrixProduct end
"By tiles of columns: a row of the right matrix lies together."
struct TileProduct <: MatrixProduct end
struct BlasProduct <: MatrixProduct end
"""
By tiles of sums, the terms of each together on both sides; `flipped`: as the transposed product,
which has more rows."""
struct RowsProduct <: MatrixProduct
    flipped::Bool
end
"One of the matrices is a vector."
struct VectorProduct <: MatrixProduct end

extent(v::Atom, axes) = prod(Int[sizes(v)[k+1] for k in axes])
"An operand's (batch, free, contracted) axes."
axis_groups(v::Atom, contract, batch) = (batch, free_axes(aval(v), contract, batch), contract)

function emit_step!(op::DotGeneral, s::Frame, e)
    kind = product_kind(s, e)
    kind === nothing ? multiply_in_loops!(s, e) : multiply_matrices!(kind, s, e)
end

"The `MatrixProduct` for an equation; nothing for loops."
function product_kind(s::Frame, e)
    x, y, T = e.inputs[1], e.inputs[2], dtype(e.outputs[1])
    left, right = (axis_groups(x, e[:lhs_contract], e[:lhs_batch]),
        axis_groups(y, e[:rhs_contract], e[:rhs_batch]))
    m, n, k = extent(x, left[2]), extent(y, right[2]), extent(x, left[3])
    T <: LinearAlgebra.BlasFloat && dtype(x) === dtype(y) === T &&
        m * n * k > largest_looped_product(s.generator.target) || return nothing
    isreal_ = T <: Union{Float32,Float64}
    min(m, n) == 1 && return isreal_ && k > 1 &&
           (m > 1 ? goes_by_rows(x, left, y, right) : n > 1 &&
            goes_by_rows(y, right, x, left)) ? VectorProduct() : nothing
    if isreal_
        column, istiled = min(m, n) * sizeof(T), n * k * sizeof(T) <= TILED_BYTES
        (column <= THIN_PRODUCT || istiled) && lies(y, right[2]) == 1 && return TileProduct()
        rearranged = istiled && m >= REARRANGED_ROWS
        longest, other = m < n ? (lies(y, right[3]), lies(x, left[3])) :
                         (lies(x, left[3]), lies(y, right[3]))
        isthin = column <= THIN_SUMS
        longest == 1 && (isthin || istiled && other == 1) &&
            k * sizeof(T) >= (isthin ? LEAST_TERMS_OF_FEW : LEAST_TERMS) &&
            !(rearranged && faster_rearranged(T, m, n, k, register_bytes(s.generator.target))) &&
            return RowsProduct(m < n)
        rearranged && return TileProduct()
    end
    m * n * k > SMALL_PRODUCT ? BlasProduct() : nothing
end

"""
Whether tiles of columns are faster, with the right matrix rearranged, than tiles of sums: of the
latter, three rows times four take so many cycles for a register's terms and at their end."""
function faster_rearranged(T, m, n, k, register)
    sums = m * n / 12 * (TERMS_CYCLES * k / (register ÷ sizeof(T)) + SUMS_CYCLES)
    columns = m * k * cld(n, Routines.lane_count(T, n, register)) * COLUMNS_CYCLES
    REARRANGING_CYCLES * n * k + columns < sums
end

"""
Whether a matrix has rows, of two registers at least, that lie together, and a
vector's elements do too."""
function goes_by_rows(matrix, groups, vector, vector_groups)
    steps = map(axes -> lies(matrix, axes), groups)
    all(!isnothing, steps) && all(axes -> lies(vector, axes) !== nothing, vector_groups) &&
        lies(vector, vector_groups[3]) == 1 || return false
    along = findlast(==(1), steps[2:3])
    along !== nothing &&
        extent(matrix, groups[along+1]) * sizeof(dtype(matrix)) >= 2Routines.REGISTER
end

# ---- loops

function multiply_in_loops!(s::Frame, e)
    x, y, v = e.inputs[1], e.inputs[2], e.outputs[1]
    A = accumulator(dtype(v) === Bool ? Int : promote_type(map(dtype, (v, x, y))...))
    batch = sizes(x)[e[:lhs_batch].+1]
    lhs_free, rhs_free = (free_axes(aval(x), e[:lhs_contract], e[:lhs_batch]),
        free_axes(aval(y), e[:rhs_contract], e[:rhs_batch]))
    groups = (batch = batch, lhs = sizes(x)[lhs_free.+1], rhs = sizes(y)[rhs_free.+1],
        sum = sizes(x)[e[:lhs_contract].+1])
    order = loop_order(x, y, e, prod(groups.lhs), prod(groups.rhs))
    domain = reduce(vcat, [groups[g] for g in order])
    starts =
        Dict(
            g => sum(Int[length(groups[h]) for h in order[1:findfirst(==(g), collect(order))-1]])
            for g in order
        )
    place(g) = collect(starts[g]:starts[g]+length(groups[g])-1)
    left = spread_operand(s, x, vcat(e[:lhs_batch], lhs_free, e[:lhs_contract]),
        vcat(place(:batch), place(:lhs), place(:sum)), domain, A)
    right = spread_operand(s, y, vcat(e[:rhs_batch], rhs_free, e[:rhs_contract]),
        vcat(place(:batch), place(:rhs), place(:sum)), domain, A)
    product = combined!(s, :mul, left, right)
    reduced, strides = trues(length(domain)), zeros(Int, length(domain))
    kept = vcat(place(:batch), place(:lhs), place(:rhs)) .+ 1
    reduced[kept] .= false
    strides[kept] = row_strides(sizes(v))
    into(m) = begin
        fill_memory!(s, m, zero(A))
        emit_nest!(s, domain, Store[],
            [
                Reduce(product, primitive(:reduce_sum), A, collect(Bool, reduced), m.pointer,
                    Affine(strides, 0, []), :none)
            ])
    end
    in_accumulators!(into, s, v, A)
end

"The order of the loops: what is contiguous in memory runs innermost."
function loop_order(x, y, e, m, n)
    lhs_flipped, rhs_flipped = (is_flipped(x, e[:lhs_contract], e[:lhs_batch]),
        is_flipped(y, e[:rhs_contract], e[:rhs_batch]))
    n == 1 && return lhs_flipped ? (:batch, :rhs, :sum, :lhs) : (:batch, :rhs, :lhs, :sum)
    m == 1 && return rhs_flipped ? (:batch, :lhs, :sum, :rhs) : (:batch, :lhs, :rhs, :sum)
    rhs_flipped ? (:batch, :lhs, :sum, :rhs) : (:batch, :lhs, :rhs, :sum)
end

"""
Whether an operand's axes lie in the order (batch, contracted, free), and not in that of (batch,
free, contracted)."""
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
