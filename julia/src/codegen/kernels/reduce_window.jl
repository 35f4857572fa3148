# Windowed reductions and selections.

"""
One axis along which windows slide, as routines see it: place p of `places` and position k of
`window` meet element (p · stride + k · dilation - low) / base of `elements`, if there is one.
Neighbours are so far apart in the results and in the operand."""
function sliding_axes(s::Slide, x_sizes, y_sizes)
    x_strides, y_strides = row_strides(x_sizes), row_strides(y_sizes)
    Tuple(
        Routines.Axis(y_sizes[k], Int(s.window[k]), x_sizes[k], s.strides[k], s.dilation[k],
            s.base[k], Int(s.low[k]), y_strides[k], x_strides[k])
        for k in eachindex(x_sizes)
    )
end

"The axes that windows do not move along, as the last ones of these; the others stay as they are."
function trailing_extent(axes)
    k = length(axes)
    while k > 0 && Routines.isplain(axes[k])
        k -= 1
    end
    axes[1:k], prod(Int[a.places for a in axes[k+1:end]])
end

function emit_step!(op::ReduceWindow, s::Frame, e)
    x, v = e.inputs[1], e.outputs[1]
    axes, inner = trailing_extent(sliding_axes(sliding(e.attrs), sizes(x), sizes(v)))
    A = accumulator(dtype(v))
    from = memory_of(s, x)
    into(m) = begin
        fill_memory!(s, m, neutral(op, A))
        any(==(0), sizes(v)) ||
        call!(s, Routines.reduce_windows!, combiner(op), m.pointer, from.pointer, axes, inner)
    end
    in_accumulators!(into, s, v, A)
end

"Runs `f(memory)` on the result's memory, or on wider memory which is then rounded."
function in_accumulators!(f, s::Frame, v::Var, A)
    A === dtype(v) && return f(memory!(s, v))
    with_memory(s, TensorType(A, shape(v))) do m
        f(m)
        narrow!(s, v, m)
    end
end

window_size(axes) = max(1, prod(Int[a.window for a in axes]))
prefers(select) = select === :ge ? (>=) : (<=)

function emit_step!(::SelectAndGather, s::Frame, e)
    values, x, v = e.inputs..., e.outputs[1]
    axes, inner = trailing_extent(sliding_axes(sliding(e.attrs), sizes(x), sizes(v)))
    from, keys, to = memory_of(s, values), memory_of(s, x), memory!(s, v)
    with_elements(s, Int, window_size(axes)) do offsets
        call!(s, Routines.select_and_gather!, prefers(e[:select]), to.pointer, from.pointer,
            keys.pointer, offsets, axes, inner, worst(e[:select], dtype(v)))
    end
end

function emit_step!(::SelectAndScatter, s::Frame, e)
    updates, x, v = e.inputs..., e.outputs[1]
    axes, inner = trailing_extent(sliding_axes(undilated(e.attrs), sizes(x), sizes(updates)))
    from, keys = memory_of(s, updates), memory_of(s, x)
    in_accumulators!(s, v, accumulator(dtype(v))) do m
        fill_memory!(s, m, zero(m.type.dtype))
        with_elements(s, Int, window_size(axes)) do offsets
            call!(s, Routines.select_and_scatter!, prefers(e[:select]), m.pointer, from.pointer,
                keys.pointer, offsets, axes, inner, worst(e[:select], dtype(v)))
        end
    end
end
