# conv_general_dilated.

"How a convolution's arrays lie in memory."
function conv_layout(e)
    x, w, v = e.inputs..., e.outputs[1]
    lhs, rhs, out = e[:lhs_spec], e[:rhs_spec], e[:out_spec]
    at(a, axis) = (sizes(a)[axis+1], row_strides(sizes(a))[axis+1])
    (batch, y_batch), (features, x_features) = at(v, out[1]), at(x, lhs[2])
    (made, y_made), (taken, w_features), w_made = at(v, out[2]), at(w, rhs[2]), at(w, rhs[1])[2]
    x_batch = at(x, lhs[1])[2]
    groups = max(e[:feature_groups], e[:batch_groups])
    each = made ÷ groups
    x_group = e[:batch_groups] > 1 ? batch * x_batch : taken * x_features
    space, s = Routines.Axis[], slide(e.attrs, shape(w))
    for k in 1:length(lhs)-2
        (n, x_step), (m, y_step) = at(x, lhs[k+2]), at(v, out[k+2])
        push!(space, Routines.Axis(m, Int(s.window[k]), n, s.strides[k], s.dilation[k], s.base[k], Int(s.low[k]), y_step, x_step))
    end
    w_space = Tuple(Int[at(w, axis)[2] for axis in rhs[3:end]])
    Routines.Layout(Tuple(space), w_space, (batch, x_batch, y_batch), (groups, x_group, each * w_made, each * y_made),
                    (taken, x_features, w_features), (each, w_made, y_made))
end

function emit_step!(::Convolution, s::Frame, e)
    x, w, v = e.inputs..., e.outputs[1]
    l, A = conv_layout(e), accumulator(dtype(v) === Bool ? Int : promote_type(dtype(v), dtype(x)))
    from, weights = memory_of(s, x), memory_of(s, w)
    in_accumulators!(s, v, A) do m
        fill_memory!(s, m, zero(A))
        any(==(0), sizes(v)) || any(==(0), sizes(w)) || call!(s, Routines.convolve!, m.pointer, from.pointer, weights.pointer, l, along_features(l))
    end
end

"Whether the innermost loop runs over output features."
along_features(l) = isempty(l.space) || (l.made[3] == 1 && l.made[1] > 1)
