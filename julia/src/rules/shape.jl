# Primitives that only move or repeat elements, whole arrays at a time. All are linear.

@primitive BroadcastInDim broadcast_in_dim(shape, dims)

linear_operands(::BroadcastInDim, eqn) = (1,)
ischeap(::BroadcastInDim) = true
fill_literal(::BroadcastInDim, eqn) = eqn.inputs[1] isa Literal ? eqn.inputs[1] : nothing

function infer(op::BroadcastInDim, types, attrs)
    x, shape, dims = types[1], Shape(attrs[:shape]), attrs[:dims]
    length(dims) == ndims(x) && issorted(dims; lt = <=) ||
        infer_error(op, "dims $dims do not fit $(type_text(x))")
    for (d, n) in zip(dims, x.shape)
        0 <= d < length(shape) && (n == 1 || n == shape[d+1]) ||
            infer_error(op, "$(type_text(x)) does not broadcast to $shape along $dims")
    end
    [TensorType(x.dtype, shape)]
end

function evaluate(::BroadcastInDim, x, attrs, types)
    y = uninitialized(types[1])
    lifted = ones(Int, ndims(y))
    lifted[attrs[:dims].+1] .= reverse(size(x[1]))
    y .= reshape(x[1], reverse(lifted)...)
    [y]
end

function transpose(::BroadcastInDim, b, eqn, ȳ, x)
    from, to, dims = aval(x[1]).shape, shape(ȳ[1]), eqn[:dims]
    summed = [
        k for k in 0:length(to)-1
        if !(k in dims) || (from[findfirst(==(k), dims)] == 1 && to[k+1] != 1)
    ]
    x̄ = isempty(summed) ? ȳ[1] : emit(b, :reduce_sum, ȳ[1]; axes = summed)
    [shape(x̄) == from ? x̄ : emit(b, :reshape, x̄; shape = from)]
end

@primitive Reshape reshape(shape)
linear_operands(::Reshape, eqn) = (1,)
infer(op::Reshape, types, attrs) =
    size_of(types[1].shape) == size_of(attrs[:shape]) ?
    [TensorType(types[1].dtype, Shape(attrs[:shape]))] :
    infer_error(op, "$(type_text(types[1])) cannot take the shape $(attrs[:shape])")

isfree(::Reshape) = true
"Whether two shapes differ in axes of size 1 alone."
same_but_ones(a, b) = [n for n in a if n != 1] == [n for n in b if n != 1]

@primitive Squeeze squeeze(dims)
linear_operands(::Squeeze, eqn) = (1,)
function infer(op::Squeeze, types, attrs)
    x, dims = types[1], attrs[:dims]
    check_axes(op, x, dims)
    all(k -> x.shape[k+1] == 1, dims) ||
        infer_error(op, "an axis among $dims of $(type_text(x)) is not of size 1")
    [TensorType(x.dtype, x.shape[axes_except(x, dims).+1])]
end

# A Program's arrays are row-major: another shape is the same memory.
evaluate(::Union{Reshape,Squeeze}, x, attrs, types) = [reshape(copy(x[1]), julia_size(types[1]))]
transpose(::Union{Reshape,Squeeze}, b, eqn, ȳ, x) =
    [emit(b, :reshape, ȳ[1]; shape = aval(x[1]).shape)]

@primitive Permute transpose(perm)
linear_operands(::Permute, eqn) = (1,)
function infer(op::Permute, types, attrs)
    x, perm = types[1], attrs[:perm]
    sort(perm) == 0:ndims(x)-1 || infer_error(op, "perm $perm does not fit $(type_text(x))")
    [TensorType(x.dtype, x.shape[perm.+1])]
end
evaluate(::Permute, x, attrs, types) = [permute_axes(x[1], attrs[:perm])]
transpose(::Permute, b, eqn, ȳ, x) = [emit(b, :transpose, ȳ[1]; perm = inverse_perm(eqn[:perm]))]

# Axis i of the result is axis perm[i] of x; Julia's dimension n - i is axis i.
permute_axes(x::Array, perm) = issorted(perm) ? copy(x) : permutedims(x, ndims(x) .- reverse(perm))

@primitive Rev rev(dims)
linear_operands(::Rev, eqn) = (1,)
function infer(op::Rev, types, attrs)
    check_axes(op, types[1], attrs[:dims])
    [types[1]]
end
function evaluate(::Rev, x, attrs, types)
    n = ndims(x[1])
    [
        section(x[1],
            [n - d in attrs[:dims] ? (size(x[1], d):-1:1) : (1:1:size(x[1], d)) for d in 1:n])
    ]
end
transpose(::Rev, b, eqn, ȳ, x) = [emit(b, :rev, ȳ[1]; dims = eqn[:dims])]

@primitive Concatenate concatenate(dim)
linear_operands(::Concatenate, eqn) = 1:length(eqn.inputs)

function infer(op::Concatenate, types, attrs)
    isempty(types) && infer_error(op, "needs an operand")
    x, dim = types[1], attrs[:dim]
    check_axis(op, x, dim)
    same_dtypes(op, types)
    outside(t) = deleteat!(copy(t.shape), dim + 1)
    all(t -> ndims(t) == ndims(x) && outside(t) == outside(x), types) ||
        infer_error(op,
            "($(join(map(type_text, types), ", "))) do not fit together along axis $dim")
    joined = copy(x.shape)
    joined[dim+1] = foldl(+, Dim[t.shape[dim+1] for t in types])
    [TensorType(x.dtype, joined)]
end

function evaluate(::Concatenate, x, attrs, types)
    y = uninitialized(types[1])
    target, at = threefold(y, attrs[:dim]), 0
    for v in x
        part = threefold(v, attrs[:dim])
        target[:, at+1:at+size(part, 2), :] = part
        at += size(part, 2)
    end
    [y]
end

function transpose(::Concatenate, b, eqn, ȳ, x)
    dim, at = eqn[:dim], 0
    map(x) do v
        from, at = at, at + aval(v).shape[dim+1]
        islinear(v) ? slice_axis(b, ȳ[1], dim, from, at) : nothing
    end
end

@primitive SplitAxis split(axis, sizes)
linear_operands(::SplitAxis, eqn) = (1,)

function infer(op::SplitAxis, types, attrs)
    x, axis, sizes = types[1], attrs[:axis], attrs[:sizes]
    check_axis(op, x, axis)
    !isempty(sizes) && foldl(+, sizes) == x.shape[axis+1] && !any(n -> below(n, 0), sizes) ||
        infer_error(op, "sizes $sizes do not cover axis $axis of $(type_text(x))")
    part(n) = (s = copy(x.shape); s[axis+1] = n; TensorType(x.dtype, s))
    TensorType[part(n) for n in sizes]
end

function evaluate(::SplitAxis, x, attrs, types)
    source = threefold(x[1], attrs[:axis])
    stops = cumsum(Int.(attrs[:sizes]))
    [
        reshape(source[:, stop-n+1:stop, :], julia_size(t))
        for (stop, n, t) in zip(stops, attrs[:sizes], types)
    ]
end

transpose(::SplitAxis, b, eqn, ȳ, x) =
    [
        emits(b, :concatenate, Atom[instantiate(b, t, v) for (t, v) in zip(ȳ, eqn.outputs)];
            dim = eqn[:axis])[1]
    ]

# pad: element i of an axis lands at low + i · (interior + 1); negative low and high cut off.

@primitive Pad pad(low, high, interior)
linear_operands(::Pad, eqn) = (1, 2)

function infer(op::Pad, types, attrs)
    x, low, high, interior = types[1], attrs[:low], attrs[:high], attrs[:interior]
    same_dtypes(op, types)
    isempty(types[2].shape) ||
        infer_error(op, "the padding value must have rank 0, got $(type_text(types[2]))")
    length(low) == length(high) == length(interior) == ndims(x) && all(>=(0), interior) ||
        infer_error(op, "the padding $low, $high, $interior does not fit $(type_text(x))")
    padded = Dim[l + h + dilated(n, i) for (n, l, h, i) in zip(x.shape, low, high, interior)]
    any(n -> below(n, 0), padded) &&
        infer_error(op, "the padding $low, $high leaves less than nothing of $(type_text(x))")
    [TensorType(x.dtype, padded)]
end
dilated(n::Dim, interior) = interior == 0 || n == 0 ? n : 1 + (n - 1) * (interior + 1)

function evaluate(::Pad, x, attrs, types)
    y = fill!(uninitialized(types[1]), x[2][])
    ranges = map(kept_by_pad, size(x[1]), size(y), reverse(Tuple(attrs[:low])),
        reverse(Tuple(attrs[:interior])))
    y[map(last, ranges)...] = x[1][map(first, ranges)...]
    [y]
end

"Positions in the operand and in the result of the elements that stay, along one axis."
function kept_by_pad(n, padded, low, interior)
    stride = interior + 1
    from = low >= 0 ? 0 : cld(-low, stride)
    to = min(n - 1, fld(padded - 1 - low, stride))
    to < from && return 1:0, 1:1:0
    from+1:to+1, low+from*stride+1:stride:low+to*stride+1
end

function transpose(::Pad, b, eqn, ȳ, x)
    type, low, high, interior = aval(x[1]), eqn[:low], eqn[:high], eqn[:interior]
    # Undo low and high, then skip what stands between the elements. Both cotangents need x̄.
    x̄ =
        all(==(0), low) && all(==(0), high) ? ȳ[1] :
        emit(b, :pad, ȳ[1], zeros_of(b, TensorType(type.dtype)); low = .-low, high = .-high,
            interior = zero(interior))
    all(==(0), interior) ||
        (
            x̄ = emit(b, :slice, x̄; start = zero(interior), limit = shape(x̄),
                strides = interior .+ 1)
        )
    [islinear(x[1]) ? x̄ : nothing,
        islinear(x[2]) ? emit(b, :sub, sum_all(b, ȳ[1]), sum_all(b, x̄)) : nothing]
end
sum_all(b::Builder, x::Atom) = emit(b, :reduce_sum, x; axes = collect(0:ndims(aval(x))-1))
