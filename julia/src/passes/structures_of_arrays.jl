# Arrays of structures as structures of arrays: of many short rows, [many, 3], few long ones are
# made, [3, many]. Vectors lie along a row, and where a loop nest cannot pass rows as one, since a
# sum is along three numbers or three numbers are multiplied by one, there is no vector in three.

"Which arrays have their axes in another order, and in which."
abstract type Layout end
"Arrays of small arrays, the items of a batch, have the axis of the items last."
struct ItemsLast <: Layout end
"Arrays of short rows have the axis of the rows first."
struct RowsFirst <: Layout end

"""
    structures_of_arrays(program) -> Program

The same Program with arrays in other orders: with the items of a batch last where no array of
items need be transposed for it, and with short rows first where more nests stop at the ends of rows
than arrays are transposed. Loops carry and stack them so."""
structures_of_arrays(p::Program) =
    foldl(structures_of_arrays, (ItemsLast(), RowsFirst()); init = p)
structures_of_arrays(p::Program, layout::Layout) = reordered(p, layout, false)[1]

preferred(::RowsFirst, v::Var) = (k = own_order(v); vcat(k[end], k[1:end-1]))
preferred(::ItemsLast, v::Var) = (k = own_order(v); vcat(k[2:end], k[1]))
suits(layout::Layout, a::Atom) =
    a isa Var && ndims(aval(a)) > 1 && isstatic(shape(a)) && suits(layout, Int.(shape(a)))
suits(::RowsFirst, n::Vector{Int}) = 0 < n[end] <= LONGEST_SHORT_ROW && n[end-1] > n[end]
suits(::ItemsLast, n::Vector{Int}) =
    n[1] >= ITEMS_OF_VECTORS && all(k -> 0 < k <= LONGEST_SHORT_ROW, n[2:end])

"""
The Program with arrays in the order of a layout, its inputs and results too where it is `open`, and
the orders of these. `carried`: inputs that the first results have to be like."""
function reordered(p::Program, layout::Layout, open, carried = Var[])
    loops = IdDict{Equation,Any}(
        e => structures_of_arrays(e.op, e, layout) for e in p.equations if hasbodies(e)
    )
    forms = elementwise_forms(layout, p)
    orders = worth_reordering(layout, p, forms, loops, open, carried)
    orders_of(atoms) = Any[open ? order_in(orders, a) : own_order(a) for a in atoms]
    from = orders_of(p.inputs)
    to = vcat(orders_of(carried), orders_of(p.outputs[length(carried)+1:end]))
    isempty(orders) && all(((e, (f, _, _)),) -> f === e, loops) && return p, from, to
    r = Reordering(orders, IdDict{Var,Forms}(), Builder())
    inputs = Var[received!(r, v, order) for (v, order) in zip(p.inputs, from)]
    for e in p.equations
        form = get(forms, e, nothing)
        haskey(loops, e) ? reorder_loop!(r, loops[e]...) :
        form === nothing || !any(x -> haskey(orders, x.outputs[1]), form) ? reorder!(r, e) :
        foreach(x -> reorder!(r, x), form)
    end
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

function reorder!(r::Reordering, e::Equation)
    check_cancelled()
    r.b.source = e.source
    istransposition(e) && haskey(r.forms, e.inputs[1]) && return transpose_forms!(r, e)
    other = any(a -> haskey(r.orders, a), vcat(e.inputs, e.outputs))
    moved = other ? axes_moved(a -> order_in(r.orders, a), e) : nothing
    attrs, from = moved === nothing ? (e.attrs, map(own_order, e.inputs)) : moved
    inputs = Atom[in_form!(r, a, order) for (a, order) in zip(e.inputs, from)]
    outputs = moved === nothing ? e.outputs :
              Var[received!(r, v, order_in(r.orders, v)) for v in e.outputs]
    push!(r.b.equations, with(e; inputs = inputs, outputs = outputs, attrs = attrs))
end

"`with_axes`, where an equation's arrays have the orders that a function gives."
axes_moved(order, e::Equation) =
    length(e.outputs) == 1 ?
    with_axes(e.op, e, order(e.outputs[1]), Any[order(a) for a in e.inputs]) : nothing

"Lets the forms of an array be those of its transposition."
function transpose_forms!(r::Reordering, e::Equation)
    place = inverse_perm(e[:perm])
    r.forms[e.outputs[1]] = [place[order.+1] => x for (order, x) in r.forms[e.inputs[1]]]
end

"A loop on operands that have the orders `from`, whose results have the orders `to`."
function reorder_loop!(r::Reordering, e::Equation, from, to)
    r.b.source = e.source
    inputs = Atom[in_form!(r, a, order) for (a, order) in zip(e.inputs, from)]
    outputs = Var[received!(r, v, order) for (v, order) in zip(e.outputs, to)]
    push!(r.b.equations, with(e; inputs = inputs, outputs = outputs))
end
