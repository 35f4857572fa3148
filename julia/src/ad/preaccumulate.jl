# Chains of factors on one tangent multiplied together before they meet it.

"""
    preaccumulate(program, tangents) -> Program

The same Program, in which `a * (b * t - c * t)` is `(a * b - a * c) * t`: for t, the inputs in
`tangents` and what they become otherwise, the factors are elements of local Jacobians and do not
depend on tangents. What is linear then takes fewer equations and residuals, and the products are
computed once however often it is applied. Where there is a reciprocal, tangents are multiplied by
it and not divided. Arrays that are used more than once are left as they are,
since products with each of their factors would take more memory.

Source: preaccumulation; A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008,
section 10.2."""
function preaccumulate(p::Program, tangents)
    reciprocals = VarSet(e.inputs[2] for e in p.equations if isreciprocal(e))
    pass = Preaccumulation(VarSet(tangents), IdDict{Var,Multiple}(), reciprocals, Builder())
    uses = use_counts(p)
    for e in p.equations
        pass.builder.source = e.source
        if !any(a -> isactive(pass, a), e.inputs)
            push!(pass.builder.equations, e)
            continue
        end
        union!(pass.active, e.outputs)
        product = multiple(pass, e)
        product === nothing && (append_as_is!(pass, e); continue)
        v = e.outputs[1]
        pass.multiples[v] = product
        isempty(shape(v)) || get(uses, v, 0) == 1 || write!(pass, v)
    end
    foreach(a -> write!(pass, a), p.outputs)
    with(p; equations = pass.builder.equations)
end
isreciprocal(e::Equation) =
    name(e.op) === :div && isone_literal(e.inputs[1]) && e.inputs[2] isa Var

"""
A value that is `factor * base`; `equation` is the one that says so in the
Program, if there is one."""
struct Multiple
    factor::Atom
    base::Var
    equation::Union{Equation,Nothing}
end

"""
`active`: what depends on tangents. `multiples`: values that are not written yet, and are only if
something else needs them. `reciprocals`: of which the Program computes one."""
struct Preaccumulation
    active::VarSet
    multiples::IdDict{Var,Multiple}
    reciprocals::VarSet
    builder::Builder
end
isactive(pass, a) = a isa Var && a in pass.active

function append_as_is!(pass, e::Equation)
    foreach(a -> write!(pass, a), e.inputs)
    push!(pass.builder.equations, e)
end

write!(pass, a::Literal) = nothing
function write!(pass, v::Var)
    m = pop!(pass.multiples, v, nothing)
    m === nothing && return
    e =
        m.equation === nothing ?
        Equation(primitive(:mul), Atom[m.factor, m.base], [v], NO_ATTRIBUTES,
            pass.builder.source) : m.equation
    push!(pass.builder.equations, e)
    nothing
end

as_multiple(pass, v::Var) =
    get(() -> Multiple(Literal(one(dtype(v))), v, nothing), pass.multiples, v)

"The result as a multiple of what its operand is a multiple of, or nothing."
multiple(pass, e::Equation) =
    haskey(LITERAL_FACTORS, name(e.op)) && dtype(e.outputs[1]) in (Float32, Float64) ?
    multiple(Val(name(e.op)), pass, e, e.inputs...) : nothing

function multiple(::Val{:neg}, pass, e, x)
    m = as_multiple(pass, x)
    scaled_multiple(pass, e, m, factor(pass, :neg, m.factor))
end
function multiple(::Val{:mul}, pass, e, x, y)
    isactive(pass, x) && isactive(pass, y) && return nothing
    k, t = isactive(pass, x) ? (y, x) : (x, y)
    m = as_multiple(pass, t)
    scaled_multiple(pass, e, m, isone_literal(m.factor) ? k : factor(pass, :mul, k, m.factor))
end
function multiple(::Val{:div}, pass, e, x, y)
    isactive(pass, y) && return nothing
    m = as_multiple(pass, x)
    # Rather one division where the factor is known than one wherever it is applied.
    if y isa Var && (y in pass.reciprocals || isempty(shape(y)) && isone_literal(m.factor))
        r = factor(pass, :div, Literal(one(dtype(y))), y)
        return Multiple(
            isone_literal(m.factor) ? r : factor(pass, :mul, m.factor, r), m.base, nothing)
    end
    scaled_multiple(pass, e, m, factor(pass, :div, m.factor, y))
end
multiple(::Val{:add}, pass, e, x, y) = combined(:add, pass, e, x, y)
multiple(::Val{:sub}, pass, e, x, y) = combined(:sub, pass, e, x, y)
function combined(op, pass, e, x, y)
    isactive(pass, x) && isactive(pass, y) || return nothing
    m, n = as_multiple(pass, x), as_multiple(pass, y)
    k = m.base === n.base ? factor(pass, op, m.factor, n.factor) : nothing
    k === nothing ? nothing : Multiple(k, m.base, nothing)
end

scaled_multiple(pass, e, m::Multiple, ::Nothing) = nothing
scaled_multiple(pass, e, m::Multiple, k) =
    Multiple(k, m.base, any(a -> a isa Var && haskey(pass.multiples, a), e.inputs) ? nothing : e)

"""
What two factors become, or nothing: where the product of literals leaves the range of ordinary
numbers, the tangent that is multiplied by one after the other may be within it."""
function factor(pass, op::Symbol, x::Literal...)
    k = convert(typeof(x[1].value), LITERAL_FACTORS[op](map(a -> a.value, x)...))
    isordinary(k) || iszero(k) && op in (:add, :sub) ? Literal(k) : nothing
end
factor(pass, op::Symbol, x::Atom...) = emit(pass.builder, op, x...)
const LITERAL_FACTORS = (neg = -, mul = *, div = /, add = +, sub = -)
