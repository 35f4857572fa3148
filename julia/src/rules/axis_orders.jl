# Equations on arrays whose axes are in another order.

function with_axes(::BroadcastInDim, eqn, order, given)
    at = moved_axes(order, eqn[:dims])
    Attributes(:shape => eqn[:shape][order.+1], :dims => sort(at)), [sortperm(at) .- 1]
end

# Axes that the result does not have stay where they are in the given order, or come first.
lost_axes(::Reduction) = :axes
lost_axes(::Squeeze) = :dims
function with_axes(op::Union{Reduction,Squeeze}, eqn, order, given)
    attribute = lost_axes(op)
    gone = eqn[attribute]
    kept = axes_except(aval(eqn.inputs[1]), gone)[order.+1]
    from = filter(k -> k in kept, given[1]) == kept ? given[1] : vcat(gone, kept)
    Attributes(attribute => sort(moved_axes(from, gone))), [from]
end

# Axes of size 1 come first.
function with_axes(::Reshape, eqn, order, given)
    from, to = shape(eqn.inputs[1]), eqn[:shape]
    same_but_ones(from, to) || return nothing
    ones_, others = findall(==(1), from) .- 1, findall(!=(1), from) .- 1
    moved = order[to[order.+1].!=1]
    Attributes(:shape => to[order.+1]), [vcat(ones_, others[sortperm(sortperm(moved))])]
end

with_axes(::Concatenate, eqn, order, given) =
    Attributes(:dim => only_one(moved_axes(order, eqn[:dim]))), [order for _ in eqn.inputs]
with_axes(::Rev, eqn, order, given) = Attributes(:dims => moved_axes(order, eqn[:dims])), [order]
with_axes(::Slice, eqn, order, given) = axis_by_axis(eqn, order), [order]
with_axes(::Pad, eqn, order, given) = axis_by_axis(eqn, order), [order, Int[]]
"The attributes of which each has an entry for each axis."
axis_by_axis(eqn, order) = Attributes(k => eqn[k][order.+1] for k in attributes(eqn.op))

# Windows are read and written wherever they lie, so that the operand of a gather has any order: its
# axes in a window, alone, have to follow each other as they do in the gathered array.
function with_axes(op::Gather, eqn, order, given)
    w = Windows(op, eqn.attrs)
    operand = in_sequence(given[1], partners(order, w.window, extended(w)))
    indices = order_along(w, order)
    merge(eqn.attrs, placement(op, moved(w, operand, indices, order))), [operand, indices]
end
function with_axes(op::AnyScatter, eqn, order, given)
    w = Windows(op, eqn)
    updates = in_sequence(given[3], partners(order, extended(w), w.window))
    indices = order_along(w, updates)
    merge(eqn.attrs, placement(op, moved(w, order, indices, updates))), [order, indices, updates]
end
"The axes other than those in `axes`, in the order in which `order` has these."
partners(order, axes, others) = others[indexin(filter(in(axes), order), axes)]
"The order in which the axes in `sequence` take each other's places, to follow each other so."
function in_sequence(order, sequence)
    following = Iterators.Stateful(sequence)
    Int[k in sequence ? popfirst!(following) : k for k in order]
end
"The order of the indices' axes where a gathered array has that order."
function order_along(w::Windows, order)
    along = batch_axes(w, length(order))
    vcat(partners(order, along, eachindex(along) .- 1), length(along))
end
"The windows where operand, indices and gathered array have their axes in these orders."
function moved(w::Windows, operand, indices, array)
    batching = moved_axes(operand, w.batching)
    pairs = sortperm(batching)
    Windows(sort(moved_axes(array, w.window)), sort(moved_axes(operand, w.collapsed)),
        moved_axes(operand, w.map), batching[pairs],
        moved_axes(indices, w.indices_batching)[pairs], w.sizes[operand.+1], w.mode)
end
