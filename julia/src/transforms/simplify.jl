# One forward pass: identities, constant folding, common subexpressions.

"""
    simplified(program, careful = false) -> Program

Operands replaced by what they are known to equal, identities applied (rules/identities.jl), elementwise equations of literals
folded, equal equations merged."""
function simplified(p::Program, careful::Bool = false)
    pass = SimplifyPass(Environment(), IdDict{Var,Equation}(), Dict{Any,Vector{Atom}}(), IdDict{Var,Int}(), use_counts(p), careful, Equation[])
    for v in p.inputs
        number!(pass, v)
        pass.env[v] = v
    end
    for e in p.equations
        checkpoint()
        simplify_equation!(pass, map_bodies(optimize, e))
    end
    with(p; equations = pass.equations, outputs = Atom[lookup(pass.env, a) for a in p.outputs])
end

struct SimplifyPass
    env::Environment                        # old variable -> what replaces it
    definition::IdDict{Var,Equation}
    seen::Dict{Any,Vector{Atom}}            # equations by what they compute -> their results
    number::IdDict{Var,Int}
    uses::IdDict{Var,Int}                   # of each result, with those of the results that it replaces
    careful::Bool                           # move no sign that is used elsewhere too
    equations::Vector{Equation}
end

number!(pass, v::Var) = pass.number[v] = length(pass.number)

function simplify_equation!(pass::SimplifyPass, e::Equation)
    e = with(e; inputs = Atom[lookup(pass.env, a) for a in e.inputs])
    results = simpler(pass, e)
    for (v, a) in zip(e.outputs, results)
        pass.env[v] = a
        a isa Var && a !== v && (pass.uses[a] = get(pass.uses, a, 0) + get(pass.uses, v, 0))
    end
end

"What identities may ask about an atom: `definition(a)`, the equation that binds it or nothing, and whether its sign may be moved."
struct Definitions
    pass::SimplifyPass
end
(d::Definitions)(a) = a isa Var ? get(d.pass.definition, a, nothing) : nothing
ismovable(d::Definitions, a) = !d.pass.careful || get(d.pass.uses, a, 0) == 1

"The atoms that stand for the equation's results, appending what they need."
function simpler(pass::SimplifyPass, e::Equation)
    e = literal_operands(pass, e)
    if length(e.outputs) == 1
        definition = Definitions(pass)
        replacement = folded(e)
        replacement === nothing && (replacement = simplify(e.op, e, e.inputs, definition))
        replacement isa Vector{Equation} && return simpler_chain!(pass, replacement)
        # A literal replaces an array only through a broadcast; leave that case as it is.
        replacement isa Atom && aval(replacement) == aval(e.outputs[1]) && return Atom[replacement]
    end
    inlinable(e) && return inline_body!(pass, e)
    key = computation(pass, e)
    key !== nothing && haskey(pass.seen, key) && return pass.seen[key]
    push!(pass.equations, e)
    for v in e.outputs
        number!(pass, v)
        pass.definition[v] = e
    end
    key === nothing || (pass.seen[key] = Vector{Atom}(e.outputs))
    Vector{Atom}(e.outputs)
end

"Simplifies equations that stand for one; the results of the last are its."
function simpler_chain!(pass::SimplifyPass, equations)
    foreach(e -> simplify_equation!(pass, e), equations[1:end-1])
    last_one = equations[end]
    simpler(pass, with(last_one; inputs = Atom[a isa Var ? get(pass.env, a, a) : a for a in last_one.inputs]))
end

"Arrays filled with a literal become that literal where an operand of the full shape stands beside them."
function literal_operands(pass::SimplifyPass, e::Equation)
    e.op isa Elementwise || return e
    fills = Atom[filling(pass, a) for a in e.inputs]
    any(a -> a isa Var && shape(a) == shape(e.outputs[1]), fills) || return e
    with(e; inputs = fills)
end
function filling(pass::SimplifyPass, a)
    d = a isa Var ? get(pass.definition, a, nothing) : nothing
    d !== nothing && d.op isa BroadcastInDim && d.inputs[1] isa Literal ? d.inputs[1] : a
end

"The literal that an elementwise equation of literals gives, or nothing."
function folded(e::Equation)
    foldable(e.op) && !isempty(e.inputs) && all(a -> a isa Literal, e.inputs) && isempty(shape(e.outputs[1])) || return nothing
    Literal(evaluate(e.op, Any[fill(a.value) for a in e.inputs], e.attrs, TensorType[aval(e.outputs[1])])[1][])
end
"Whether literals may be folded: `stop_gradient` and the like mean something to later transforms, but not on a constant."
foldable(op::Primitive) = false
foldable(op::Elementwise) = true

"What identifies the computed value: primitive, attributes and operands, those of commutative primitives in a fixed order."
function computation(pass::SimplifyPass, e::Equation)
    (e.op isa Remat || e.op isa Custom) && return nothing
    operands = Any[a isa Var ? pass.number[a] : a for a in e.inputs]
    iscommutative(e.op) && sort!(operands; by = a -> a isa Int ? (1, a) : (0, 0))
    # The types tell the constants [0] and [false] apart, which are equal in Julia.
    (e.op, operands, map(aval, e.outputs), Any[attribute_key(e.attrs[k]) for k in attributes(e.op) if haskey(e.attrs, k)])
end
attribute_key(value) = value
attribute_key(p::Program) = program_text(p)
attribute_key(ps::Vector{Program}) = map(program_text, ps)
iscommutative(op::Primitive) = name(op) in (:add, :mul, :max, :min, :and, :or, :xor, :eq, :ne)

"Equations whose bodies need not be bodies: rematerialisation without a barrier."
inlinable(e::Equation) = e.op isa Remat && !e[:barrier]
function inline_body!(pass::SimplifyPass, e::Equation)
    b = Builder()
    results = inline!(b, only_one(bodies(e)), e.inputs)
    foreach(q -> simplify_equation!(pass, q), b.equations)
    Atom[a isa Var && haskey(pass.env, a) ? pass.env[a] : a for a in results]
end

"The equation with its nested Programs transformed."
function map_bodies(f, e::Equation)
    any(v -> v isa Program || v isa Vector{Program}, values(e.attrs)) || return e
    attrs = Attributes(k => (v isa Program ? f(v) : v isa Vector{Program} ? Program[f(q) for q in v] : v) for (k, v) in e.attrs)
    with(e; attrs = attrs)
end
