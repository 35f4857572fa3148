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
        push!(
            space,
            Routines.Axis(m, Int(s.window[k]), n, s.strides[k], s.dilation[k], s.base[k],
                Int(s.low[k]), y_step, x_step)
        )
    end
    w_space = Tuple(Int[at(w, axis)[2] for axis in rhs[3:end]])
    Routines.Layout(Tuple(space), w_space, (batch, x_batch, y_batch),
        (groups, x_group, each * w_made, each * y_made), (taken, x_features, w_features),
        (each, w_made, y_made))
end

function emit_step!(::Convolution, s::Frame, e)
    x, w, v = e.inputs..., e.outputs[1]
    A = accumulator(dtype(v) === Bool ? Int : promote_type(dtype(v), dtype(x)))
    from = memory_of(s, x).pointer
    planned =
        A === dtype(v) === dtype(x) && !any(==(0), sizes(v)) && !any(==(0), sizes(w)) ?
        planned_products(s, e, A) : nothing
    planned === nothing || return with_weights(s, w, planned.equation.inputs[2]) do weights
        with_result(s, e, planned.equation) do m
            convolve!(planned.plan, s, m, from, weights, planned.layout)
        end
    end
    l, weights = conv_layout(e), memory_of(s, w).pointer
    in_accumulators!(s, v, A) do m
        fill_memory!(s, m, zero(A))
        any(==(0), sizes(v)) || any(==(0), sizes(w)) ||
            call!(s, Routines.convolve!, m.pointer, from, weights, l, along_features(l))
    end
end

"Whether the innermost loop runs over output features."
along_features(l) = isempty(l.space) || (l.made[3] == 1 && l.made[1] > 1)

# ---- as products of matrices

"""
How to make products of it, and of which equation: itself, or one with the weights rearranged, or
with the result so, too; nothing where no way suits."""
function planned_products(s::Frame, e, T)
    tiles(l, T) = tile_plan(l, T, register_bytes(s.generator.target))
    # Tiles of a rearranged result are faster than an image, which has each element of x many times.
    for (plan_for, prepare) in ((tiles, identity), (tiles, f -> with_made_together(s, f)),
        (tiles, f -> with_made_together(s, with_result_together(f))), (image_plan, identity),
        (image_plan, f -> with_made_together(s, f)))
        f = prepare(e)
        f === nothing && continue
        l = conv_layout(f)
        plan = isempty(l.space) ? nothing : plan_for(l, T)
        plan === nothing || return (plan = plan, layout = l, equation = f)
    end
    nothing
end

"The equation with the output features' neighbours together in the weights."
function with_made_together(s::Frame, e)
    made, taken, space = e[:rhs_spec][1], e[:rhs_spec][2], e[:rhs_spec][3:end]
    n, by_features = length(space), inner_of(conv_layout(e)) === Routines.FeaturesInner
    moved = virtual!(s, :transpose, e.inputs[2];
        perm = by_features ? vcat(space, taken, made) : vcat(taken, space, made))
    spec = by_features ? vcat(n + 1, n, 0:n-1) : vcat(n + 1, 0, 1:n)
    with(e; inputs = Atom[e.inputs[1], moved], attrs = replaced(e.attrs, :rhs_spec, spec))
end
with_made_together(s::Frame, ::Nothing) = nothing

"""
The equation with the output features' neighbours together in another result, or nothing where
rearranging that would take longer than what is gained."""
function with_result_together(e)
    l, v, out = conv_layout(e), e.outputs[1], e[:out_spec]
    met = l.features[1] * prod(Int[a.window for a in l.space])
    met >= LEAST_MET || return nothing
    n, by_features = length(out) - 2, inner_of(l) === Routines.FeaturesInner
    perm = by_features ? vcat(out[1], out[3:end], out[2]) : vcat(out[3:end], out[1], out[2])
    spec = by_features ? vcat(0, n + 1, 1:n) : vcat(n, n + 1, 0:n-1)
    together = Var(TensorType(dtype(v), shape(v)[perm.+1]))
    with(e; outputs = Var[together], attrs = replaced(e.attrs, :out_spec, spec))
end
replaced(attrs, name, value) = Attributes(k => k === name ? value : x for (k, x) in attrs)

"`f(memory)` writes code that makes the result of `planned`, which is that of `e` or rearranged."
function with_result(f, s::Frame, e, planned)
    v, made = e.outputs[1], planned.outputs[1]
    made === v && return f(memory!(s, v))
    perm = planned[:out_spec][sortperm(e[:out_spec])]
    with_memory(s, aval(made)) do m
        f(m)
        s.storages[made] = m
        copy_elements!(s, memory!(s, v), virtual!(s, :transpose, made; perm = perm))
    end
end

"`f(pointer)` writes code that reads weights where they are, or rearranged in the workspace."
with_weights(f, s::Frame, w::Atom, wanted::Atom) =
    w === wanted ? f(memory_of(s, w).pointer) : with_memory(s, aval(wanted)) do m
        copy_elements!(s, m, wanted)
        f(m.pointer)
    end

# ---- as products of tiles

"""
The plan to take products of tiles: of x what lies inside is copied, `block` places along the first
axis at a time, `room` elements."""
struct TilePlan
    inner::Routines.Inner
    block::Int
    room::Int
end

inner_of(l) = l.batch[2] < l.features[2] ? Routines.BatchInner : Routines.FeaturesInner

function tile_plan(l, T, register)
    T <: Union{Float32,Float64} && l.made[1] > 1 && l.made[2] == l.made[3] == 1 || return nothing
    kind = inner_of(l){Routines.lane_count(T, l.made[1], register)}()
    window, a = prod(Int[a.window for a in l.space]), l.space[1]
    # What each row of the result meets of the weights should stay in a cache, as in dot_general.
    met = window * l.made[1] * (kind isa Routines.FeaturesInner ? l.features[1] : 1)
    met * sizeof(T) <= TILED_BYTES || return nothing
    others = Routines.inner(kind, l)[1] * prod(Int[Routines.reach(a) for a in l.space[2:end]])
    reached(places) = others * ((places - 1) * a.stride + (a.window - 1) * a.dilation + 1)
    reached(1) <= LARGEST_IMAGE_COPY || return nothing
    block = max(1, searchsortedlast([reached(places) for places in 1:a.places], IMAGE_COPY))
    TilePlan(kind, block, reached(block))
end

parts(::Routines.FeaturesInner, l) = l.batch[1]
parts(::Routines.BatchInner{W}, l) where {W} = l.made[1] ÷ W

# A register that is not full takes as long as one that is.
slowdown(::Union{Routines.FeaturesInner{W},Routines.BatchInner{W}}, T, register) where {W} =
    register ÷ (W * sizeof(T))

function convolve!(p::TilePlan, s::Frame, m::Memory, from, weights, l)
    T = m.type.dtype
    last_ = p.inner isa Routines.FeaturesInner ? l.batch[1] : l.made[1]
    slower = slowdown(p.inner, T, register_bytes(s.generator.target))
    in_chunks(s, l, parts(p.inner, l), p.room * sizeof(T), slower) do area, k, chunks
        copy = local!(s.generator, Ptr{T}, :(convert($(Ptr{T}), $area)))
        start, stop = chunk_bounds!(s.generator, last_, k, chunks)
        call!(s, Routines.convolve_by_tiles!, p.inner, m.pointer, copy, from, weights, l, p.block,
            start, stop)
    end
end

"""
`f(area, k, chunks)` writes the k-th of so many chunks of a convolution, each with so many bytes of
the workspace; it is so many times slower than a product of matrices."""
function in_chunks(f, s::Frame, l, most, bytes, slower = 1)
    g = s.generator
    work =
        slower * l.batch[1] * l.groups[1] * l.made[1] * l.features[1] *
        prod(Int[a.window * a.places for a in l.space])
    chunks = !g.threaded && work >= LARGE_PRODUCT ? min(most, Sys.CPU_THREADS) : 1
    each = cld(bytes, ALIGNMENT) * ALIGNMENT
    with_elements(s, UInt8, chunks * each) do scratch
        chunks == 1 && return f(scratch, 0, 1)
        chunk = fresh_symbol!(g, Int)
        emit_code!(g,
            Parallel(chunk, chunks,
                threaded_block(
                    () ->
                        f(local!(g, Ptr{UInt8}, :($scratch + $chunk * $each)), chunk, chunks), g)))
    end
end

# ---- as products by BLAS

"""
The convolution as a product of matrices, or nothing where it is too small or its
arrays do not lie so."""
function image_plan(l, T)
    T <: LinearAlgebra.BlasFloat || return nothing
    made, w_made, y_made = l.made
    counts = vcat(l.features[1], [a.window for a in l.space])
    strides = vcat(l.features[3], collect(l.w_space))
    places, y_steps = [a.places for a in l.space], [a.y_step for a in l.space]
    taken, rows = prod(counts), prod(places)
    made >= 4 && taken >= 4 && made * taken * rows > SMALL_PRODUCT || return nothing
    w_unit, y_unit = packed_step(counts, strides), packed_step(places, y_steps)
    (w_unit === nothing || y_unit === nothing) && return nothing
    (w_unit == 1 || w_made == 1) && (y_unit == 1 || y_made == 1) && issorted(y_steps; rev = true) ||
        return nothing
    steps = strides .÷ w_unit
    block = clamp(IMAGE_MATRIX ÷ (taken * (rows ÷ places[1])), 1, places[1])
    w_transposed, y_transposed = w_made != 1, y_made != 1
    Routines.ImagePlan(taken, Tuple(steps[2:end]), steps[1],
        l.features[2] == 1 && l.features[1] > 1, w_transposed, w_transposed ? w_made : w_unit,
        y_transposed, y_transposed ? y_made : y_unit, block)
end

"""
The distance of neighbours if axes are packed in some order, so that they count as one;
otherwise nothing."""
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

function convolve!(p::Routines.ImagePlan, s::Frame, m::Memory, from, weights, l)
    g, T, batch = s.generator, m.type.dtype, l.batch[1]
    n = p.taken * p.block * prod(Int[a.places for a in l.space[2:end]])
    in_chunks(s, l, batch, Routines.FORTRAN_ARGUMENTS + n * sizeof(T)) do area, k, chunks
        matrix = local!(g, Ptr{T}, :(convert($(Ptr{T}), $area + $(Routines.FORTRAN_ARGUMENTS))))
        start, stop = chunk_bounds!(g, batch, k, chunks)
        gemm = :($(Routines.Lapack)($(gemm_pointer(T)), $area))
        call!(s, Routines.convolve_by_products!, gemm, matrix, m.pointer, from, weights, l, p,
            start, stop)
    end
end
