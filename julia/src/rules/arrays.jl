# How rules see arrays in memory (row-major, axis k from 0), and what shape rules ask of dimensions.

"The size of the Julia array that holds a value of this type: the dimensions in reverse order."
julia_size(type::TensorType) = Tuple(reverse(Int.(type.shape)))
uninitialized(type::TensorType) = Array{type.dtype}(undef, julia_size(type))

"The sums of cₖ · strideₖ for all coordinates 0 ≤ cₖ < sizeₖ, in row-major order."
function offsets(sizes, strides)
    all = [0]
    for (n, stride) in zip(sizes, strides)
        all = vec([a + stride * c for c in 0:n-1, a in all])
    end
    all
end

"A copy of the elements at these ranges, one a dimension."
section(x::Array, ranges) = isempty(ranges) ? copy(x) : x[ranges...]

"An array as (after, along, before) an axis: the middle dimension of three runs along it."
function threefold(x::Array, axis)
    d = ndims(x) - axis
    reshape(x, prod(size(x)[1:d-1]), size(x, d), prod(size(x)[d+1:end]))
end

axes_except(type, removed) = Int[k for k in 0:ndims(type)-1 if !(k in removed)]
check_axis(op, type::TensorType, axis) =
    0 <= axis < ndims(type) || infer_error(op, "$(type_text(type)) has no axis $axis")
check_axes(op, type::TensorType, axes) =
    all(k -> 0 <= k < ndims(type), axes) && allunique(axes) ||
    infer_error(op, "axes $axes do not fit $(type_text(type))")

# Symbolic dimensions compare only where their difference is a number; a rule refuses
# what is certainly wrong.
below(a::AnyDim, b::AnyDim) = (d = a - b; d isa Int && d < 0)
same_dtypes(op, types) =
    all(t -> t.dtype === types[1].dtype, types) ||
    infer_error(op,
        "operands have different dtypes: $(join(map(type_text, types), ", "))")

# What rules emit again and again.

"A slice along one axis."
function slice_axis(b::Builder, x::Atom, axis, from, to)
    start, limit = zeros(Int, ndims(aval(x))), copy(shape(x))
    start, limit = Dim[start...], Dim[limit...]
    start[axis+1], limit[axis+1] = from, to
    emit(b, :slice, x; start = start, limit = limit, strides = ones(Int, length(start)))
end

"A reduction's result spread over the axes it lost."
spread_over(b::Builder, y::Atom, type::TensorType, axes) =
    emit(b, :broadcast_in_dim, y; shape = type.shape, dims = axes_except(type, axes))

"Converts an atom where it does not have that dtype already."
cast(b::Builder, x::Atom, T::DataType) =
    dtype(x) === T ? x : emit(b, :convert_element_type, x; dtype = dtype_name(T))

"A dtype that holds every position along that dimension."
index_dtype(n::Dim) = n isa Int && n > typemax(Int32) ? Int64 : Int32
iota(b::Builder, T::DataType, shape, axis) =
    emit(b, :iota; dtype = dtype_name(T), shape = Shape(shape), dim = axis)
