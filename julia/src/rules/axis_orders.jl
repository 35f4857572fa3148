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
