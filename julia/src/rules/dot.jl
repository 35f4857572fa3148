# dot_general: products summed over contracted axes, for each position along batch axes. Bilinear.

@primitive DotGeneral dot_general(lhs_contract, rhs_contract, lhs_batch, rhs_batch, dtype,
    precision)

free_axes(type, contract, batch) = axes_except(type, vcat(contract, batch))

function infer(op::DotGeneral, types, attrs)
    x, y = types
    xc, yc, xb, yb = (attrs[:lhs_contract], attrs[:rhs_contract], attrs[:lhs_batch],
        attrs[:rhs_batch])
    check_axes(op, x, vcat(xc, xb))
    check_axes(op, y, vcat(yc, yb))
    x.shape[xc.+1] == y.shape[yc.+1] ||
        infer_error(op, "contracted axes of $(type_text(x)) and $(type_text(y)) differ")
    x.shape[xb.+1] == y.shape[yb.+1] ||
        infer_error(op, "batch axes of $(type_text(x)) and $(type_text(y)) differ")
    free = vcat(x.shape[free_axes(x, xc, xb).+1], y.shape[free_axes(y, yc, yb).+1])
    [TensorType(dtype_named(attrs[:dtype]), vcat(x.shape[xb.+1], free))]
end

# In memory (batch, free, contracted), which Julia sees as contracted × free × batch.
function evaluate(::DotGeneral, x, attrs, types)
    T = types[1].dtype
    A = T === Bool ? Int : accumulator(promote_type(T, eltype(x[1]), eltype(x[2])))
    l = arrange(A, x[1], attrs[:lhs_contract], attrs[:lhs_batch])
    r = arrange(A, x[2], attrs[:rhs_contract], attrs[:rhs_batch])
    y = Array{A}(undef, size(r, 2), size(l, 2), size(l, 3))
    for k in axes(y, 3)
        y[:, :, k] = LinearAlgebra.transpose(r[:, :, k]) * l[:, :, k]
    end
    [reshape(rounded(T, y), julia_size(types[1]))]
end

function arrange(A, x::Array, contract, batch)
    free = [k for k in 0:ndims(x)-1 if !(k in contract || k in batch)]
    extent(axes) = prod(Int[size(x, ndims(x) - k) for k in axes])
    reshape(permute_axes(convert(Array{A}, x), vcat(batch, free, contract)), extent(contract),
        extent(free), extent(batch))
end
rounded(T::DataType, y) = eltype(y) === T ? y : convert(Array{T}, map(converter(T), y))

jvp(op::DotGeneral, b, eqn, x, ẋ) = product_rule(op, b, eqn, x, ẋ)

"The forward rule of everything bilinear: ẏ = op(ẋ₁, x₂) + op(x₁, ẋ₂)."
function product_rule(op::Primitive, b, eqn, x, ẋ)
    y = emit!(b, op, x, eqn.attrs)
    product(l, r) =
        l === nothing || r === nothing ? nothing : emit!(b, op, Atom[l, r], eqn.attrs)[1]
    y, MaybeAtom[add_maybe(b, product(ẋ[1], x[2]), product(x[1], ẋ[2]))]
end

function transpose(::DotGeneral, b, eqn, ȳ, x)
    xc, yc, xb, yb = eqn[:lhs_contract], eqn[:rhs_contract], eqn[:lhs_batch], eqn[:rhs_batch]
    islinear(x[1]) ? [other_factor(b, eqn, ȳ[1], x[1], xc, xb, x[2], yc, yb, false), nothing] :
    [nothing, other_factor(b, eqn, ȳ[1], x[2], yc, yb, x[1], xc, xb, true)]
end

factor_axes(eqn, k) =
    (contract = eqn[(:lhs_contract, :rhs_contract)[k]], batch = eqn[(:lhs_batch, :rhs_batch)[k]])
free_axes(eqn::Equation, k) = free_axes(aval(eqn.inputs[k]), factor_axes(eqn, k)...)
"The attributes with other contracted and batch axes of the k-th factor."
with_factor_axes(eqn, k, contract, batch) =
    merge(eqn.attrs,
        Attributes((:lhs_contract, :rhs_contract)[k] => contract,
            (:lhs_batch, :rhs_batch)[k] => batch))

# A sum of factors takes less than a second product where each of their numbers takes part in many
# multiplications. It is rounded to their dtype, of which two numbers of half precision easily leave
# the range; of the others, only such as are over half of the largest number.
linear_slots(::DotGeneral, eqn) =
    Tuple(k for k in 1:2
          if dtype(eqn.inputs[k]) === dtype(eqn.outputs[1]) !== Float16 &&
             ismany(free_sizes(eqn, 3 - k)))
free_sizes(eqn, k) = shape(eqn.inputs[k])[free_axes(eqn, k).+1]
ismany(sizes) = isstatic(sizes) && prod(Int.(sizes)) >= MANY_MULTIPLICATIONS
const MANY_MULTIPLICATIONS = 8

"Batch, contracted and free axes, in this order."
function standard_axes(::DotGeneral, eqn, k)
    contract, batch = factor_axes(eqn, k)
    n, m = length(batch), length(contract)
    vcat(batch, contract, free_axes(eqn, k)),
    with_factor_axes(eqn, k, collect(n:n+m-1), collect(0:n-1))
end

"""
The cotangent of the linear factor `u` of a product with the known factor `v`: ȳ times `v`, summed
over `v`'s free axes. `second` says that `u` is the right operand. The product's axes are batch,
`u`'s free axes, then `v`'s contracted axes in their order in memory, and are brought into `u`'s
order.
"""
function other_factor(b, eqn, ȳ, u, u_contract, u_batch, v, v_contract, v_batch, second)
    u_free, v_free = (free_axes(aval(u), u_contract, u_batch),
        free_axes(aval(v), v_contract, v_batch))
    first_free = length(u_batch) + (second ? 0 : length(u_free))
    ȳ_free = collect(first_free:first_free+length(v_free)-1)
    product = emit(b, :dot_general, ȳ, v; lhs_contract = ȳ_free, rhs_contract = v_free,
        lhs_batch = collect(0:length(u_batch)-1), rhs_batch = v_batch, dtype = eqn[:dtype],
        precision = eqn[:precision])
    perm = inverse_perm(vcat(u_batch, u_free, u_contract[sortperm(v_contract)]))
    cast(b, issorted(perm) ? product : emit(b, :transpose, product; perm = perm), aval(u).dtype)
end

# A product that sums nothing is elementwise: a number times an array, or an outer product, as the
# transposes of inner products and of products with vectors are.
function flatten_call!(op::DotGeneral, b, e, x)
    y = aval(e.outputs[1])
    T = y.dtype
    (T === Bool || !all(a -> dtype(a) === T, x)) && return nothing
    all(isequal(1), shape(x[1])[e[:lhs_contract].+1]) || return nothing
    axes = result_axes(e, 1), result_axes(e, 2)
    all(issorted, axes) || return nothing
    contracted = (e[:lhs_contract], e[:rhs_contract])
    [emit(b, :mul, (factor(b, x[k], contracted[k], axes[k], y) for k in 1:2)...)]
end

"Where a product's result has the axes of its k-th factor that are not contracted."
function result_axes(eqn::Equation, k)
    contract, batch = factor_axes(eqn, k)
    axes = axes_except(aval(eqn.inputs[k]), contract)
    first_free = length(batch) + (k == 1 ? 0 : length(free_axes(eqn, 1)))
    [
        d in batch ? findfirst(==(d), batch) - 1 :
        first_free + count(j -> !(j in batch), filter(<(d), axes)) for d in axes
    ]
end
"The operand in the shape of the result, `axes` of which are its own."
function factor(b, x, contract, axes, y)
    x isa Literal && isscalar(x) && return x
    kept = shape(x)[axes_except(aval(x), contract).+1]
    isempty(contract) || (x = emit(b, :reshape, x; shape = kept, dims = nothing))
    length(axes) == ndims(y) ? x : emit(b, :broadcast_in_dim, x; shape = y.shape, dims = axes)
end

# The axes of all multiplications are those of the result and the contracted ones.
function elementwise_form(::DotGeneral, eqn)
    T, rank = dtype(eqn.outputs[1]), ndims(aval(eqn.outputs[1]))
    n = vcat(shape(eqn.outputs[1]), shape(eqn.inputs[1])[eqn[:lhs_contract].+1])
    isstatic(n) && !isempty(n) && isbinary(T) &&
        all(a -> a isa Var && dtype(a) === T, eqn.inputs) || return nothing
    b, longest = Builder(Equation[], eqn.source), argmax(Int.(n)) - 1
    order = vcat(longest, setdiff(0:length(n)-1, longest))
    product = emit(b, :mul, (spread_factor!(b, eqn, k, order, n[order.+1]) for k in 1:2)...)
    total = emit(b, :reduce_sum, product; axes = findall(>=(rank), order) .- 1)
    emit(b, :transpose, total; perm = inverse_perm(filter(<(rank), order)))
    binding_last(b, eqn)
end
"The k-th factor in the shape of all multiplications, whose axes are in that order."
function spread_factor!(b::Builder, eqn, k, order, n)
    x, contract = eqn.inputs[k], factor_axes(eqn, k).contract
    axes = zeros(Int, ndims(aval(x)))
    axes[axes_except(aval(x), contract).+1] = result_axes(eqn, k)
    axes[contract.+1] = ndims(aval(eqn.outputs[1])) .+ (0:length(contract)-1)
    at = moved_axes(order, axes)
    emit(b, :broadcast_in_dim, emit(b, :transpose, x; perm = sortperm(at) .- 1);
        shape = n, dims = sort(at))
end

# A product reads its operands fastest where the matrices of the batch lie
# together, each on its own.
function wanted_layout(::DotGeneral, e, k)
    batch = e[(:lhs_batch, :rhs_batch)[k]]
    vcat(batch, axes_except(aval(e.inputs[k]), batch))
end
function with_layouts(::DotGeneral, e, orders, transposed)
    x, y = e.inputs
    place(a, axes) = haskey(transposed, a) ? moved_axes(orders[a], axes) : axes
    with(e; inputs = Atom[get(transposed, x, x), get(transposed, y, y)],
        attrs = merge(e.attrs,
            Attributes(:lhs_contract => place(x, e[:lhs_contract]),
                :lhs_batch => place(x, e[:lhs_batch]), :rhs_contract => place(y, e[:rhs_contract]),
                :rhs_batch => place(y, e[:rhs_batch]))))
end
