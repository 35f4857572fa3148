# An array that a loop's trips read and write in windows alone is kept so that each window lies
# together: a batch of trajectories, whose axis JAX puts first, with the items of a time side by
# side.

"""
    reorder_carries(program) -> Program

The same Program, in which the axes of such carried arrays are in the order that their windows want,
where the trips touch as many elements as it takes to move the array there and back."""
function reorder_carries(p::Program)
    any(hasbodies, p.equations) || return p
    equations = Equation[]
    for e in p.equations
        append!(equations, reorder_carries(e.op, map_bodies(reorder_carries, e)))
    end
    with(p; equations = equations)
end

"""
The order of a body's input that becomes its result `out`, with the axes of its windows last, or
nothing where that is the order they have, or something else is done with the array."""
function window_order(p::Program, carry::Var, out::Atom, trips)
    isstatic(shape(carry)) && trips isa Int || return nothing
    versions, extent, touched = VarSet([carry]), ones(Int, ndims(aval(carry))), 0
    for e in p.equations, (k, a) in enumerate(e.inputs)
        a in versions || continue
        window = window_sizes(e.op, e, k)
        window === nothing && return nothing
        extent, touched = max.(extent, Int.(window)), touched + prod(Int.(window))
        overwrites(e.op, e) == k && push!(versions, e.outputs[1])
    end
    out in versions && count(a -> a in versions, p.outputs) == 1 || return nothing
    size = size_of(shape(carry))
    size * sizeof(dtype(carry)) >= WORTH_REORDERING && trips * touched >= size || return nothing
    extended = extent .> 1
    issorted(extended) ? nothing : vcat(findall(.!extended), findall(extended)) .- 1
end

"The body with carried arrays, the keys of `orders`, in those orders."
function with_orders(p::Program, orders)
    moved, b = IdDict{Atom,Atom}(), Builder()
    for (v, order) in orders
        moved[v] = Var(TensorType(dtype(v), shape(v)[order.+1]))
    end
    orders = copy(orders)
    for e in p.equations
        check_cancelled()
        k = findfirst(a -> haskey(orders, a), e.inputs)
        if k === nothing
            push!(b.equations, e)
            continue
        end
        order, v = orders[e.inputs[k]], e.outputs[1]
        b.source = e.source
        y = in_order(e.op, b, e, order, moved[e.inputs[k]])
        if overwrites(e.op, e) == k
            moved[v], orders[v] = y, order
        else
            push!(b.equations, with(pop!(b.equations); outputs = Var[v]))
        end
    end
    renamed(a) = get(moved, a, a)
    with(p; inputs = Var[renamed(v) for v in p.inputs], equations = b.equations,
        outputs = Atom[renamed(a) for a in p.outputs])
end
