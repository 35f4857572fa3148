# Algebraic identities of single primitives, used by `optimize`. None changes a value by more than
# the sign of a zero, or a power by more than a rounding.

function simplify(op::Elementwise, eqn, x, definition)
    identity = get(IDENTITIES, op.name, nothing)
    simpler = identity === nothing ? nothing : identity(eqn, x, definition)
    simpler === nothing ? before_broadcast(op, eqn, x, definition) : simpler
end

function defined_by(name::Symbol, definition, a)
    e = definition(a)
    e !== nothing && JaxprAD.name(e.op) === name ? e : nothing
end

simplify_copy(eqn, x, definition) = x[1]
function simplify_neg(eqn, x, definition)
    inner = defined_by(:neg, definition, x[1])
    inner === nothing ? nothing : inner.inputs[1]
end
function simplify_add(eqn, x, definition)
    iszero_literal(x[1]) && return x[2]
    iszero_literal(x[2]) && return x[1]
    minus = defined_by(:neg, definition, x[2])
    minus === nothing ||
        return [with(eqn; op = primitive(:sub), inputs = Atom[x[1], minus.inputs[1]])]
    minus = defined_by(:neg, definition, x[1])
    minus === nothing ? nothing :
    [with(eqn; op = primitive(:sub), inputs = Atom[x[2], minus.inputs[1]])]
end
function simplify_sub(eqn, x, definition)
    iszero_literal(x[2]) && return x[1]
    iszero_literal(x[1]) && return [with(eqn; op = primitive(:neg), inputs = Atom[x[2]])]
    minus = defined_by(:neg, definition, x[2])
    minus === nothing ? nothing :
    [with(eqn; op = primitive(:add), inputs = Atom[x[1], minus.inputs[1]])]
end
function simplify_mul(eqn, x, definition)
    isvalue(x[2], 1) && return x[1]
    isvalue(x[1], 1) && return x[2]
    isvalue(x[2], -1) && return [with(eqn; op = primitive(:neg), inputs = Atom[x[1]])]
    isvalue(x[1], -1) && return [with(eqn; op = primitive(:neg), inputs = Atom[x[2]])]
    pull_sign(eqn, x, definition)
end
# Not of integers: their quotients are truncated, and a negated unsigned number is a large one.
simplify_div(eqn, x, definition) =
    isvalue(x[2], 1) ? x[1] :
    isinexact(dtype(eqn.outputs[1])) ?
    pull_sign(eqn, x, definition) : nothing

"""
A power by a literal whole number for which products are as exact: x³ rounds once more than the
others, in the same range. Further ones lose digits, and x⁻² is 0 where x² is infinite."""
function simplify_pow(eqn, x, definition)
    dtype(x[1]) <: Complex && return nothing
    k = findfirst(y -> isvalue(x[2], y), WHOLE_POWERS)
    k === nothing && return nothing
    power = Attributes(:y => WHOLE_POWERS[k])
    [with(eqn; op = primitive(:integer_pow), inputs = Atom[x[1]], attrs = power)]
end
const WHOLE_POWERS = -1:3
simplify_integer_pow(eqn, x, definition) = eqn[:y] == 1 ? x[1] : nothing

"Signs move out of products and quotients, towards the sums that absorb them."
function pull_sign(eqn, x, definition)
    any(a -> defined_by(:neg, definition, a) !== nothing, x) || return nothing
    signs = [defined_by(:neg, definition, a) for a in x]
    inputs = Atom[s === nothing ? a : s.inputs[1] for (s, a) in zip(signs, x)]
    any(isnothing, signs) || return [with(eqn; inputs = inputs)]
    all(a -> defined_by(:neg, definition, a) === nothing || ismovable(definition, a), x) ||
        return nothing
    unsigned = Var(aval(eqn.outputs[1]))
    [with(eqn; inputs = inputs, outputs = [unsigned]),
        Equation(primitive(:neg), Atom[unsigned], eqn.outputs, NO_ATTRIBUTES, eqn.source)]
end
simplify_select_n(eqn, x, definition) =
    all(a -> a === x[2], x[3:end]) && x[2] isa Var ? x[2] : nothing

simplify_max(eqn, x, definition) = without_neutral(typemin, x)
simplify_min(eqn, x, definition) = without_neutral(typemax, x)
"The operand that is left where the other one is the least, or the largest, number there is."
function without_neutral(extreme, x)
    dtype(x[1]) <: Complex && return nothing
    k = findfirst(a -> isvalue(a, extreme(dtype(a))), x)
    k === nothing ? nothing : x[3-k]
end

"The identities of elementwise primitives, by name."
const IDENTITIES = Dict{Symbol,Function}(:copy => simplify_copy, :neg => simplify_neg,
    :add => simplify_add, :sub => simplify_sub, :mul => simplify_mul, :div => simplify_div,
    :pow => simplify_pow, :integer_pow => simplify_integer_pow,
    :max => simplify_max, :min => simplify_min, :select_n => simplify_select_n)

# ---- reductions

simplify(::Reduction, eqn, x, definition) = reduced_single(eqn, x)
"A reduction that combines no two elements moves them at most."
function reduced_single(eqn, x)
    isempty(eqn[:axes]) && return x[1]
    all(axis -> shape(x[1])[axis+1] == 1, eqn[:axes]) || return nothing
    to = Attributes(:shape => shape(eqn.outputs[1]))
    [with(eqn; op = primitive(:reshape), inputs = Atom[x[1]], attrs = to)]
end

# ---- movements of whole arrays: identities vanish, chains become one

function simplify(op::BroadcastInDim, eqn, x, definition)
    aval(x[1]) == aval(eqn.outputs[1]) && return x[1]
    inner = defined_by(:broadcast_in_dim, definition, x[1])
    inner === nothing && return nothing
    dims = Int[eqn[:dims][d+1] for d in inner[:dims]]
    [
        Equation(op, inner.inputs, eqn.outputs, Attributes(:shape => eqn[:shape], :dims => dims),
            eqn.source)
    ]
end
function simplify(op::Reshape, eqn, x, definition)
    aval(x[1]) == aval(eqn.outputs[1]) && return x[1]
    inner = defined_by(:reshape, definition, x[1])
    inner === nothing ? moved_filling(eqn, x[1], definition) : [with(eqn; inputs = inner.inputs)]
end
function simplify(op::Permute, eqn, x, definition)
    issorted(eqn[:perm]) && return x[1]
    inner = defined_by(:transpose, definition, x[1])
    inner === nothing || return [composed(eqn, inner)]
    product = defined_by(:dot_general, definition, x[1])
    product === nothing && return moved_broadcast(eqn, x[1], definition)
    eqn[:perm] == factors_exchanged(product) || return nothing
    other = exchanged(product, eqn)
    isonly_use(definition, x[1]) || iscomputed(definition, other) ? [other] : nothing
end

"A broadcast whose axes change places, as one, if the operand's axes keep their order."
function moved_broadcast(eqn, x, definition)
    inner = defined_by(:broadcast_in_dim, definition, x)
    inner === nothing && return nothing
    dims = Int[findfirst(==(d), eqn[:perm]) - 1 for d in inner[:dims]]
    issorted(dims) || return nothing
    attrs = Attributes(:shape => shape(eqn.outputs[1]), :dims => dims)
    [with(eqn; op = inner.op, inputs = inner.inputs, attrs = attrs)]
end

"The order of a product's axes after its factors change places."
function factors_exchanged(e)
    batch = length(e[:lhs_batch])
    left = ndims(aval(e.inputs[1])) - length(e[:lhs_contract])
    vcat(0:batch-1, left:ndims(aval(e.outputs[1]))-1, batch:left-1)
end
exchanged(e, transposed) =
    with(e; inputs = reverse(e.inputs), outputs = transposed.outputs,
        attrs = merge(
            e.attrs,
            Attributes(
                :lhs_contract => e[:rhs_contract], :rhs_contract => e[:lhs_contract],
                :lhs_batch => e[:rhs_batch], :rhs_batch => e[:lhs_batch])
        ))

function simplify(::DotGeneral, eqn, x, definition)
    simpler = absorbed(eqn.op, eqn, definition)
    simpler === nothing ? product_with_repeated(eqn, x, definition) : [simpler]
end
"The factor that is transposed, before that: with other axes, unless free ones changed places."
function absorbed(::DotGeneral, eqn, definition)
    x = eqn.inputs
    for k in 1:2
        e = defined_by(:transpose, definition, x[k])
        e === nothing && continue
        before(axes) = Int[e[:perm][a+1] for a in axes]
        issorted(before(free_axes(eqn, k))) || continue
        inputs = Atom[j == k ? e.inputs[1] : x[j] for j in 1:2]
        contract, batch = factor_axes(eqn, k)
        attrs = with_factor_axes(eqn, k, before(contract), before(batch))
        return with(eqn; inputs = inputs, attrs = attrs)
    end
    nothing
end

linear_slots(::Union{BroadcastInDim,Reshape,ReduceSum}, eqn) = (1,)
