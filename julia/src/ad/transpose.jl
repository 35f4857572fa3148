# Transposition: a Program linear in some inputs, run backwards.

"""
    transpose(program, linear, cotangents = all results) -> Program

(other inputs…, ȳ of the results marked in `cotangents`…) → (x̄ of the linear inputs…). The Program
must be linear in the inputs marked in `linear` jointly, the others being fixed. Results not marked
have zero cotangent."""
function transpose(p::Program, linear::AbstractVector{Bool},
    cotangents::AbstractVector{Bool} = trues(length(p.outputs)))
    length(linear) == length(p.inputs) && length(cotangents) == length(p.outputs) ||
        throw(
            ProgramTypeError(
                "transpose: the masks do not fit $(length(p.inputs)) inputs and " *
                "$(length(p.outputs)) results"
            )
        )
    check_active(p, linear)
    b, known = Builder(), fresh(p.inputs[.!linear])
    ȳ = Var[Var(aval(a)) for a in p.outputs[cotangents]]
    x̄ = transpose_inline!(b, p, linear, known, spread(cotangents, ȳ))
    Program(string("transpose_", p.name), vcat(known, ȳ), b.equations,
        Atom[instantiate(b, t, v) for (t, v) in zip(x̄, p.inputs[linear])])
end

"""
Appends the transpose of `p` at the non-linear inputs `x`, with cotangents `ȳ` (one a result,
`nothing` for zero); gives the cotangents of the linear inputs. What does not depend on linear
inputs is computed forwards first."""
function transpose_inline!(b::Builder, p::Program, linear, x, ȳ)
    split = partial_eval(p, .!linear)
    known = inline!(b, split.known, x)
    residuals = known[end-split.residuals+1:end]
    backward!(b, split.unknown, residuals, ȳ[.!split.isknown])
end

"""
The backward pass over a Program whose leading inputs are `residuals` and whose other inputs it is
linear in."""
function backward!(b::Builder, p::Program, residuals, ȳ)
    n = length(residuals)
    value = Environment(zip(p.inputs[1:n], residuals))
    cotangent = IdDict{Var,Atom}()
    isknown(a) = a isa Literal || haskey(value, a)
    accumulate!(a, t) =
        a isa Var && t !== nothing && (cotangent[a] = add_maybe(b, get(cotangent, a, nothing), t))
    linear_part = Equation[]
    for e in p.equations        # cheap recomputations of known values stand in front of their uses
        all(isknown, e.inputs) ? recompute!(b, value, e) : push!(linear_part, e)
    end
    foreach(accumulate!, p.outputs, ȳ)
    for e in Iterators.reverse(linear_part)
        ē = MaybeAtom[pop!(cotangent, v, nothing) for v in e.outputs]
        all(t -> t === nothing, ē) && continue
        b.source = e.source
        x = Operand[isknown(a) ? lookup(value, a) : Undefined(aval(a)) for a in e.inputs]
        for (a, t) in zip(e.inputs, transpose(e.op, b, e, ē, x))
            isknown(a) || accumulate!(a, t)
        end
    end
    MaybeAtom[get(cotangent, v, nothing) for v in p.inputs[n+1:end]]
end

function recompute!(b::Builder, value::Environment, e::Equation)
    b.source = e.source
    for (v, a) in zip(e.outputs, emit!(b, e.op, Atom[lookup(value, a) for a in e.inputs], e.attrs))
        value[v] = a
    end
end
