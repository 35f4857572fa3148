# One forward pass: identities, constant folding, common subexpressions.

"""
    simplified(program; careful = false, regroup = true) -> Program

Operands replaced by what they are known to equal, identities applied (rules/identities.jl),
elementwise equations of literals folded, equal equations merged. Nested Programs are taken as they
are. `careful`: no sign moves that is used elsewhere too. `regroup`: factors move out of sums."""
function simplified(p::Program; careful::Bool = false, regroup::Bool = true)
    pass = SimplifyPass(Environment(), IdDict{Var,Equation}(), Dict{Computation,Vector{Atom}}(),
        use_counts(p), careful, regroup, Equation[])
    for e in p.equations
        check_cancelled()
        simplify_equation!(pass, e)
    end
    with(p; equations = pass.equations, outputs = Atom[resolve(pass, a) for a in p.outputs])
end

"What identifies a computed value: primitive, attributes, operands and the results' types."
struct Computation
    op::Primitive
    operands::Vector{Atom}
    # they tell the constants [0] and [false] apart, which are equal in Julia
    types::Vector{TensorType}
    attributes::Vector{Any}
    hash::UInt
end
function Computation(op, operands, types, attributes)
    h = foldl((h, a) -> hash(identity_key(a), h), operands; init = hash(name(op)))
    Computation(op, operands, types, attributes,
        foldl((h, v) -> hash(outline(v), h), attributes; init = h))
end
Base.hash(c::Computation, h::UInt) = hash(c.hash, h)
Base.:(==)(a::Computation, b::Computation) =
    a.hash == b.hash && a.op === b.op && same_atoms(a.operands, b.operands) && a.types == b.types &&
    length(a.attributes) == length(b.attributes) &&
    all(isequal(attribute_key(v), attribute_key(w)) for (v, w) in zip(a.attributes, b.attributes))

same_atoms(x, y) = length(x) == length(y) && all(same_atom(a, b) for (a, b) in zip(x, y))
same_atom(a::Var, b::Var) = a === b
same_atom(a::Literal, b::Literal) = a == b
same_atom(a, b) = false
identity_key(a::Var) = objectid(a)
identity_key(a::Literal) = a

"A nested Program by its text, which is written only where all else is equal."
attribute_key(value) = value
attribute_key(p::Program) = program_text(p)
attribute_key(ps::Vector{Program}) = map(program_text, ps)
outline(value) = value
outline(p::Program) = length(p.equations)
outline(ps::Vector{Program}) = map(outline, ps)

struct SimplifyPass
    env::Environment                        # old variable -> what replaces it
    definition::IdDict{Var,Equation}
    seen::Dict{Computation,Vector{Atom}}    # -> the results
    # of each result, with those of the results that it replaces
    uses::IdDict{Var,Int}
    careful::Bool                           # move no sign that is used elsewhere too
    regroup::Bool                           # move factors out of sums
    equations::Vector{Equation}
end

resolve(pass::SimplifyPass, v::Var) = get(pass.env, v, v)
resolve(pass::SimplifyPass, l::Literal) = l
"The equation with every operand replaced by what stands for it."
resolved(pass::SimplifyPass, e::Equation) =
    any(a -> a isa Var && haskey(pass.env, a), e.inputs) ?
    with(e; inputs = Atom[resolve(pass, a) for a in e.inputs]) : e

function simplify_equation!(pass::SimplifyPass, e::Equation)
    results = simpler(pass, resolved(pass, e))
    results === e.outputs || foreach((v, a) -> replace!(pass, v, a), e.outputs, results)
    nothing
end

function replace!(pass::SimplifyPass, v::Var, a::Atom)
    a === v && return
    pass.env[v] = a
    a isa Var && (pass.uses[a] = get(pass.uses, a, 0) + get(pass.uses, v, 0))
end

"""
What identities may ask about an atom: `definition(a)`, the equation that binds it or nothing, and
whether its sign may be moved; and whether factors may."""
struct Definitions
    pass::SimplifyPass
end
(d::Definitions)(a) = a isa Var ? get(d.pass.definition, a, nothing) : nothing
isonly_use(d::Definitions, a) = get(d.pass.uses, a, 0) == 1
"Whether there is an equation that computes the same."
iscomputed(d::Definitions, e::Equation) = haskey(d.pass.seen, computation(e))
regroups(d::Definitions) = d.pass.regroup
ismovable(d::Definitions, a) = !d.pass.careful || isonly_use(d, a)

"The atoms that stand for the equation's results, appending what they need."
function simpler(pass::SimplifyPass, e::Equation)
    e = literal_operands(pass, e)
    if length(e.outputs) == 1
        replacement = folded(e)
        replacement === nothing && (replacement = simplify(e.op, e, e.inputs, Definitions(pass)))
        replacement isa Vector{Equation} && return simpler_chain!(pass, replacement)
        # A literal replaces an array only through a broadcast; leave that case as it is.
        replacement isa Atom && aval(replacement) == aval(e.outputs[1]) && return Atom[replacement]
    end
    body = inlined_body(e.op, e)
    body === nothing || return inline_body!(pass, body, e.inputs)
    distinct, place = distinct_results(e.op, e)
    distinct === e || return simpler(pass, distinct)[place]
    ismergeable(e.op) || return append_equation!(pass, e)
    key = computation(e)
    haskey(pass.seen, key) ? pass.seen[key] : (pass.seen[key] = append_equation!(pass, e))
end

function append_equation!(pass::SimplifyPass, e::Equation)
    push!(pass.equations, e)
    for v in e.outputs
        pass.definition[v] = e
    end
    Vector{Atom}(e.outputs)
end

"Simplifies equations that stand for one; the results of the last are its."
function simpler_chain!(pass::SimplifyPass, equations)
    foreach(e -> simplify_equation!(pass, e), equations[1:end-1])
    simpler(pass, resolved(pass, equations[end]))
end

"""
Arrays filled with a literal become that literal where an operand of the full shape
is the other operand."""
function literal_operands(pass::SimplifyPass, e::Equation)
    iselementwise(e.op) && !isempty(shape(e.outputs[1])) &&
        any(a -> filling(pass, a) !== a, e.inputs) || return e
    fills = Atom[filling(pass, a) for a in e.inputs]
    any(a -> a isa Var && shape(a) == shape(e.outputs[1]), fills) ? with(e; inputs = fills) : e
end
function filling(pass::SimplifyPass, a)
    d = a isa Var ? get(pass.definition, a, nothing) : nothing
    d === nothing ? a : something(fill_literal(d.op, d), a)
end

"The literal that an elementwise equation of literals gives, or nothing."
folded(e::Equation) =
    iselementwise(e.op) && !isempty(e.inputs) && all(a -> a isa Literal, e.inputs) &&
    isempty(shape(e.outputs[1])) ?
    folded(e.op, e.inputs, e.attrs) : nothing

function computation(e::Equation)
    operands = iscommutative(e.op) ? sort(e.inputs; by = identity_order) : e.inputs
    Computation(e.op, operands, TensorType[aval(v) for v in e.outputs], attribute_values(e))
end
"Literals last; any fixed order serves."
identity_order(a) = a isa Var ? objectid(a) : typemax(UInt)
attribute_values(e::Equation) =
    isempty(e.attrs) ? NO_VALUES : Any[e.attrs[k] for k in attributes(e.op) if haskey(e.attrs, k)]
const NO_VALUES = Any[]

function inline_body!(pass::SimplifyPass, body::Program, x)
    b = Builder()
    results = inline!(b, body, x)
    foreach(q -> simplify_equation!(pass, q), b.equations)
    Atom[resolve(pass, a) for a in results]
end
