# Primitives that only move elements, and constants: one element at a time where nests can, else
# with code of their own.

isfusable(op::Union{BroadcastInDim,Squeeze,Permute,Rev,Slice,DynamicSlice,SplitAxis,Iota}, eqn) =
    true
element(::BroadcastInDim, n::Nest, eqn, slot, index) =
    element(n, eqn.inputs[1],
        Affine[
            m == 1 ? zero_index(n) : index[d+1]
            for (d, m) in zip(eqn[:dims], shape(eqn.inputs[1]))
        ])

function element(::Squeeze, n::Nest, eqn, slot, index)
    rest = Iterators.Stateful(index)
    element(n, eqn.inputs[1],
        Affine[
            k in eqn[:dims] ? zero_index(n) : popfirst!(rest)
            for k in 0:ndims(aval(eqn.inputs[1]))-1
        ])
end

isfusable(::Reshape, eqn) = same_but_ones(shape(eqn.inputs[1]), eqn[:shape])
function element(::Reshape, n::Nest, eqn, slot, index)
    rest = Iterators.Stateful(i for (i, m) in zip(index, eqn[:shape]) if m != 1)
    element(n, eqn.inputs[1],
        Affine[m == 1 ? zero_index(n) : popfirst!(rest) for m in shape(eqn.inputs[1])])
end
# Where elements cannot be computed one by one without divisions, the same memory
# under another type.
function emit_step!(::Reshape, s::Frame, e)
    v, x = e.outputs[1], e.inputs[1]
    m = storage(s, x)
    share_memory!(s, v, x)
    s.storages[v] = Memory(m.pointer, aval(v), m.owned)
end

element(::Permute, n::Nest, eqn, slot, index) =
    element(n, eqn.inputs[1], index[inverse_perm(eqn[:perm]).+1])
element(::Rev, n::Nest, eqn, slot, index) =
    element(n, eqn.inputs[1],
        Affine[
            k - 1 in eqn[:dims] ? i * -1 + (m - 1) : i
            for (k, (i, m)) in enumerate(zip(index, sizes(eqn.inputs[1])))
        ])
element(::Slice, n::Nest, eqn, slot, index) =
    element(n, eqn.inputs[1],
        Affine[
            i * stride + Int(start)
            for (i, stride, start) in zip(index, eqn[:strides], eqn[:start])
        ])

function element(::DynamicSlice, n::Nest, eqn, slot, index)
    x = eqn.inputs[1]
    starts = [
        clamped(n, index_value(n, a, Affine[]), 0, m - Int(w))
        for (a, m, w) in zip(eqn.inputs[2:end], sizes(x), eqn[:sizes])
    ]
    element(n, x, Affine[i + s for (i, s) in zip(index, starts)])
end

function element(::SplitAxis, n::Nest, eqn, slot, index)
    moved = copy(index)
    moved[eqn[:axis]+1] += sum(Int[Int(m) for m in eqn[:sizes][1:slot-1]])
    element(n, eqn.inputs[1], moved)
end

function element(::Iota, n::Nest, eqn, slot, index)
    T = dtype(eqn.outputs[1])
    apply!(n, Wrap{T}(), T, Any[position!(n, index[eqn[:dim]+1])])
end
struct Wrap{T} end
(::Wrap{T})(i) where {T} = T <: Integer ? i % T : ishalf(T) ? T(Float32(i)) : T(i)

isfusable(::Pad, eqn) = all(==(0), eqn[:interior])
cost(::Pad, eqn) = 3
function element(::Pad, n::Nest, eqn, slot, index)
    x, value = eqn.inputs
    element_or_else(n, x, index, eqn[:low]) do
        element(n, value, Affine[])
    end
end
"The element of an array that begins at `low`, and what `other()` gives outside of it."
function element_or_else(other, n::Nest, x, index, low)
    condition, safe = inside(n, Affine[i + -Int(l) for (i, l) in zip(index, low)], sizes(x))
    condition === false ? other() :
    choose!(n, condition, element(n, x, safe), other(), dtype(x))
end

# A padding between the elements is written: first the value everywhere, then the
# elements at their places.
reads_elements(::Pad, eqn, k) = true
function emit_step!(::Pad, s::Frame, e)
    x, v = e.inputs[1], e.outputs[1]
    m = memory!(s, v)
    strides, stride = row_strides(sizes(v)), Int[i + 1 for i in e[:interior]]
    emit_nest!(s, sizes(v),
        [
            Store(spread_scalar(s, e.inputs[2], aval(v)), m.pointer, dtype(v),
                memory_order(sizes(v)))
        ], Reduce[])
    ranges = [
        kept_by_pad(n, p, Int(low), i)
        for (n, p, low, i) in zip(sizes(x), sizes(v), e[:low], e[:interior])
    ]
    any(r -> isempty(r[1]), ranges) && return
    from, to = Int[first(r[1]) - 1 for r in ranges], Int[first(r[2]) - 1 for r in ranges]
    kept = window(s, x, from, Int[length(r[1]) for r in ranges])
    emit_nest!(s, sizes(kept),
        [Store(kept, m.pointer, dtype(v), Affine(strides .* stride, sum(strides .* to), []))],
        Reduce[])
end

# Parts of an equation that needs several nests, as variables computed where they are read.
"A window of an array."
window(s::Frame, x::Atom, start, n) =
    virtual!(s, :slice, x; start = start, limit = start .+ n, strides = ones(Int, length(n)))
"A rank-0 atom as an array."
spread_scalar(s::Frame, a::Atom, type::TensorType) =
    isempty(type.shape) ? a : virtual!(s, :broadcast_in_dim, a; shape = type.shape, dims = Int[])

reads_elements(::Concatenate, eqn, k) = true
writes_views(::Concatenate, eqn, k) = true
function emit_step!(::Concatenate, s::Frame, e)
    v, at = e.outputs[1], 0
    m = memory!(s, v)
    stride = m.strides
    for x in e.inputs
        emit_nest!(s, sizes(x),
            [Store(x, m.pointer, dtype(v), Affine(stride, at * stride[e[:dim]+1], []))], Reduce[])
        at += sizes(x)[e[:dim]+1]
    end
end

# A window at a fixed place that is most of the array: each element is of one or of the other.
isfusable(::DynamicUpdateSlice, eqn) =
    all(a -> a isa Literal, eqn.inputs[3:end]) &&
    size_of(shape(eqn.inputs[2])) >= LARGE_WINDOW * size_of(shape(eqn.inputs[1]))
reads_here(::DynamicUpdateSlice, k) = k == 1
cost(::DynamicUpdateSlice, eqn) = 3
function element(::DynamicUpdateSlice, n::Nest, eqn, slot, index)
    x, update = eqn.inputs
    room = sizes(x) .- sizes(update)
    starts = [clamp(Int(a.value), 0, r) for (a, r) in zip(eqn.inputs[3:end], room)]
    element_or_else(() -> element(n, x, index), n, update, index, starts)
end

reads_elements(op::DynamicUpdateSlice, eqn, k) = k > 1 || isfusable(op, eqn)
overwrites(op::DynamicUpdateSlice, eqn) = isfusable(op, eqn) ? 0 : 1
function emit_step!(::DynamicUpdateSlice, s::Frame, e)
    x, update, v = e.inputs[1], e.inputs[2], e.outputs[1]
    isscalar(v) && return define!(s, v, scalar(s, update))
    m = donated_memory!(s, v, x)
    at = window_position!(s, e.inputs[3:end], sizes(v), sizes(update))
    emit_nest!(s, sizes(update), [Store(update, m.pointer, dtype(v), at)], Reduce[])
end

"The position in memory of an element of a window, whose starts are clamped."
function window_position!(s::Frame, starts, whole, window)
    strides = row_strides(whole)
    at = Affine(copy(strides), 0, [])
    for (a, n, w, stride) in zip(starts, whole, window, strides)
        start = local!(s.generator, Int,
            :($(clamp_position)($(as_position)($(scalar(s, a))), 0, $(n - w))))
        stride == 0 || (at = at + Affine(zeros(Int, length(strides)), 0, [start => stride]))
    end
    at
end

# Small constants stand in the code, large ones in memory that the caller keeps alive.
function emit_step!(op::Constant, s::Frame, e)
    v = e.outputs[1]
    if haskey(e.attrs, :ref)
        data = pointer(stored_constant(e[:ref], aval(v)))
        return s.storages[v] = Memory(local!(s.generator, Ptr{dtype(v)}, data), aval(v), false)
    end
    values = vec(evaluate(op, Any[], e.attrs, [aval(v)])[1])
    isscalar(v) && return define!(s, v, values[1])
    m = memory!(s, v)
    for (k, value) in enumerate(values)
        emit_code!(s.generator, :($(unsafe_store!)($(m.pointer), $value, $k)))
    end
end

function emit_step!(op::DimSize, s::Frame, e)
    define!(s, e.outputs[1], evaluate(op, Any[], e.attrs, [aval(e.outputs[1])])[1][])
end
