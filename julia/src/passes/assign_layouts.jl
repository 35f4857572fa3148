# An array made for matrix products alone is kept as they like it: with the axes of the batch first,
# so that each matrix lies together.

"""
    assign_layouts(program) -> Program

The same Program, in which what an array's readers all want with its axes in another order is
written in that order."""
function assign_layouts(p::Program)
    orders, transposed, equations = wanted_layouts(p), IdDict{Var,Var}(), Equation[]
    isempty(orders) && return p
    for e in p.equations
        push!(equations, with_layouts(e.op, e, orders, transposed))
        for v in e.outputs
            haskey(orders, v) || continue
            b = Builder()
            transposed[v] = emit(b, :transpose, v; perm = orders[v])
            append!(equations, b.equations)
        end
    end
    with(p; equations = equations)
end

"""
The large arrays computed element by element that all who read them want in one
other order, and this."""
function wanted_layouts(p::Program)
    orders = IdDict{Var,Any}()
    for e in p.equations, v in e.outputs
        isfusable(e.op, e) && size_of(shape(v)) * sizeof(dtype(v)) >= WORTH_LAYOUT &&
            (orders[v] = missing)
    end
    for e in p.equations, (k, a) in enumerate(e.inputs)
        haskey(orders, a) || continue
        wanted = wanted_layout(e.op, e, k)
        wanted !== nothing && (orders[a] === missing || orders[a] == wanted) ?
        (orders[a] = wanted) : delete!(orders, a)
    end
    foreach(a -> delete!(orders, a), p.outputs)
    filter!(((v, order),) -> order !== missing &&
            !issorted(k for k in order if sizes(v)[k+1] != 1), orders)
end
