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
        body = block(g) do
            nested_loops!(g, window; vector = true) do inner
                combine_update!(op, s, m, updates, n[order.+1], sortperm(order),
                    strides[extended(w).+1], base, outer, inner)
            end
        end
        emit_code!(g, condition === true ? body : Expr(:if, condition, body))
    end
end

"""
Combines one element of the updates, at (outer…, inner…) of the axes in another order,
with the operand's."""
function combine_update!(op, s::Frame, m::Memory, updates, domain, places, strides, base,
    outer, inner)
    g, nest = s.generator, Nest(s, domain)
    value = element(nest, updates, identity_index(nest)[places])
    write_point!(g, RowPart(0:0, nest.steps, [value], []), Store[], Reduce[], vcat(outer, inner))
    at = local!(g, Int, expression(Affine(strides, 1, [base => 1]), inner))
    f, T = combiner(op), m.type.dtype
    emit_code!(g,
        :($(unsafe_store!)($(m.pointer),
            $(stored)($T, $f($(working)($(unsafe_load)($(m.pointer), $at)), $(working)($value))),
            $at)))
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
