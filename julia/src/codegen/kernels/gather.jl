# gather: each element is read where its window starts.

isfusable(::Gather, eqn) = true
reads_elements(::Gather, eqn, k) = k == 2
cost(::Gather, eqn) = 3 + 2length(eqn[:start_index_map])

function element(op::Gather, n::Nest, eqn, slot, index)
    x, indices = eqn.inputs
    w = Windows(op, eqn.attrs)
    along = index[batch_axes(w, length(index)).+1]
    condition, position = window_start(n, w, sizes(x), indices, along; checked = w.mode === :fill)
    for (axis, i) in zip(extended(w), index[w.window.+1])
        position[axis+1] += i
    end
    T = dtype(x)
    fill_ = fill_value(T, eqn[:fill_value])
    condition === false ? fill_ : choose!(n, condition, element(n, x, position), fill_, T)
end

"""
    window_start(nest, w, operand_sizes, indices, along; checked) -> (condition, start)

Where the window at `along` (the axes of `indices` but its last) starts in the operand, moved
inside; and, if `checked`, whether that was needless, else `true`."""
function window_start(n::Nest, w::Windows, operand_sizes, indices::Atom, along; checked)
    # No window is read that does not fit in at all.
    room = max.(operand_sizes .- Int.(w.sizes), 0)
    position = [zero_index(n) for _ in operand_sizes]
    for (k, axis) in zip(w.batching, w.indices_batching)
        position[k+1] = along[axis+1]
    end
    starts = Affine[
        index_value(n, indices, vcat(along, [zero_index(n) + (j - 1)]))
        for j in eachindex(w.map)
    ]
    condition = true
    if checked
        condition, starts = inside(n, starts, room[w.map.+1] .+ 1)
    end
    for (axis, start) in zip(w.map, starts)
        position[axis+1] = clamped(n, start, 0, room[axis+1])
    end
    condition, position
end
