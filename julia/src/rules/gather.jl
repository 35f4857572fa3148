# gather: windows read from an operand at places given by an array of indices.

@primitive Gather gather(offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims,
    start_indices_batching_dims, slice_sizes, mode, fill_value, sorted, unique)

"""
How an array of indices places windows in an operand; what gather and scatter have in common.

The last axis of `indices` holds the start of a window along the operand's axes `map`. Axes
`collapsed` and `batching` of the operand have window size 1 and no axis in the gathered array (or
the updates); its axes `window` run over the rest of the window and its other axes over the other
axes of `indices`. Along the operand's axes `batching` a window starts at its own position along the
axes `indices_batching` of `indices`.
"""
struct Windows
    window::Vector{Int}
    collapsed::Vector{Int}
    map::Vector{Int}
    batching::Vector{Int}
    indices_batching::Vector{Int}
    sizes::Shape
    mode::Symbol
end
Windows(::Gather, attrs) =
    Windows(attrs[:offset_dims], attrs[:collapsed_slice_dims], attrs[:start_index_map],
        attrs[:operand_batching_dims], attrs[:start_indices_batching_dims], attrs[:slice_sizes],
        attrs[:mode])
"The attributes that say where the windows are."
placement(::Gather, w::Windows) =
    Attributes(:offset_dims => w.window, :collapsed_slice_dims => w.collapsed,
        :start_index_map => w.map, :operand_batching_dims => w.batching,
        :start_indices_batching_dims => w.indices_batching, :slice_sizes => w.sizes)

"The operand's axes along which windows extend, and the sizes there."
extended(w::Windows) = [k for k in 0:length(w.sizes)-1 if !(k in w.collapsed || k in w.batching)]
"The gathered array's axes that run over the indices."
batch_axes(w::Windows, rank) = [k for k in 0:rank-1 if !(k in w.window)]

"""
Throws unless the windows are well formed; gives the shape of the gathered array
(or of the updates)."""
function check_windows(op, w::Windows, operand::TensorType, indices::TensorType)
    require(condition, message) = condition || infer_error(op, message)
    increasing(axes, rank) = issorted(axes; lt = <=) && all(k -> 0 <= k < rank, axes)
    among(axes, rank) = allunique(axes) && all(k -> 0 <= k < rank, axes)
    n, rank = ndims(operand), length(w.window) + ndims(indices) - 1
    require(w.mode in (:clip, :fill, :promise), "unknown mode $(w.mode)")
    require(indices.dtype <: Integer && indices.dtype !== Bool && ndims(indices) >= 1,
        "the indices cannot be $(type_text(indices))")
    require(increasing(w.window, rank), "the window axes $(w.window) do not fit a rank of $rank")
    require(increasing(w.collapsed, n) && increasing(w.batching, n) && among(w.map, n),
        "an axis of the operand is out of order or range")
    require(isempty(intersect(w.batching, w.collapsed)) && isempty(intersect(w.batching, w.map)),
        "a batching axis is also indexed or collapsed")
    require(length(w.map) == indices.shape[end],
        "$(type_text(indices)) does not hold $(length(w.map)) starts a window")
    require(
        among(w.indices_batching, ndims(indices) - 1) &&
            length(w.indices_batching) == length(w.batching) &&
            operand.shape[w.batching.+1] == indices.shape[w.indices_batching.+1],
        "the batching axes do not fit together")
    require(length(w.sizes) == n == length(w.window) + length(w.collapsed) + length(w.batching),
        "the window does not fit $(type_text(operand))")
    require(all(k -> !below(1, w.sizes[k+1]), vcat(w.collapsed, w.batching)),
        "a collapsed or batching axis has a window size over 1")
    # No window is read where there are no indices; sizes may then exceed the operand.
    require(
        any(==(0), indices.shape) ||
            !any(below(s, 0) || below(m, s) for (s, m) in zip(w.sizes, operand.shape)),
        "a window of shape $(w.sizes) does not fit into $(type_text(operand))")
    within, along = (Iterators.Stateful(w.sizes[extended(w).+1]),
        Iterators.Stateful(indices.shape[1:end-1]))
    Dim[popfirst!(k in w.window ? within : along) for k in 0:rank-1]
end

function infer(op::Gather, types, attrs)
    length(types) == 2 || infer_error(op, "takes an operand and indices")
    [TensorType(types[1].dtype, check_windows(op, Windows(op, attrs), types[1], types[2]))]
end

"""
    place(w, operand_shape, indices, shape; clip) -> (starts, inside, batch, window)

Positions in memory, from 0. Window `k` starts at `starts[k]` in an operand of that shape (`nothing`
where it reaches outside and `clip` is false) and its element `j` is `inside[j]` further on; in the
gathered array or the updates, of the other shape, it is at `batch[k] + window[j]`.
"""
function place(w::Windows, operand_shape, indices::Array, shape; clip::Bool)
    strides, sizes = row_strides(operand_shape), Int.(w.sizes)
    position, along = row_strides(shape), batch_axes(w, length(shape))
    inside = offsets(sizes[extended(w).+1], strides[extended(w).+1])
    window = offsets(shape[w.window.+1], position[w.window.+1])
    batch = offsets(shape[along.+1], position[along.+1])
    starts_at = reshape(indices, length(w.map), length(batch))
    batch_shape = shape[along.+1]
    # Where along each batching axis of the operand a window stands: its own batch coordinate.
    base = zeros(Int, length(batch))
    for (k, axis) in zip(w.batching, w.indices_batching)
        base .+=
            strides[k+1] .* offsets(batch_shape,
                [a == axis + 1 for a in eachindex(batch_shape)])
    end
    starts = Vector{Union{Int,Nothing}}(base)
    for k in eachindex(batch), (j, axis) in enumerate(w.map)
        last_start = operand_shape[axis+1] - sizes[axis+1]
        start = starts_at[j, k]
        if clip
            start = clamp(start, 0, max(0, last_start))
        elseif !(0 <= start <= last_start)
            starts[k] = nothing
        end
        starts[k] === nothing || (starts[k] += strides[axis+1] * Int(start))
    end
    starts, inside, batch, window
end

row_shape(x::Array) = Int[reverse(size(x))...]

# XLA moves windows inside whatever the mode; only `fill` looks first.
function evaluate(op::Gather, x, attrs, types)
    w, y = Windows(op, attrs), uninitialized(types[1])
    fill!(y, fill_value(types[1].dtype, attrs[:fill_value]))
    starts, inside, batch, window =
        place(w, row_shape(x[1]), x[2], row_shape(y); clip = w.mode !== :fill)
    for (start, at) in zip(starts, batch)
        start === nothing && continue
        for (i, j) in zip(inside, window)
            y[at+j+1] = x[1][start+i+1]
        end
    end
    [y]
end

# What JAX fills with when it is not told: NaN, the least signed and the greatest
# unsigned integer, true.
fill_value(T::DataType, value::Number) = convert(T, value)
fill_value(T::DataType, ::Nothing) = isinexact(T) ? T(NaN) : T <: Signed ? typemin(T) : typemax(T)

# Linear but for the fill value, which a tangent does not have.
zero_fill(mode) = mode === :fill ? 0 : nothing
linear_operands(::Gather, eqn) = eqn[:fill_value] == zero_fill(eqn[:mode]) ? (1,) : ()

function jvp(op::Gather, b, eqn, x, ẋ)
    attrs = merge(eqn.attrs, Attributes(:fill_value => zero_fill(eqn[:mode])))
    emit!(b, op, x, eqn.attrs), Vector{MaybeAtom}(emit!(b, op, Atom[ẋ[1], x[2]], attrs))
end

function transpose(op::Gather, b, eqn, ȳ, x)
    w = Windows(op, eqn.attrs)
    MaybeAtom[
        scatter(b, :scatter_add, w, zeros_of(b, aval(x[1])), x[2], ȳ[1];
            sorted = eqn[:sorted], unique = eqn[:unique]), nothing]
end

function static_windows(op::Gather, b, eqn, known)
    w, x = Windows(op, eqn.attrs), eqn.inputs[1]
    start = only_start(w, x, known(eqn.inputs[2]); clip = w.mode !== :fill)
    start === nothing ? nothing :
    shaped(b, slice_at(b, x, start, w.sizes), shape(eqn.outputs[1]))
end

"""
Where the window begins, if it is only one, these are the known indices, and it lies inside, or is
moved there with `clip`; else nothing."""
function only_start(w::Windows, x::Atom, indices; clip)
    indices !== nothing && length(indices) == length(w.map) && isempty(w.batching) &&
        all(n -> n isa Int, vcat(shape(x), w.sizes)) || return nothing
    start = zeros(Int, length(w.sizes))
    for (axis, at) in zip(w.map, indices)
        room = shape(x)[axis+1] - w.sizes[axis+1]
        clip || 0 <= at <= room || return nothing
        start[axis+1] = clamp(at, 0, room)
    end
    start
end
shaped(b, x, n) = shape(x) == n ? x : emit(b, :reshape, x; shape = n)

"""
The gather of windows, zero where they reach outside in the mode `fill`: the linear map whose
transpose is `scatter_add`."""
gather(b::Builder, w::Windows, operand::Atom, indices::Atom; sorted, unique) =
    emit(b, :gather, operand, indices; placement(Gather(), w)..., mode = w.mode,
        fill_value = zero_fill(w.mode), sorted = sorted, unique = unique)

scatter(b::Builder, op::Symbol, w::Windows, operand::Atom, indices::Atom, updates::Atom; sorted,
    unique) =
    emit(b, op, operand, indices, updates; placement(primitive(op), w)..., mode = w.mode,
        sorted = sorted, unique = unique)

"The elements of `x` at positions `index` along an axis, `index` having the shape of the result."
function take_along(b::Builder, x::Atom, index::Atom, axis; unique)
    others = axes_except(aval(x), axis)
    w = Windows(Int[], [axis], [axis], others, others, ones(Int, ndims(aval(x))), :promise)
    gather(b, w, x, emit(b, :reshape, index; shape = vcat(shape(index), 1)); sorted = false,
        unique = unique)
end
