# Reductions over axes.

@primitive ReduceSum reduce_sum(axes)
linear_operands(::ReduceSum, eqn) = (1,)
infer(op::ReduceSum, types, attrs) = [reduced(op, types[1], attrs[:axes])]

"The type of a reduction's result: the axes are gone."
function reduced(op, x::TensorType, axes)
    all(k -> 0 <= k < ndims(x), axes) && allunique(axes) || infer_error(op, "axes $axes do not fit $(type_text(x))")
    TensorType(x.dtype, Dim[n for (k, n) in enumerate(x.shape) if !(k - 1 in axes)])
end
"Julia's dimensions for JAX's axes of an array."
julia_dims(x::AbstractArray, axes) = Tuple(ndims(x) - k for k in axes)

function evaluate(::ReduceSum, x, attrs, types)
    isempty(attrs[:axes]) && return [copy(x[1])]
    y = sum(x[1]; dims = julia_dims(x[1], attrs[:axes]))
    [reshape(convert(Array{types[1].dtype}, y), reverse(Int.(types[1].shape))...)]
end

function transpose(::ReduceSum, b, eqn, ȳ, x)
    kept = [k for k in 0:ndims(aval(x[1]))-1 if !(k in eqn[:axes])]
    [emit(b, :broadcast_in_dim, ȳ[1]; shape = aval(x[1]).shape, dims = kept)]
end
