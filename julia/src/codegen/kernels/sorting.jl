# argmax, argmin, sort, top_k.

function emit_step!(op::ArgExtremum, s::Frame, e)
    x, v = e.inputs[1], e.outputs[1]
    before, along, after = around_axis(aval(x), e[:axis])
    from, to = memory_of(s, x), memory!(s, v)
    with_memory(s, TensorType(dtype(x), [after])) do best
        call!(s, Routines.arg_extremum!, beats(op), to.pointer, from.pointer, best.pointer, before,
            along, after)
    end
end

"A pointer to n elements of any type in the workspace, while `f` writes code."
function with_elements(f, s::Frame, T::DataType, n)
    part = allocate!(s.generator.arena, n * sizeof(T))
    f(pointer_at!(s.generator, T, part))
    release!(s.generator.arena, part)
end

function emit_step!(::Sort, s::Frame, e)
    sizes_ = around_axis(aval(e.inputs[1]), e[:dim])
    from, to = ([memory_of(s, x).pointer for x in e.inputs],
        [memory!(s, v).pointer for v in e.outputs])
    alone = length(from) == 1
    T =
        alone ? dtype(e.inputs[1]) :
        Routines.Item{Tuple{(dtype(x) for x in e.inputs[1:e[:num_keys]])...}}
    with_elements(s, T, sizes_[2]) do line
        with_elements(s, T, sizes_[2]) do spare
            alone ? call!(s, Routines.sort_lines!, to[1], from[1], line, spare, sizes_...) :
            call!(s, Routines.sort_together!, tuple_of(to...), tuple_of(from...),
                tuple_of(from[1:e[:num_keys]]...), line, spare, sizes_...)
        end
    end
end

function emit_step!(::TopK, s::Frame, e)
    x, (values, places) = e.inputs[1], e.outputs
    from, to, at = memory_of(s, x), memory!(s, values), memory!(s, places)
    before, along, after = around_axis(aval(x), e[:axis])
    T = Routines.Item{typeof(total_order(zero(dtype(x))))}
    with_elements(s, T, along) do items
        with_elements(s, T, along) do spare
            call!(s, Routines.top_lines!, to.pointer, at.pointer, from.pointer, items, spare,
                before, along, after, Int(e[:k]))
        end
    end
end
