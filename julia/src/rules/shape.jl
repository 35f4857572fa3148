# Primitives that only move or repeat elements, whole arrays at a time. All are linear.

@primitive BroadcastInDim broadcast_in_dim(shape, dims)

linear_operands(::BroadcastInDim, eqn) = (1,)
ischeap(::BroadcastInDim) = true

function infer(op::BroadcastInDim, types, attrs)
    x, shape, dims = types[1], Shape(attrs[:shape]), attrs[:dims]
    length(dims) == ndims(x) && issorted(dims; lt = <=) || infer_error(op, "dims $dims do not fit $(type_text(x))")
    for (d, n) in zip(dims, x.shape)
        0 <= d < length(shape) && (n == 1 || n == shape[d+1]) ||
            infer_error(op, "$(type_text(x)) does not broadcast to $shape along $dims")
    end
    [TensorType(x.dtype, shape)]
end

function evaluate(::BroadcastInDim, x, attrs, types)
    target = Int.(types[1].shape)
    lifted = ones(Int, length(target))
    lifted[attrs[:dims].+1] .= reverse(size(x[1]))
    y = Array{eltype(x[1])}(undef, reverse(target)...)
    y .= reshape(x[1], reverse(lifted)...)
    [y]
end

function transpose(::BroadcastInDim, b, eqn, ȳ, x)
    from, to, dims = aval(x[1]).shape, shape(ȳ[1]), eqn[:dims]
    summed = [k for k in 0:length(to)-1 if !(k in dims) || (from[findfirst(==(k), dims)] == 1 && to[k+1] != 1)]
    x̄ = isempty(summed) ? ȳ[1] : emit(b, :reduce_sum, ȳ[1]; axes = summed)
    [shape(x̄) == from ? x̄ : emit(b, :reshape, x̄; shape = from)]
end

@primitive Reshape reshape(shape)
linear_operands(::Reshape, eqn) = (1,)
infer(op::Reshape, types, attrs) =
    prod(types[1].shape; init = 1) == prod(attrs[:shape]; init = 1) ? [TensorType(types[1].dtype, Shape(attrs[:shape]))] :
    infer_error(op, "$(type_text(types[1])) cannot take the shape $(attrs[:shape])")
evaluate(::Reshape, x, attrs, types) = [reshape(copy(x[1]), reverse(Int.(types[1].shape))...)]
transpose(::Reshape, b, eqn, ȳ, x) = [emit(b, :reshape, ȳ[1]; shape = aval(x[1]).shape)]
