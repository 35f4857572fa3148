# An array made for matrix products alone is kept as they like it: with the axes of the batch first, so that each matrix lies together.

# A smaller array lies in the nearest cache in any order, of bytes.
const WORTH_LAYOUT = 1 << 15

function laid_out(p::Program)
    orders, moved, equations = wanted_orders(p), IdDict{Var,Var}(), Equation[]
    isempty(orders) && return p
    for e in p.equations
        push!(equations, reordered(e.op, e, orders, moved))
        for v in e.outputs
            haskey(orders, v) || continue
            b = Builder()
            moved[v] = emit(b, :transpose, v; perm = orders[v])
            append!(equations, b.equations)
        end
    end
    with(p; equations = equations)
end

"The order in which an operation would have the axes of operand `k`; nothing if it does not matter."
wanted_order(op::Primitive, e, k) = nothing
function wanted_order(::DotGeneral, e, k)
    batch = e[(:lhs_batch, :rhs_batch)[k]]
    vcat(batch, axes_except(aval(e.inputs[k]), batch))
end

"The large arrays computed element by element that all who read them want in one other order, and this."
function wanted_orders(p::Program)
    orders = IdDict{Var,Any}()
    for e in p.equations, v in e.outputs
        isfusable(e.op, e) && size_of(shape(v)) * sizeof(dtype(v)) >= WORTH_LAYOUT && (orders[v] = missing)
    end
    for e in p.equations, (k, a) in enumerate(e.inputs)
        haskey(orders, a) || continue
        wanted = wanted_order(e.op, e, k)
        wanted !== nothing && (orders[a] === missing || orders[a] == wanted) ? (orders[a] = wanted) : delete!(orders, a)
    end
    foreach(a -> delete!(orders, a), p.outputs)
    filter!(((v, order),) -> order !== missing && !issorted(k for k in order if sizes(v)[k+1] != 1), orders)
end

reordered(op::Primitive, e, orders, moved) = e
function reordered(::DotGeneral, e, orders, moved)
    x, y = e.inputs
    place(a, axes) = haskey(moved, a) ? Int[findfirst(==(k), orders[a]) - 1 for k in axes] : axes
    with(e; inputs = Atom[get(moved, x, x), get(moved, y, y)],
         attrs = merge(e.attrs, Attributes(:lhs_contract => place(x, e[:lhs_contract]), :lhs_batch => place(x, e[:lhs_batch]),
                                           :rhs_contract => place(y, e[:rhs_contract]), :rhs_batch => place(y, e[:rhs_batch]))))
end
