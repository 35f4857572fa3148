# conv_general_dilated.

"How a convolution's arrays lie in memory."
function conv_layout(e)
    x, w, v = e.inputs..., e.outputs[1]
    lhs, rhs, out = e[:lhs_spec], e[:rhs_spec], e[:out_spec]
    at(a, axis) = (sizes(a)[axis+1], row_strides(sizes(a))[axis+1])
    (batch, y_batch), (features, x_features) = at(v, out[1]), at(x, lhs[2])
    (made, y_made), (taken, w_features), w_made = at(v, out[2]), at(w, rhs[2]), at(w, rhs[1])[2]
    x_batch = at(x, lhs[1])[2]
    groups = max(e[:feature_groups], e[:batch_groups])
    each = made ÷ groups
    x_group = e[:batch_groups] > 1 ? batch * x_batch : taken * x_features
    space, s = Routines.Axis[], slide(e.attrs, shape(w))
    for k in 1:length(lhs)-2
        (n, x_step), (m, y_step) = at(x, lhs[k+2]), at(v, out[k+2])
        push!(space, Routines.Axis(m, Int(s.window[k]), n, s.strides[k], s.dilation[k], s.base[k], Int(s.low[k]), y_step, x_step))
    end
    w_space = Tuple(Int[at(w, axis)[2] for axis in rhs[3:end]])
    Routines.Layout(Tuple(space), w_space, (batch, x_batch, y_batch), (groups, x_group, each * w_made, each * y_made),
                    (taken, x_features, w_features), (each, w_made, y_made))
end

function emit_step!(::Convolution, s::Frame, e)
    x, w, v = e.inputs..., e.outputs[1]
    l, A = conv_layout(e), accumulator(dtype(v) === Bool ? Int : promote_type(dtype(v), dtype(x)))
    from, weights = memory_of(s, x).pointer, memory_of(s, w).pointer
    plan = A === dtype(v) === dtype(x) && A <: LinearAlgebra.BlasFloat ? product_plan(l) : nothing
    plan === nothing || any(==(0), sizes(v)) || return convolve_by_products!(s, memory!(s, v), from, weights, l, plan)
    in_accumulators!(s, v, A) do m
        fill_memory!(s, m, zero(A))
        any(==(0), sizes(v)) || any(==(0), sizes(w)) || call!(s, Routines.convolve!, m.pointer, from, weights, l, along_features(l))
    end
end

"Whether the innermost loop runs over output features."
along_features(l) = isempty(l.space) || (l.made[3] == 1 && l.made[1] > 1)

# ---- as products of matrices

# The matrix of a block has about so many numbers.
const IMAGE_MATRIX = 1 << 17

"The convolution as a product of matrices, or nothing where it is too small or its arrays do not lie so."
function product_plan(l)
    isempty(l.space) && return nothing
    made, w_made, y_made = l.made
    counts = vcat(l.features[1], [a.window for a in l.space])
    strides = vcat(l.features[3], collect(l.w_space))
    places, y_steps = [a.places for a in l.space], [a.y_step for a in l.space]
    taken, rows = prod(counts), prod(places)
    made >= 4 && taken >= 4 && made * taken * rows > SMALL_PRODUCT || return nothing
    w_unit, y_unit = packed_step(counts, strides), packed_step(places, y_steps)
    w_unit === nothing || y_unit === nothing && return nothing
    (w_unit == 1 || w_made == 1) && (y_unit == 1 || y_made == 1) && issorted(y_steps; rev = true) || return nothing
    steps = strides .÷ w_unit
    block = clamp(IMAGE_MATRIX ÷ (taken * (rows ÷ places[1])), 1, places[1])
    w_transposed, y_transposed = w_made != 1, y_made != 1
    Routines.ProductPlan(taken, Tuple(steps[2:end]), steps[1], l.features[2] == 1 && l.features[1] > 1, w_transposed, w_transposed ? w_made : w_unit,
                         y_transposed, y_transposed ? y_made : y_unit, block)
end

"The distance of neighbours if axes are packed in some order, so that they count as one; otherwise nothing."
function packed_step(counts, strides)
    order = [k for k in sortperm(strides) if counts[k] > 1]
    isempty(order) && return 1
    next = unit = strides[order[1]]
    for k in order
        strides[k] == next || return nothing
        next *= counts[k]
    end
    unit
end

function convolve_by_products!(s::Frame, m::Memory, from, weights, l, plan)
    g, T, batch = s.generator, m.type.dtype, l.batch[1]
    n = plan.taken * plan.block * prod(Int[a.places for a in l.space[2:end]])
    work = batch * l.groups[1] * l.made[1] * plan.taken * prod(Int[a.places for a in l.space])
    chunks = !g.threaded && work >= LARGE_PRODUCT ? min(batch, Sys.CPU_THREADS) : 1
    each = Routines.FORTRAN_ARGUMENTS + cld(n * sizeof(T), ALIGNMENT) * ALIGNMENT
    with_elements(s, UInt8, chunks * each) do scratch
        convolve(chunk) = begin
            area = local!(g, Ptr{UInt8}, :($scratch + $chunk * $each))
            matrix = local!(g, Ptr{T}, :(convert($(Ptr{T}), $area + $(Routines.FORTRAN_ARGUMENTS))))
            start, stop = (local!(g, Int, :($(÷)($(*)($batch, $k), $chunks))) for k in (chunk, :($chunk + 1)))
            call!(s, Routines.convolve_by_products!, gemm_pointer(T), area, matrix, m.pointer, from, weights, l, plan, start, stop)
        end
        chunks == 1 && return convolve(0)
        chunk = fresh_symbol!(g, Int)
        emit_code!(g, Parallel(chunk, chunks, threaded_block(() -> convolve(chunk), g)))
    end
end
