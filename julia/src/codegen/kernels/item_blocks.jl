# Loops over many independent items, as batches of loops are: a block of items makes all trips
# before the next one does, so that what a trip passes stays in the nearest cache, and threads share
# the blocks. The body is written for a block as if there were no more items. Stacks and results are
# views of the block's part of the whole arrays.

"How a loop's items are cut: `size` of all `items` make a block."
struct ItemBlocks
    items::Int
    size::Int
end

"""
How the items of a scan are cut into blocks, if it is work enough and there are items: each array of
the body has one axis for them at most, the only one of that size, and nothing joins the values of
several items."""
function item_blocks(g::Generator, e::Equation)
    splits_work(g.target) && !g.threaded || return nothing
    carried = operand_parts(e.attrs, e[:body].inputs)[2]
    for n in sort!(unique(Int[d for v in carried for d in shape(v)]); rev = true)
        n * e[:length] * length(e[:body].equations) >= WORTH_BLOCKS || return nothing
        # an array that all items share would be carried in the same memory by all threads
        all(v -> isscalar(v) || item_axis(v, n) !== nothing, carried) || continue
        size = block_size(n, carried, e[:body])
        n >= 2size && narrowed(e[:body], n, size) !== nothing && return ItemBlocks(n, size)
    end
    nothing
end

"Items of a block: as many as fit a cache, in blocks of nearly the same size, in whole vectors."
function block_size(n, carried, body::Program)
    # what is carried is there twice
    bytes_ = sum(Int[bytes(aval(v)) ÷ n for v in vcat(body.inputs, carried)
                     if item_axis(v, n) !== nothing])
    blocks = cld(n * bytes_, BLOCK_BYTES)
    8cld(cld(n, max(blocks, 1)), 8)
end

# ---- the body for fewer items

"The axis of the items, the only one of size n, or nothing."
function item_axis(v::Atom, n)
    axes = findall(==(n), shape(v))
    length(axes) == 1 ? axes[1] : nothing
end

"The Program for m items in place of n, or nothing where items depend on each other."
function narrowed(p::Program, n, m)
    vars = IdDict{Var,Var}()
    for v in Iterators.flatten((p.inputs, (u for e in p.equations for u in e.outputs)))
        count(==(n), shape(v)) <= 1 || return nothing
        vars[v] = Var(with_axis(aval(v), item_axis(v, n), m))
    end
    equations = Equation[]
    for e in p.equations
        attrs = keeps_items(e, n) ? with_items(e.op, e, n, m) : nothing
        attrs === nothing && return nothing
        push!(equations,
            with(e; inputs = Atom[a isa Var ? vars[a] : a for a in e.inputs],
                outputs = Var[vars[v] for v in e.outputs], attrs = attrs))
    end
    Program(p.name, Var[vars[v] for v in p.inputs], equations,
        Atom[a isa Var ? vars[a] : a for a in p.outputs])
end
"Whether the results have the axis of the items if an operand does."
keeps_items(e, n) =
    all(a -> isscalar(a) || item_axis(a, n) === nothing, e.inputs) ||
    all(v -> item_axis(v, n) !== nothing, e.outputs)

# ---- what primitives do to the axis of the items

with_items(::Union{Permute,Squeeze}, e, n, m) = e.attrs
with_items(::BroadcastInDim, e, n, m) = with_sizes(e, :shape, n, m)
with_items(::Iota, e, n, m) = e[:shape][e[:dim]+1] == n ? nothing : with_sizes(e, :shape, n, m)
with_items(op::Reshape, e, n, m) =
    isfusable(op, e) ? with_sizes(e, :shape, n, m) : nothing
with_items(::Concatenate, e, n, m) = other_axis(e, e[:dim], n)
with_items(::SplitAxis, e, n, m) = other_axis(e, e[:axis], n)
with_items(::Rev, e, n, m) =
    all(k -> other_axis(e, k, n) !== nothing, e[:dims]) ? e.attrs : nothing
with_items(::Reduction, e, n, m) =
    all(k -> other_axis(e, k, n) !== nothing, e[:axes]) ? e.attrs : nothing
with_items(::Slice, e, n, m) =
    same_axis(e, n) ? Attributes(e.attrs..., :limit => at_item_axis(e, n, e[:limit], m)) : nothing
with_items(::DynamicSlice, e, n, m) = same_axis(e, n) ? with_sizes(e, :sizes, n, m) : nothing
function with_items(op::Pad, e, n, m)
    axis = item_axis(e.outputs[1], n)
    moves = axis !== nothing && (e[:low][axis] != 0 || e[:high][axis] != 0)
    isfusable(op, e) && same_axis(e, n) && !moves ? e.attrs : nothing
end
with_items(::Constant, e, n, m) = item_axis(e.outputs[1], n) === nothing ? e.attrs : nothing

with_sizes(e, key, n, m) = Attributes(e.attrs..., key => Dim[d == n ? m : d for d in e[key]])
other_axis(e, axis, n) = shape(e.inputs[1])[axis+1] == n ? nothing : e.attrs
same_axis(e, n) = item_axis(e.inputs[1], n) === item_axis(e.outputs[1], n)
at_item_axis(e, n, list, m) =
    Dim[k === item_axis(e.inputs[1], n) ? m : d for (k, d) in enumerate(list)]

# ---- code

"Writes a scan block by block; threads share the blocks."
function emit_blocks!(s::Frame, e::Equation, b::ItemBlocks)
    g, blocks = s.generator, b.items ÷ b.size
    foreach(a -> isscalar(a) || materialize!(s, a), e.inputs)
    results = [memory!(s, v) for v in e.outputs]        # numbers, too: each block has the same
    write(first_, count) = emit_block!(s, e, results, b.items, first_, count)
    shared_loop!(k -> write(:($k * $(b.size)), b.size), g, blocks)
    rest = b.items % b.size
    rest == 0 || write(b.items - rest, rest)
end

"Writes the scan for `count` items from `first_` on."
function emit_block!(s::Frame, e, results, n, first_, count)
    g, from = s.generator, local!(s.generator, Int, first_)
    axes_in, axes_out = item_axes(e, n)
    inputs = Storage[part_of_items!(g, shared(s, a), axis, from, count)
                     for (a, axis) in zip(e.inputs, axes_in)]
    targets = Any[isscalar(v) ? nothing : part_of_items!(g, m, axis, from, count)
        for (v, m, axis) in zip(e.outputs, results, axes_out)]
    values = emit_program!(g, with_fewer_items(e, n, count), inputs, targets)
    for (v, m, y) in zip(e.outputs, results, values)
        isscalar(v) || continue
        emit_code!(g, :($(unsafe_store!)($(m.pointer), $(y isa Register ? y.symbol : y))))
    end
end

"A view of the part of an array that belongs to `count` items from `from` on."
part_of_items!(g::Generator, r::Register, axis, from, count) = r
function part_of_items!(g::Generator, m::Memory, axis, from, count)
    axis === nothing && return m
    T = m.type.dtype
    pointer = local!(g, Ptr{T}, :($(m.pointer) + $from * $(m.strides[axis] * sizeof(T))))
    Memory(pointer, with_axis(m.type, axis, count), false, m.strides)
end

"The scan as a Program of its own, for m items in place of n."
function with_fewer_items(e::Equation, n, m)
    few(atoms, axes) = Var[Var(with_axis(aval(a), axis, m)) for (a, axis) in zip(atoms, axes)]
    axes_in, axes_out = item_axes(e, n)
    inputs, outputs = few(e.inputs, axes_in), few(e.outputs, axes_out)
    scan = with(e; inputs = Atom[inputs...], outputs = outputs,
        attrs = Attributes(e.attrs..., :body => narrowed(e[:body], n, m)))
    Program("block", inputs, [scan], Atom[outputs...])
end

"The axes of the items in a scan's operands and results: stacks have the trips first."
function item_axes(e::Equation, n)
    body, stacks, carry = e[:body], e[:consts] + e[:carry], e[:carry]
    axis(v, isstack) = (k = item_axis(v, n); k === nothing ? k : k + isstack)
    ([axis(v, k > stacks) for (k, v) in enumerate(body.inputs)],
        [axis(v, k > carry) for (k, v) in enumerate(body.outputs)])
end
with_axis(type::TensorType, axis, m) =
    axis === nothing ? type :
    TensorType(type.dtype, Dim[k == axis ? m : d for (k, d) in enumerate(type.shape)])
