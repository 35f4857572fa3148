# Windows in arrays whose axes are in another order.

window_sizes(op::Gather, eqn, k) = k == 1 ? own_sizes(Windows(op, eqn.attrs)) : nothing
window_sizes(op::AnyScatter, eqn, k) = k == 1 ? own_sizes(Windows(op, eqn)) : nothing
window_sizes(::DynamicSlice, eqn, k) = k == 1 ? eqn[:sizes] : nothing
const UpdateAtStarts = Union{DynamicUpdateSlice,AddWindow}
window_sizes(::UpdateAtStarts, eqn, k) = k == 1 ? shape(eqn.inputs[2]) : nothing
# Along a batching axis, which has to stay in the order of the indices' axes, windows move.
own_sizes(w::Windows) = isempty(w.batching) ? w.sizes : nothing

in_order(w::Windows, order) =
    Windows(w.window, sort(moved_axes(order, w.collapsed)), moved_axes(order, w.map), w.batching,
        w.indices_batching, w.sizes[order.+1], w.mode)

"The axes of gathered windows, in terms of those of windows from an operand in that order."
function window_axes(w::Windows, order, rank)
    perm, along = collect(0:rank-1), order[extended(in_order(w, order)).+1]
    for (axis, operand_axis) in zip(w.window, extended(w))
        perm[axis+1] = w.window[findfirst(==(operand_axis), along)]
    end
    perm
end

function in_order(op::Gather, b::Builder, eqn, order, operand)
    w = Windows(op, eqn.attrs)
    v = in_order(w, order)
    attrs = merge(eqn.attrs, Attributes(:collapsed_slice_dims => v.collapsed,
        :start_index_map => v.map, :slice_sizes => v.sizes))
    y = only_one(emit!(b, op, Atom[operand, eqn.inputs[2]], attrs))
    emit(b, :transpose, y; perm = window_axes(w, order, ndims(aval(y))))
end

function in_order(op::AnyScatter, b::Builder, eqn, order, operand)
    w, u = Windows(op, eqn), eqn.inputs[3]
    v = in_order(w, order)
    updates = emit(b, :transpose, u; perm = inverse_perm(window_axes(w, order, ndims(aval(u)))))
    attrs = merge(eqn.attrs, Attributes(:inserted_window_dims => v.collapsed,
        :scatter_dims_to_operand_dims => v.map))
    only_one(emit!(b, op, Atom[operand, eqn.inputs[2], updates], attrs))
end

function in_order(op::DynamicSlice, b::Builder, eqn, order, operand)
    y = emit(b, :dynamic_slice, operand, eqn.inputs[2:end][order.+1]...;
        sizes = eqn[:sizes][order.+1])
    emit(b, :transpose, y; perm = inverse_perm(order))
end

function in_order(op::UpdateAtStarts, b::Builder, eqn, order, operand)
    update = emit(b, :transpose, eqn.inputs[2]; perm = order)
    inputs = vcat(Atom[operand, update], eqn.inputs[3:end][order.+1])
    v = Var(aval(operand))
    push!(b.equations, Equation(op, inputs, Var[v], eqn.attrs, b.source))
    v
end
