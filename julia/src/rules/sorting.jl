# Sorting and selection by order.
#
# sort: the operands sorted together along an axis, by the first `num_keys` of them in
# lexicographic order.

@primitive Sort sort(dim, stable, num_keys)

function infer(op::Sort, types, attrs)
    isempty(types) && infer_error(op, "needs an operand")
    check_axis(op, types[1], attrs[:dim])
    all(t -> t.shape == types[1].shape, types) ||
        infer_error(op, "operands have different shapes: $(join(map(type_text, types), ", "))")
    1 <= attrs[:num_keys] <= length(types) ||
        infer_error(op, "$(attrs[:num_keys]) keys among $(length(types)) operands")
    types
end

# JAX's order: -0.0 equals 0.0, NaN comes last, complex numbers go by real, then imaginary part.
precedes(a, b) = a < b
precedes(a::AbstractFloat, b::AbstractFloat) = isnan(b) ? !isnan(a) : a < b
precedes(a::Complex, b::Complex) =
    precedes(real(a), real(b)) || (!precedes(real(b), real(a)) && precedes(imag(a), imag(b)))

function evaluate(::Sort, x, attrs, types)
    sources = [threefold(v, attrs[:dim]) for v in x]
    y = [uninitialized(t) for t in types]
    targets = [threefold(v, attrs[:dim]) for v in y]
    for i in axes(sources[1], 1), k in axes(sources[1], 3)
        order = sorting_permutation([source[i, :, k] for source in sources[1:attrs[:num_keys]]])
        for (source, target) in zip(sources, targets)
            target[i, :, k] = source[i, order, k]
        end
    end
    y
end

# Stable always: that is one of the orders an unstable sort may give.
sorting_permutation(keys) =
    sort(collect(eachindex(keys[1])); alg = MergeSort, lt = (i, j) -> before(keys, i, j))
function before(keys, i, j)
    for key in keys
        precedes(key[i], key[j]) && return true
        precedes(key[j], key[i]) && return false
    end
    false
end

# Tangents go where their elements went.
function jvp(op::Sort, b, eqn, x, ẋ)
    dim, type = eqn[:dim], aval(x[1])
    position = iota(b, index_dtype(type.shape[dim+1]), type.shape, dim)
    sorted = emit!(b, op, vcat(x, position), eqn.attrs)
    order = pop!(sorted)
    taken(t) = t === nothing ? nothing : take_along(b, t, order, dim; unique = true)
    sorted, MaybeAtom[taken(t) for t in ẋ]
end

# top_k: the k greatest elements along an axis, greatest first, and where they stand; the earlier of
# equals first.

@primitive TopK top_k(k, axis)

function infer(op::TopK, types, attrs)
    x, k, axis = types[1], attrs[:k], attrs[:axis]
    check_axis(op, x, axis)
    iscomplex(x.dtype) && infer_error(op, "does not take $(type_text(x))")
    below(k, 0) || below(x.shape[axis+1], k) ?
    infer_error(op, "there are no $k elements along axis $axis of $(type_text(x))") : nothing
    shape = copy(x.shape)
    shape[axis+1] = k
    [TensorType(x.dtype, shape), TensorType(Int32, shape)]
end

# XLA's total order: -NaN < -Inf … -0.0 < 0.0 … Inf < NaN; the bits of negative
# floats count backwards.
total_order(x) = x
function total_order(x::AbstractFloat)
    bits = reinterpret(signed(unsigned_of(typeof(x))), x)
    bits < 0 ? xor(bits, typemax(bits)) : bits
end

function evaluate(::TopK, x, attrs, types)
    y = [uninitialized(t) for t in types]
    source, values, places = (threefold(x[1], attrs[:axis]), threefold(y[1], attrs[:axis]),
        threefold(y[2], attrs[:axis]))
    for i in axes(source, 1), j in axes(source, 3)
        order = sortperm(total_order.(source[i, :, j]); alg = MergeSort,
            rev = true)[1:size(values, 2)]
        values[i, :, j] = source[i, order, j]
        places[i, :, j] = order .- 1
    end
    y
end

function jvp(op::TopK, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    y, MaybeAtom[take_along(b, ẋ[1], y[2], eqn[:axis]; unique = true), nothing]
end
