# Elementwise primitives, and those that only move elements, one element at a time.

isfusable(op::Elementwise, eqn) = true
ispointwise(op::Elementwise) = true
cost(op::Elementwise, eqn) = get(COSTS, name(op), 1)

# In additions, roughly.
const COSTS = Dict{Symbol,Int}(
    :div => 4, :sqrt => 4, :rsqrt => 4, :rem => 8, :exp => 10, :exp2 => 10, :log => 10, :log2 => 10, :log1p => 12, :expm1 => 12, :tanh => 14, :logistic => 12,
    :sin => 14, :cos => 14, :tan => 20, :asin => 12, :acos => 12, :atan => 12, :atan2 => 16, :sinh => 14, :cosh => 14, :asinh => 16,
    :acosh => 16, :atanh => 16, :cbrt => 12, :pow => 24, :erf => 14, :erfc => 20, :erf_inv => 40, :lgamma => 60, :digamma => 60,
    :polygamma => 200, :zeta => 200, :igamma => 200, :igammac => 200, :igamma_grad_a => 400, :regularized_incomplete_beta => 200, :bessel_i0e => 30, :bessel_i1e => 30)

function element(op::Elementwise, n::Nest, eqn, slot, index)
    operands = Any[pointwise(n, a, index) for a in eqn.inputs]
    f, T = kernel(op, eqn.attrs), dtype(eqn.outputs[1])
    half = any(ishalf(dtype(a)) for a in eqn.inputs) && !works_on_bits(op)
    half ? apply!(n, Widened(f), T, operands...) : calculate!(n, f, T, operands...)
end

"What computes f(operands...); small powers are products, which the compiler has less to say to."
calculate!(n::Nest, f, T, operands...) = apply!(n, f, T, operands...)
calculate!(n::Nest, ::IntegerPower{2}, T, x) = apply!(n, *, T, x, x)
calculate!(n::Nest, f::IntegerPower{3}, T, x) = apply!(n, *, T, calculate!(n, IntegerPower{2}(), T, x), x)

"A function of numbers for half precision: computed in single."
struct Widened{F}
    f::F
end
# Were it not inlined, a call of a function of any number of arguments would box them.
@inline (w::Widened)(x...) = w.f(map(working, x)...)
ishalf(T) = T === Float16 || T === BFloat16

isfusable(op::Union{BroadcastInDim,Squeeze,Permute,Rev,Slice,DynamicSlice,SplitAxis,Iota}, eqn) = true
element(::BroadcastInDim, n::Nest, eqn, slot, index) =
    element(n, eqn.inputs[1], Affine[m == 1 ? zero_index(n) : index[d+1] for (d, m) in zip(eqn[:dims], shape(eqn.inputs[1]))])

function element(::Squeeze, n::Nest, eqn, slot, index)
    rest = Iterators.Stateful(index)
    element(n, eqn.inputs[1], Affine[k in eqn[:dims] ? zero_index(n) : popfirst!(rest) for k in 0:ndims(aval(eqn.inputs[1]))-1])
end

"Whether two shapes differ in axes of size 1 alone."
same_but_ones(a, b) = [n for n in a if n != 1] == [n for n in b if n != 1]
isfusable(::Reshape, eqn) = same_but_ones(shape(eqn.inputs[1]), eqn[:shape])
function element(::Reshape, n::Nest, eqn, slot, index)
    rest = Iterators.Stateful(i for (i, m) in zip(index, eqn[:shape]) if m != 1)
    element(n, eqn.inputs[1], Affine[m == 1 ? zero_index(n) : popfirst!(rest) for m in shape(eqn.inputs[1])])
end

element(::Permute, n::Nest, eqn, slot, index) = element(n, eqn.inputs[1], index[inverse_perm(eqn[:perm]).+1])
element(::Rev, n::Nest, eqn, slot, index) =
    element(n, eqn.inputs[1], Affine[k - 1 in eqn[:dims] ? i * -1 + (m - 1) : i for (k, (i, m)) in enumerate(zip(index, sizes(eqn.inputs[1])))])
element(::Slice, n::Nest, eqn, slot, index) =
    element(n, eqn.inputs[1], Affine[i * stride + Int(start) for (i, stride, start) in zip(index, eqn[:strides], eqn[:start])])

function element(::DynamicSlice, n::Nest, eqn, slot, index)
    x = eqn.inputs[1]
    starts = [clamped(n, index_value(n, a, Affine[]), 0, m - Int(w)) for (a, m, w) in zip(eqn.inputs[2:end], sizes(x), eqn[:sizes])]
    element(n, x, Affine[i + s for (i, s) in zip(index, starts)])
end

function element(::SplitAxis, n::Nest, eqn, slot, index)
    moved = copy(index)
    moved[eqn[:axis]+1] += sum(Int[Int(m) for m in eqn[:sizes][1:slot-1]])
    element(n, eqn.inputs[1], moved)
end

function element(::Iota, n::Nest, eqn, slot, index)
    T = dtype(eqn.outputs[1])
    apply!(n, Wrap{T}(), T, position!(n, index[eqn[:dim]+1]))
end
struct Wrap{T} end
(::Wrap{T})(i) where {T} = T <: Integer ? i % T : ishalf(T) ? T(Float32(i)) : T(i)

isfusable(::Pad, eqn) = all(==(0), eqn[:interior])
cost(::Pad, eqn) = 3
function element(::Pad, n::Nest, eqn, slot, index)
    x, value = eqn.inputs
    condition, safe = inside(n, Affine[i + -Int(low) for (i, low) in zip(index, eqn[:low])], sizes(x))
    condition === false && return element(n, value, Affine[])
    choose!(n, condition, element(n, x, safe), element(n, value, Affine[]), dtype(x))
end

# A padding between the elements is written: first the value everywhere, then the elements at their places.
reads_elements(::Pad, eqn, k) = true
function emit_step!(::Pad, s::Frame, e)
    x, v = e.inputs[1], e.outputs[1]
    m = memory!(s, v)
    strides, stride = row_strides(sizes(v)), Int[i + 1 for i in e[:interior]]
    emit_nest!(s, sizes(v), [Store(spread_scalar(s, e.inputs[2], aval(v)), m.pointer, dtype(v), memory_order(sizes(v)))], Reduce[])
    ranges = [kept_by_pad(n, p, Int(low), i) for (n, p, low, i) in zip(sizes(x), sizes(v), e[:low], e[:interior])]
    any(r -> isempty(r[1]), ranges) && return
    from, to = Int[first(r[1]) - 1 for r in ranges], Int[first(r[2]) - 1 for r in ranges]
    kept = window(s, x, from, Int[length(r[1]) for r in ranges])
    emit_nest!(s, sizes(kept), [Store(kept, m.pointer, dtype(v), Affine(strides .* stride, sum(strides .* to), []))], Reduce[])
end

# Parts of an equation that needs several nests, as variables computed where they are read.
"A window of an array."
window(s::Frame, x::Atom, start, n) =
    virtual!(s, :slice, x; start = start, limit = start .+ n, strides = ones(Int, length(n)))
"A rank-0 atom as an array."
spread_scalar(s::Frame, a::Atom, type::TensorType) = isempty(type.shape) ? a : virtual!(s, :broadcast_in_dim, a; shape = type.shape, dims = Int[])

function virtual!(s::Frame, op::Symbol, x::Atom; attrs...)
    b = Builder()
    v = emit(b, op, x; attrs...)
    s.storages[v] = Virtual(b.equations[1], 1)
    v
end

reads_elements(::Concatenate, eqn, k) = true
function emit_step!(::Concatenate, s::Frame, e)
    v, at = e.outputs[1], 0
    m, stride = memory!(s, v), row_strides(sizes(v))
    for x in e.inputs
        emit_nest!(s, sizes(x), [Store(x, m.pointer, dtype(v), Affine(stride, at * stride[e[:dim]+1], []))], Reduce[])
        at += sizes(x)[e[:dim]+1]
    end
end

reads_elements(::DynamicUpdateSlice, eqn, k) = k > 1
overwrites(::DynamicUpdateSlice, eqn) = 1
function emit_step!(::DynamicUpdateSlice, s::Frame, e)
    x, update, v = e.inputs[1], e.inputs[2], e.outputs[1]
    isscalar(v) && return define!(s, v, scalar(s, update))
    m, strides = taken_over!(s, v, x), row_strides(sizes(v))
    at = Affine(strides, 0, [])
    for (a, n, w, stride) in zip(e.inputs[3:end], sizes(v), sizes(update), strides)
        start = local!(s.generator, Int, :($(clamp_position)($(as_position)($(scalar(s, a))), 0, $(n - w))))
        stride == 0 || (at = at + Affine(zeros(Int, length(strides)), 0, [start => stride]))
    end
    emit_nest!(s, sizes(update), [Store(update, m.pointer, dtype(v), at)], Reduce[])
end

# Small constants stand in the code, large ones in memory that the caller keeps alive.
function emit_step!(op::Constant, s::Frame, e)
    v = e.outputs[1]
    values = vec(evaluate(op, Any[], e.attrs, [aval(v)])[1])
    haskey(e.attrs, :ref) && return s.storages[v] = Memory(local!(s.generator, Ptr{dtype(v)}, pointer(values)), aval(v), false)
    isscalar(v) && return define!(s, v, values[1])
    m = memory!(s, v)
    for (k, value) in enumerate(values)
        emit_code!(s.generator, :($(unsafe_store!)($(m.pointer), $value, $k)))
    end
end

function emit_step!(op::DimSize, s::Frame, e)
    define!(s, e.outputs[1], evaluate(op, Any[], e.attrs, [aval(e.outputs[1])])[1][])
end
