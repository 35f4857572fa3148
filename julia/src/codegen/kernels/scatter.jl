# Scatters: the updates one window after another, since windows may overlap.

reads_elements(::AnyScatter, eqn, k) = k > 1
overwrites(::AnyScatter, eqn) = 1
function reads_in_turn(op::AnyScatter, eqn)
    w, n = Windows(op, eqn), sizes(eqn.inputs[3])
    isempty(w.window) || n[w.window[end]+1] <= LONGEST_SHORT_ROW
end

function emit_step!(op::AnyScatter, s::Frame, e)
    x, indices, updates, v = e.inputs..., e.outputs[1]
    m = donated_memory!(s, v, x)
    any(==(0), sizes(updates)) ||
        scatter_windows!(op, s, m, Windows(op, e), sizes(x), indices, updates)
end

function scatter_windows!(@nospecialize(op), s::Frame, m::Memory, w::Windows, operand_sizes,
    indices::Atom, updates::Atom)
    g, n, strides = s.generator, sizes(updates), row_strides(operand_sizes)
    along, order = batch_axes(w, length(n)), vcat(batch_axes(w, length(n)), w.window)
    batch, window = n[along.+1], n[w.window.+1]
    any(w.sizes[k+1] > operand_sizes[k+1] for k in eachindex(w.sizes) .- 1) && return
    nested_loops!(g, batch) do outer
        nest = Nest(s, batch)
        condition, start = window_start(nest, w, operand_sizes, indices, identity_index(nest);
            checked = w.mode !== :clip)
        condition === false && return
        write_point!(g, RowPart(0:0, nest.steps, [], []), Store[], Reduce[], outer)
        base = local!(g, Int, expression(linear(start, strides, length(batch)), outer))
        part = update_part(s, updates, n[order.+1], sortperm(order))
        rows, row = window[1:max(end - 1, 0)], window[max(end, 1):end]
        body = block(g) do
            nested_loops!(g, rows) do inner
                combine_row!(op, g, m, part, row, strides[extended(w).+1], base, outer, inner)
            end
        end
        emit_code!(g, condition === true ? body : Expr(:if, condition, body))
    end
end

"What computes an element of the updates, whose axes are those of the domain in another order."
function update_part(s::Frame, updates, domain, places)
    nest = Nest(s, domain)
    value = element(nest, updates, identity_index(nest)[places])
    RowPart(0:0, nest.steps, [value], [])
end

"""
Combines a row of the updates with the operand's, or one element of them where a window has no axes.
What is the same in all of the row is computed once, as where other rows are read by index."""
function combine_row!(op, g, m::Memory, part, row, strides, base, outer, inner)
    fixed, part = isempty(row) ? (Tuple[], part) : along_row(part)
    write_steps!(g, fixed, vcat(outer, inner))
    nested_loops!(g, row; vector = true) do last
        window = vcat(inner, last)
        write_point!(g, part, Store[], Reduce[], vcat(outer, window))
        at = local!(g, Int, expression(Affine(strides, 1, [base => 1]), window))
        value = only(part.stores)
        update_element!(g, m.pointer, at) do old
            new = :($(combiner(op))($(working)($old), $(working)($value)))
            :($(stored)($(m.type.dtype), $new))
        end
    end
end

"Loops over all positions of an array; `vector`: the last in any order."
function nested_loops!(@nospecialize(f), g::Generator, sizes; vector = false, variables = Any[])
    k = length(variables) + 1
    k > length(sizes) && return f(variables)
    sizes[k] == 1 &&
        return nested_loops!(f, g, sizes; vector = vector, variables = Any[variables..., 0])
    loop = vector && k == length(sizes) ? vector_loop! : counted_loop!
    loop(g, sizes[k]) do i
        nested_loops!(f, g, sizes; vector = vector, variables = Any[variables..., i])
    end
end
