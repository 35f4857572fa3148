# The plain evaluator: one array operation an equation.

"""
    evaluate(program, x...) -> Tuple

Runs the Program on Julia arrays whose dimensions stand in reverse order (row-major memory; rank 0
as 0-dimensional arrays)."""
evaluate(p::Program, x...) = Tuple(evaluate(p, collect(Any, x)))

function evaluate(p::Program, x::Vector{Any})
    # An array is dropped after its last use, so that long Programs do not keep all they compute.
    last_use = IdDict{Var,Int}()
    for (k, e) in enumerate(p.equations), a in e.inputs
        a isa Var && (last_use[a] = k)
    end
    for a in p.outputs
        a isa Var && (last_use[a] = typemax(Int))
    end
    values = IdDict{Var,Any}(zip(p.inputs, x))
    value(a::Var) = values[a]
    value(a::Literal) = fill(a.value)
    for (k, e) in enumerate(p.equations)
        check_cancelled()
        results = evaluate(e.op, Any[value(a) for a in e.inputs], e.attrs,
            TensorType[aval(v) for v in e.outputs])
        for (v, r) in zip(e.outputs, results)
            values[v] = r
        end
        for a in e.inputs
            a isa Var && last_use[a] == k && delete!(values, a)
        end
        for v in e.outputs
            haskey(last_use, v) || delete!(values, v)
        end
    end
    Any[value(a) for a in p.outputs]
end
