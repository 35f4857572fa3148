# What is the same along some axes, as cotangents of sums are: it is moved, summed and multiplied
# without those axes. Values change by rounding at most.

# ---- an array filled with a number gives one where its elements are moved

"The number, a literal or a variable, that all elements of an array are, or nothing."
function filling_number(definition, a)
    e = defined_by(:broadcast_in_dim, definition, a)
    e !== nothing && isscalar(e.inputs[1]) ? e.inputs[1] : nothing
end

simplify(::Union{Squeeze,Slice,DynamicSlice,Rev}, eqn, x, definition) =
    moved_filling(eqn, x[1], definition)

function moved_filling(eqn, x, definition)
    number = filling_number(definition, x)
    number === nothing && return nothing
    b = Builder(Equation[], eqn.source)
    emit(b, :broadcast_in_dim, number; shape = shape(eqn.outputs[1]), dims = Int[])
    binding_last(b, eqn)
end

"""
Of one number the running sums are its multiples, which round less than sums do; each is finite
where the sum is."""
function simplify(::CumSum, eqn, x, definition)
    number = filling_number(definition, x[1])
    number !== nothing && isstatic(shape(x[1])) || return nothing
    isone_literal(number) || regroups(definition) || return nothing
    b, n = Builder(Equation[], eqn.source), shape(x[1])[eqn[:axis]+1]
    n < typemax(Int32) || return nothing
    places = iota(b, Int32, shape(x[1]), eqn[:axis])
    count = emit(b, eqn[:reverse] ? :sub : :add, Literal(Int32(eqn[:reverse] ? n : 1)), places)
    multiples!(b, number, count)
    binding_last(b, eqn)
end

"The number so many times, computed in a type that holds every count."
function multiples!(b::Builder, number, count)
    to(a, T) = emit(b, :convert_element_type, a; dtype = dtype_name(T))
    T = dtype(number)
    isone_literal(number) && return to(count, T)
    T <: Complex && return emit(b, :complex,
        (multiples!(b, emit(b, part, number), count) for part in (:real, :imag))...)
    W = sizeof(T) < 4 ? (T <: Integer ? Int32 : Float32) : T
    multiple = emit(b, :mul, spread_to(b, to(number, W), shape(count)), to(count, W))
    to(multiple, T)
end

"The equations of a Builder, of which the last binds the result of `eqn`."
binding_last(b::Builder, eqn) =
    push!(b.equations, with(pop!(b.equations); outputs = eqn.outputs))

function simplify(op::Gather, eqn, x, definition)
    number = filling_number(definition, x[1])
    w = Windows(op, eqn.attrs)
    number !== nothing && isstatic(shape(x[1])) && isstatic(w.sizes) || return nothing
    b, outside = Builder(Equation[], eqn.source),
    Literal(fill_value(dtype(x[1]), eqn[:fill_value]))
    dims = Int[]
    if w.mode === :fill && number != outside
        inside = windows_inside(b, w, shape(x[1]), x[2])
        number = emit(b, :select_n, inside, outside, spread_to(b, number, shape(inside)))
        dims = batch_axes(w, ndims(aval(eqn.outputs[1])))
    end
    emit(b, :broadcast_in_dim, number; shape = shape(eqn.outputs[1]), dims = dims)
    binding_last(b, eqn)
end

"Which windows lie in an operand of that shape, an array of the batch's axes."
function windows_inside(b::Builder, w::Windows, operand_shape, indices)
    axis, T = ndims(aval(indices)) - 1, dtype(indices)
    batch = shape(indices)[1:end-1]
    tests = Atom[]
    for (j, k) in enumerate(w.map)
        start = emit(b, :reshape, slice_axis(b, indices, axis, j - 1, j); shape = batch)
        last_start = Int(operand_shape[k+1]) - Int(w.sizes[k+1])
        push!(tests, emit(b, :ge, start, Literal(zero(T))))
        last_start < typemax(T) && push!(tests, emit(b, :le, start, Literal(T(last_start))))
    end
    isempty(tests) ? spread_to(b, Literal(true), batch) :
    foldl((p, q) -> emit(b, :and, p, q), tests)
end

"A number as an array of that shape."
spread_to(b::Builder, a::Atom, shape) =
    isempty(shape) ? a : emit(b, :broadcast_in_dim, a; shape = shape, dims = Int[])

# ---- functions of broadcasts

"""
A function of broadcasts along the same axes is computed before they are broadcast, unless it is an
addition or two of what is more than a number. The values are the same."""
function before_broadcast(op::Elementwise, eqn, x, definition)
    first = findfirst(a -> a isa Var, x)
    spread = first === nothing ? nothing : defined_by(:broadcast_in_dim, definition, x[first])
    spread !== nothing && isrepeating(spread) || return nothing
    cost(op, eqn) > CHEAP || isscalar(spread.inputs[1]) || return nothing
    small = Atom[]
    for a in x
        e = a isa Literal ? nothing : defined_by(:broadcast_in_dim, definition, a)
        a isa Literal || e !== nothing && e[:dims] == spread[:dims] && isrepeating(e) ||
            return nothing
        push!(small, a isa Literal ? a : e.inputs[1])
    end
    b = Builder(Equation[], eqn.source)
    y = emit!(b, op, small, eqn.attrs)[1]
    emit(b, :broadcast_in_dim, y; shape = shape(eqn.outputs[1]), dims = spread[:dims])
    binding_last(b, eqn)
end

"Whether a broadcast has each element of its operand several times, at the places that `dims` says."
function isrepeating(e)
    full = shape(e.outputs[1])
    !stretches(e) && any(d -> !(d in e[:dims]) && full[d+1] != 1, 0:length(full)-1)
end
"Whether an axis of size 1 of the operand becomes longer."
stretches(e) = shape(e.inputs[1]) != shape(e.outputs[1])[e[:dims].+1]

# ---- products of broadcasts

"""
An array that is a product of broadcasts, the same along an axis: the axes along which it varies,
and how the product is defined."""
struct Repeated{D}
    array::Var
    varying::Vector{Int}
    definition::D
end

"""
An array as such a product, or nothing. The sum of no elements is 0, also of an infinite factor."""
function repeated_product(x, definition)
    regroups(definition) || return nothing
    type, axes = aval(x), Vector{Int}[]
    isinexact(type.dtype) && sizeof(real(type.dtype)) >= 4 && !any(isequal(0), type.shape) &&
        product_of_broadcasts!(axes, x, ndims(type), definition) || return nothing
    varying = sort!(unique(reduce(vcat, axes)))
    any(d -> !(d in varying) && type.shape[d+1] != 1, 0:ndims(type)-1) ?
    Repeated(x, varying, definition) : nothing
end

"""
Notes the axes along which each factor of a product varies; false where one is no broadcast, or the
factors are many."""
function product_of_broadcasts!(axes, a, rank, definition)
    length(axes) < MOST_FACTORS || return false
    a isa Literal && return (push!(axes, Int[]); true)
    e = definition(a)
    e === nothing && return false
    if name(e.op) === :mul
        return all(x -> product_of_broadcasts!(axes, x, rank, definition), e.inputs)
    end
    e.op isa BroadcastInDim && length(e[:dims]) < rank && !stretches(e) || return false
    push!(axes, e[:dims])
    true
end
const MOST_FACTORS = 4

"Its place among the axes that vary, of each of these axes."
places(r::Repeated, axes) = Int[findfirst(==(d), r.varying) - 1 for d in axes]

"""
The array of the axes that vary; a number where none does. The factors are multiplied in the order
in which they were, since another may overflow."""
varying_part!(b::Builder, r::Repeated) = varying_part!(b, r, r.array)
varying_part!(::Builder, ::Repeated, a::Literal) = a
function varying_part!(b::Builder, r::Repeated, a::Var)
    e = r.definition(a)
    name(e.op) === :mul &&
        return emit(b, :mul, (varying_part!(b, r, x) for x in e.inputs)...)
    small = shape(r.array)[r.varying.+1]
    emit(b, :broadcast_in_dim, e.inputs[1]; shape = small, dims = places(r, e[:dims]))
end

function simplify(::ReduceSum, eqn, x, definition)
    single = reduced_single(eqn, x)
    single === nothing ? sum_of_repeated(eqn, x[1], definition) : single
end

"""
The sum of an array along axes along which it is the same: a multiple. The range is as it was: what
is summed first is no larger than the result."""
function sum_of_repeated(eqn, x, definition)
    r = repeated_product(x, definition)
    r === nothing && return nothing
    axes, full = eqn[:axes], shape(x)
    repeats = Dim[full[d+1] for d in axes if !(d in r.varying)]
    isstatic(repeats) || return nothing
    b = Builder(Equation[], eqn.source)
    product = varying_part!(b, r)
    summed = intersect(axes, r.varying)
    isempty(summed) || (product = emit(b, :reduce_sum, product; axes = places(r, summed)))
    count = prod(Int.(repeats))
    count == 1 || (product = emit(b, :mul, product, Literal(convert(dtype(x), count))))
    left = setdiff(0:length(full)-1, axes)
    emit(b, :broadcast_in_dim, product; shape = shape(eqn.outputs[1]),
        dims = [findfirst(==(d), left) - 1 for d in r.varying if !(d in axes)])
    binding_last(b, eqn)
end

# ---- matrix products with what is the same along some axes

function product_with_repeated(eqn, x, definition)
    all(a -> dtype(a) === dtype(eqn.outputs[1]), x) || return nothing
    for k in 1:2
        r = repeated_product(x[k], definition)
        r === nothing || !issubset(factor_axes(eqn, k).batch, r.varying) ||
            return product_with_repeated(eqn, r, k)
    end
    nothing
end

"""
A product one of whose factors, the k-th, is the same along some axes: the other factor is summed
along those that are contracted, and along the others the result is the same. A number multiplies
the other factor before that is summed, which may overflow without it."""
function product_with_repeated(eqn, r::Repeated, k)
    own, others, y = factor_axes(eqn, k), factor_axes(eqn, 3 - k), eqn.inputs[3-k]
    kept = [d in r.varying for d in own.contract]
    gone, left = others.contract[.!kept], axes_except(aval(y), others.contract[.!kept])
    b = Builder(Equation[], eqn.source)
    factor = varying_part!(b, r)
    isnumber = isscalar(factor)
    isnumber && (y = scaled!(b, factor, y))
    isempty(gone) || (y = emit(b, :reduce_sum, y; axes = sort(gone)))
    remaining(axes) = Int[findfirst(==(d), left) - 1 for d in axes]
    factors = (factor, y)
    contract = (places(r, own.contract[kept]), remaining(others.contract[kept]))
    batch = (places(r, own.batch), remaining(others.batch))
    order = k == 1 ? [1, 2] : [2, 1]
    in_order(pair) = pair[order]
    product = isnumber ? y :
        small_product!(b, eqn, in_order(factors), in_order(contract), in_order(batch))
    axes = repeated_axes(eqn, r, k)
    rank = ndims(aval(eqn.outputs[1]))
    emit(b, :broadcast_in_dim, product; shape = shape(eqn.outputs[1]),
        dims = setdiff(0:rank-1, axes))
    binding_last(b, eqn)
end

"The axes of a product that a factor has and along which it is the same."
function repeated_axes(eqn, r::Repeated, k)
    axes = axes_except(aval(r.array), factor_axes(eqn, k).contract)
    [at for (d, at) in zip(axes, result_axes(eqn, k)) if !(d in r.varying)]
end

function small_product!(b::Builder, eqn, factors, contract, batch)
    number = findfirst(isscalar, factors)
    number === nothing || return scaled!(b, factors[number], factors[3-number])
    emit(b, :dot_general, factors...; lhs_contract = contract[1], rhs_contract = contract[2],
        lhs_batch = batch[1], rhs_batch = batch[2], dtype = eqn[:dtype],
        precision = eqn[:precision])
end
scaled!(b::Builder, number::Literal, y::Atom) = emit(b, :mul, y, number)
scaled!(b::Builder, number::Var, y::Atom) =
    emit(b, :mul, spread_to(b, number, shape(y)), y)
