# Calls without meaning at run time are written out before code is made.

"The Program without calls: custom rules, rematerialisation and barriers are for transforms only. Dead code is removed, in bodies too."
function flattened(p::Program)
    b, inputs = Builder(), fresh(p.inputs)
    env = Environment(zip(p.inputs, inputs))
    flatten_into!(b, env, p)
    outputs = Atom[lookup(env, a) for a in p.outputs]
    dce(Program(p.name, inputs, b.equations, outputs))
end

function flatten_into!(b::Builder, env::Environment, p::Program)
    for e in p.equations
        checkpoint()
        x = Atom[lookup(env, a) for a in e.inputs]
        for (v, y) in zip(e.outputs, flatten_equation!(e.op, b, e, x))
            env[v] = y
        end
    end
end

flatten_equation!(op::Primitive, b, e, x) = keep_equation!(b, e, x)
function keep_equation!(b, e, x)
    outputs = fresh(e.outputs)
    push!(b.equations, with(e; inputs = x, outputs = outputs, attrs = flattened_bodies(e.attrs)))
    outputs
end
flattened_bodies(attrs) = any(v -> v isa Program || v isa Vector{Program}, values(attrs)) ?
    Attributes(k => flattened_value(v) for (k, v) in attrs) : attrs
flattened_value(v) = v
flattened_value(p::Program) = flattened(p)
flattened_value(ps::Vector{Program}) = Program[flattened(p) for p in ps]

function flatten_call!(b, p::Program, x)
    env = Environment(zip(p.inputs, x))
    flatten_into!(b, env, p)
    Atom[lookup(env, a) for a in p.outputs]
end
flatten_equation!(::Custom, b, e, x) = flatten_call!(b, e[:call], x)
flatten_equation!(::Remat, b, e, x) = flatten_call!(b, e[:body], x)
flatten_equation!(::Union{OptimizationBarrier,Saveable}, b, e, x) = x

# A number times an array, as the transposes of inner products are.
function flatten_equation!(op::DotGeneral, b, e, x)
    k = findfirst(isscalar, x)
    y, T = k === nothing ? nothing : x[3-k], dtype(e.outputs[1])
    (k === nothing || T === Bool || !all(a -> dtype(a) === T, x)) && return keep_equation!(b, e, x)
    factor = x[k] isa Literal || isscalar(y) ? x[k] : emit(b, :broadcast_in_dim, x[k]; shape = shape(y), dims = Int[])
    [emit(b, :mul, factor, y)]
end
