# Arrays of structures as structures of arrays: of many short rows, [many, 3], few long ones are
# made, [3, many]. Vectors lie along a row, and where a loop nest cannot pass rows as one, since a
# sum is along three numbers or three numbers are multiplied by one, there is no vector in three.

"""
    structures_of_arrays(program) -> Program

The same Program, in which arrays of short rows have the axis of the rows first, where more nests
stop at the ends of rows than arrays are transposed for it. Loops carry and stack them so."""
structures_of_arrays(p::Program) = reordered(p, false)[1]

rows_first(v::Var) = (k = own_order(v); vcat(k[end], k[1:end-1]))
has_short_rows(a::Atom) = a isa Var && isstatic(shape(a)) && ndims(aval(a)) > 1 &&
    1 < shape(a)[end] <= LONGEST_SHORT_ROW && shape(a)[end-1] > shape(a)[end]

"""
The Program with arrays of short rows in the other order, its inputs and results too where it
is `open`, and the orders of these. `carried`: inputs that the first results have to be like."""
function reordered(p::Program, open, carried = Var[])
    loops = IdDict{Equation,Any}(
        e => structures_of_arrays(e.op, e) for e in p.equations if hasbodies(e)
    )
    orders = worth_reordering(p, loops, open, zip(carried, p.outputs))
    orders_of(atoms) = Any[open ? order_in(orders, a) : own_order(a) for a in atoms]
    from = orders_of(p.inputs)
    to = vcat(orders_of(carried), orders_of(p.outputs[length(carried)+1:end]))
    isempty(orders) && all(((e, (f, _, _)),) -> f === e, loops) && return p, from, to
    r = Reordering(orders, IdDict{Var,Forms}(), Builder())
    inputs = Var[received!(r, v, order) for (v, order) in zip(p.inputs, from)]
    foreach(e -> reorder!(r, e, get(loops, e, nothing)), p.equations)
    results = Atom[in_form!(r, a, order) for (a, order) in zip(p.outputs, to)]
    dce(with(p; inputs = inputs, equations = r.b.equations, outputs = results)), from, to
end
order_in(orders, a::Atom) = get(() -> own_order(a), orders, a)

# ---- the equations on arrays in other orders

"The orders of its axes in which there is an array, and the variables that have them."
const Forms = Vector{Pair{Vector{Int},Var}}
"What is being written: the orders in which arrays had better be, and the forms there are."
struct Reordering
    orders::IdDict{Var,Vector{Int}}
    forms::IdDict{Var,Forms}
    b::Builder
end

"A variable that gives `v` in an order."
function received!(r::Reordering, v::Var, order)
    order == own_order(v) && return v
    x = Var(TensorType(dtype(v), shape(v)[order.+1]))
    r.forms[v] = [order => x]
    x
end

"The array with its axes in that order, transposed where there is no such form of it yet."
function in_form!(r::Reordering, a::Atom, order)
    a isa Var && !isempty(order) || return a
    forms = get!(() -> [own_order(a) => a], r.forms, a)
    k = findfirst(form -> first(form) == order, forms)
    k === nothing || return last(forms[k])
    from, x = forms[1]
    push!(forms, order => emit(r.b, :transpose, x; perm = indexin(order, from) .- 1))
    last(forms[end])
end
in_own_form!(r::Reordering, a::Atom) = in_form!(r, a, own_order(a))

function reorder!(r::Reordering, e::Equation, loop)
    check_cancelled()
    r.b.source = e.source
    loop === nothing || return reorder_loop!(r, loop...)
    istransposition(e) && haskey(r.forms, e.inputs[1]) && return transpose_forms!(r, e)
    v, given = e.outputs[1], Any[order_in(r.orders, a) for a in e.inputs]
    other = haskey(r.orders, v) || any(a -> haskey(r.orders, a), e.inputs)
    moved = other ? axes_moved(e, order_in(r.orders, v), given) : nothing
    attrs, from = moved === nothing ? (e.attrs, map(own_order, e.inputs)) : moved
    inputs = Atom[in_form!(r, a, order) for (a, order) in zip(e.inputs, from)]
    outputs = moved === nothing ? e.outputs : Var[received!(r, v, order_in(r.orders, v))]
    push!(r.b.equations, with(e; inputs = inputs, outputs = outputs, attrs = attrs))
end

axes_moved(e::Equation, order, given) =
    length(e.outputs) == 1 ? with_axes(e.op, e, order, given) : nothing

"Lets the forms of an array be those of its transposition."
function transpose_forms!(r::Reordering, e::Equation)
    place = inverse_perm(e[:perm])
    r.forms[e.outputs[1]] = [place[order.+1] => x for (order, x) in r.forms[e.inputs[1]]]
end

"A loop on operands that have the orders `from`, whose results have the orders `to`."
function reorder_loop!(r::Reordering, e::Equation, from, to)
    inputs = Atom[in_form!(r, a, order) for (a, order) in zip(e.inputs, from)]
    outputs = Var[received!(r, v, order) for (v, order) in zip(e.outputs, to)]
    push!(r.b.equations, with(e; inputs = inputs, outputs = outputs))
end

# ---- where it is worth it

"""
Arrays that are in the other order all or none. `gain`: elements of nests that stop at the ends
of their rows; `loss`: elements of arrays that would have to be transposed."""
mutable struct RowGroup
    members::Vector{Var}
    gain::Int
    loss::Int
end

"Which arrays are to be in the other order, by what it gains and loses."
function worth_reordering(p::Program, loops, open, pairs)
    groups = IdDict{Var,RowGroup}()
    group(v) = get!(() -> RowGroup([v], 0, 0), groups, v)
    lose(atoms) =
        for a in atoms
            has_short_rows(a) && (group(a).loss += size_of(shape(a)))
        end
    for e in p.equations
        check_cancelled()
        rows = Var[a for a in vcat(e.inputs, e.outputs) if has_short_rows(a)]
        isempty(rows) && continue
        if haskey(loops, e)
            _, from, to = loops[e]
            orders = zip(vcat(e.inputs, e.outputs), vcat(from, to))
            lose(a for (a, order) in orders if order == own_order(a))
        elseif !istransposition(e)
            split = transposed_for(e)
            lose(split)
            isempty(split) || continue
            joined = foldl(join!, (group(v) for v in rows))
            foreach(v -> groups[v] = joined, joined.members)
            stops_at_rows(e) && (joined.gain += maximum(v -> size_of(shape(v)), rows))
        end
    end
    open ? join_pairs!(groups, pairs) : lose(vcat(p.inputs, p.outputs))
    IdDict{Var,Vector{Int}}(
        v => rows_first(v) for (v, g) in groups if g.gain > WORTH_TRANSPOSING * g.loss
    )
end
"The arrays of short rows that would be transposed if all of an equation's had the rows first."
function transposed_for(e::Equation)
    moved = axes_moved(e, preferred(e.outputs[1]), map(preferred, e.inputs))
    moved === nothing && return vcat(e.inputs, e.outputs)
    Atom[a for (a, order) in zip(e.inputs, moved[2]) if has_short_rows(a) && order != preferred(a)]
end
preferred(a::Atom) = has_short_rows(a) ? rows_first(a) : own_order(a)

function join!(g::RowGroup, h::RowGroup)
    g === h && return g
    RowGroup(vcat(g.members, h.members), g.gain + h.gain, g.loss + h.loss)
end
function join_pairs!(groups, pairs)
    for (v, a) in pairs
        haskey(groups, v) && haskey(groups, a) || continue
        joined = join!(groups[v], groups[a])
        foreach(x -> groups[x] = joined, joined.members)
    end
end

"Whether an equation is between arrays of short rows and others, but for numbers."
stops_at_rows(e::Equation) = any(vcat(e.inputs, e.outputs)) do a
    a isa Var && !isempty(shape(a)) && size_of(shape(a)) != 1 && !has_short_rows(a)
end
