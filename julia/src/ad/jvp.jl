# Forward mode: a Program together with its tangents.

"""
    jvp(program, active = inexact inputs; instantiate = true) -> Program

(x…, ẋ of the active inputs…) → (y…, ẏ of the inexact results…). Inexact results that do not depend
on active inputs have explicit zero tangents."""
function jvp(p::Program, active::AbstractVector{Bool} = inexact(p.inputs))
    # Tangents that nothing uses go: those of a custom_vjp call could not even be computed.
    dce(forward(p, active, inexact(p.outputs))[1])
end

inexact(atoms) = Bool[isinexact(dtype(a)) for a in atoms]

"""
    forward(program, active, wanted) -> (Program, Vector{Bool})

The JVP Program with tangents of the results in `wanted` (zeros made explicit) and of all others
that have a nonzero one; the second value marks the results that got a tangent. `wanted` may be
`nothing`: only nonzero tangents."""
function forward(p::Program, active, wanted = nothing)
    masks = collect(Bool, active), wanted === nothing ? nothing : collect(Bool, wanted)
    remembered(() -> forward_program(p, active, wanted), :forward, p,
        masks...)::Tuple{Program,Vector{Bool}}
end
function forward_program(p::Program, active, wanted)
    check_active(p, active)
    tangents = Var[Var(aval(v)) for (v, a) in zip(p.inputs, active) if a]
    b, inputs = Builder(), fresh(p.inputs)
    y, ẏ = jvp_inline!(b, p, inputs, spread(active, tangents))
    wanted === nothing ||
        (ẏ = MaybeAtom[w ? instantiate(b, t, v) : t for (w, t, v) in zip(wanted, ẏ, y)])
    has = Bool[t !== nothing for t in ẏ]
    results = vcat(y, given(ẏ))
    Program(string("jvp_", p.name), vcat(inputs, tangents), b.equations, results), has
end

function check_active(p::Program, active)
    length(active) == length(p.inputs) ||
        throw(ProgramTypeError("$(length(active)) activities for $(length(p.inputs)) inputs"))
    for (k, (v, a)) in enumerate(zip(p.inputs, active))
        a && !isinexact(dtype(v)) &&
            throw(
                NotDifferentiable(
                    "input $(k-1) of $(p.name) has type $(type_text(aval(v))); " *
                    "only float and complex inputs have tangents", "")
            )
    end
end

"Which of these tangents or cotangents are not zero, and those."
isactive(ẋ) = Bool[t !== nothing for t in ẋ]
given(ẋ) = Atom[t for t in ẋ if t !== nothing]

"One value for each true in `mask`, `nothing` for each false."
function spread(mask, values)
    rest = Iterators.Stateful(values)
    MaybeAtom[m ? popfirst!(rest) : nothing for m in mask]
end

"Appends the JVP of `p` at the atoms `x` with tangents `ẋ`; gives the results and their tangents."
function jvp_inline!(b::Builder, p::Program, x, ẋ)
    primal, tangent = Environment(zip(p.inputs, x)), IdDict{Var,MaybeAtom}(zip(p.inputs, ẋ))
    tangent_of(a) = a isa Var ? get(tangent, a, nothing) : nothing
    for e in p.equations
        operands = Atom[lookup(primal, a) for a in e.inputs]
        b.source = e.source
        if all(a -> tangent_of(a) === nothing, e.inputs)
            y = emit!(b, e.op, operands, e.attrs)
        else
            y, ẏ = jvp(e.op, b, e, operands, MaybeAtom[tangent_of(a) for a in e.inputs])
            for (v, t) in zip(e.outputs, ẏ)
                tangent[v] = t
            end
        end
        for (v, a) in zip(e.outputs, y)
            primal[v] = a
        end
    end
    Atom[lookup(primal, a) for a in p.outputs], MaybeAtom[tangent_of(a) for a in p.outputs]
end
