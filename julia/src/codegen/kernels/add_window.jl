# add_window: the small array is added to its part of the large one, in place where nobody else
# needs that.

function emit_step!(op::AddWindow, s::Frame, e)
    x, u, v = e.inputs[1], e.inputs[2], e.outputs[1]
    m, n = donated_memory!(s, v, x), sizes(u)
    at = window_position!(s, e.inputs[3:end], sizes(v), n)
    emit_nest!(s, n, Store[],
        [Reduce(u, primitive(:reduce_sum), dtype(v), falses(length(n)), m.pointer, at, :none)])
end
