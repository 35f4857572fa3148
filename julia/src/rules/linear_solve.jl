# User-given linear maps: x with A x = b by the user's solver (jax.lax.custom_linear_solve), and a
# linear map with the user's transpose (jax.custom_derivatives.linear_call).

@primitive LinearSolve custom_linear_solve(consts, matvec, vecmat, solve, transpose_solve)
@primitive LinearCall linear_call(residuals, call, transpose)

# Operands: what matvec, vecmat, solve and transpose_solve close over, `consts` of each, and b.
# Results: x, and what else solve tells.

const SOLVE_PARTS = (:matvec, :vecmat, :solve, :transpose_solve)

"The operands of each part, and b's, as ranges."
function operand_ranges(attrs, count)
    ends = cumsum(attrs[:consts])
    NamedTuple{(SOLVE_PARTS..., :b)}(([stop-n+1:stop for (n, stop) in zip(attrs[:consts], ends)]...,
        last(ends)+1:count))
end

function infer(op::LinearSolve, types, attrs)
    length(attrs[:consts]) == 4 && all(>=(0), attrs[:consts]) &&
        sum(attrs[:consts]) <= length(types) ||
        infer_error(op, "consts must count the operands of the four parts")
    ranges = operand_ranges(attrs, length(types))
    b = types[ranges.b]
    for part in SOLVE_PARTS
        body = attrs[part]
        body === nothing && part in (:vecmat, :transpose_solve) && continue
        body isa Program || infer_error(op, "lacks $part")
        check_operands(op, body, vcat(types[ranges[part]], b))
        n = length(b)
        length(body.outputs) >= n && results_of(body)[1:n] == b ||
            infer_error(op, "$part gives no values like b's")
    end
    results_of(attrs[:solve])
end

function evaluate(::LinearSolve, x, attrs, types)
    ranges = operand_ranges(attrs, length(x))
    evaluate(attrs[:solve], x[vcat(ranges.solve, ranges.b)])
end

# A ẋ = ḃ - Ȧ x
function jvp(op::LinearSolve, b, eqn, x, ẋ)
    ranges = operand_ranges(eqn.attrs, length(x))
    y, n = emit!(b, op, x, eqn.attrs), length(ranges.b)
    right = ẋ[ranges.b]
    if any(t -> t !== nothing, ẋ[ranges.matvec])
        operands = vcat(x[ranges.matvec], y[1:n])
        _, ȧx = jvp_inline!(b, eqn[:matvec], operands, vcat(ẋ[ranges.matvec], nothings(n)))
        right = MaybeAtom[
            t === nothing ? ḃ : add_maybe(b, ḃ, emit(b, :neg, t))
            for (ḃ, t) in zip(right, ȧx)
        ]
    end
    all(t -> t === nothing, right) && return y, nothings(length(y))
    solved = emit!(b, op,
        vcat(x[1:first(ranges.b)-1],
            Atom[instantiate(b, t, v) for (t, v) in zip(right, x[ranges.b])]), eqn.attrs)
    y, vcat(Vector{MaybeAtom}(solved[1:n]), nothings(length(y) - n))
end

linear_operands(::LinearSolve, eqn) = operand_ranges(eqn.attrs, length(eqn.inputs)).b

# The cotangent of b solves the transposed system.
function transpose(op::LinearSolve, b, eqn, ȳ, x)
    eqn[:transpose_solve] === nothing &&
        throw(
            NotDifferentiable("reverse mode needs custom_linear_solve's transpose_solve",
                eqn.source)
        )
    ranges = operand_ranges(eqn.attrs, length(x))
    any(islinear, x[1:first(ranges.b)-1]) &&
        throw(UnsupportedPrimitive("custom_linear_solve", "is linear in b alone", eqn.source))
    matvec, vecmat, solve, transpose_solve = eqn[:consts]
    attrs =
        Attributes(:consts => [vecmat, matvec, transpose_solve, solve], :matvec => eqn[:vecmat],
            :vecmat => eqn[:matvec], :solve => eqn[:transpose_solve],
            :transpose_solve => eqn[:solve])
    parts = vcat(x[ranges.vecmat], x[ranges.matvec], x[ranges.transpose_solve], x[ranges.solve])
    known = Atom[parts..., (instantiate(b, t, v) for (t, v) in zip(ȳ, x[ranges.b]))...]
    x̄ = emit!(b, op, known, attrs)
    vcat(nothings(length(parts)), Vector{MaybeAtom}(x̄[1:length(ranges.b)]))
end

# ---- linear_call: its transpose takes the residuals and the results' cotangents

function infer(op::LinearCall, types, attrs)
    r, call, back = attrs[:residuals], attrs[:call], attrs[:transpose]
    0 <= r <= length(types) || infer_error(op, "has fewer than $r operands")
    check_operands(op, call, types)
    check_operands(op, back, vcat(types[1:r], results_of(call)))
    results_of(back) == types[r+1:end] ||
        infer_error(op, "the transpose gives no values like the linear operands'")
    results_of(call)
end
evaluate(::LinearCall, x, attrs, types) = evaluate(attrs[:call], x)

# In the residuals the derivative is that of the call's body.
function jvp(op::LinearCall, b, eqn, x, ẋ)
    r = eqn[:residuals]
    y, ẏ = emit!(b, op, x, eqn.attrs), nothings(length(eqn.outputs))
    if any(isactive(ẋ[r+1:end]))
        tangents = Atom[instantiate(b, t, v) for (t, v) in zip(ẋ[r+1:end], x[r+1:end])]
        ẏ = Vector{MaybeAtom}(emit!(b, op, vcat(x[1:r], tangents), eqn.attrs))
    end
    any(isactive(ẋ[1:r])) || return y, ẏ
    _, others = jvp_inline!(b, eqn[:call], x, vcat(ẋ[1:r], nothings(length(x) - r)))
    y, MaybeAtom[add_maybe(b, s, t) for (s, t) in zip(ẏ, others)]
end

linear_operands(::LinearCall, eqn) = eqn[:residuals]+1:length(eqn.inputs)

function transpose(op::LinearCall, b, eqn, ȳ, x)
    r = eqn[:residuals]
    any(islinear, x[1:r]) &&
        throw(UnsupportedPrimitive("linear_call", "is not linear in its residuals", eqn.source))
    cotangents = Atom[instantiate(b, t, v) for (t, v) in zip(ȳ, eqn.outputs)]
    x̄ = emit!(b, op, Atom[x[1:r]..., cotangents...],
        Attributes(:residuals => r, :call => eqn[:transpose], :transpose => eqn[:call]))
    vcat(nothings(r), Vector{MaybeAtom}(x̄))
end

# The solver is what runs.
function flatten_call!(::LinearSolve, b, e, x)
    ranges = operand_ranges(e.attrs, length(x))
    flatten_into!(b, e[:solve], vcat(x[ranges.solve], x[ranges.b]))
end
flatten_call!(::LinearCall, b, e, x) = flatten_into!(b, e[:call], x)
