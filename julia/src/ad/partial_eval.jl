# Partial evaluation: a Program split by what is known early and what only later. What the later
# half needs of the earlier one is chosen in residuals.jl.

"""
A Program split in two: `known` maps the known inputs to the known results and the residuals,
`unknown` maps the residuals and the unknown inputs to the other results. `isknown` marks the
results that `known` computes.
"""
struct Split
    known::Program
    unknown::Program
    isknown::Vector{Bool}
    residuals::Int
end

"""
    partial_eval(program, known, unknown_results = none) -> Split

Splits by the inputs marked in `known`. Results marked in `unknown_results` come out of the unknown
Program in any case. What is cheap is no residual: the unknown Program repeats it."""
function partial_eval(p::Program, known::AbstractVector{Bool},
    unknown_results = falses(length(p.outputs)))
    remembered(:partial_eval, p, collect(Bool, known), collect(Bool, unknown_results)) do
        split_program(p, known, unknown_results)
    end::Split
end

function split_program(p::Program, known, unknown_results)
    early, late = split_equations(p, known)
    available = VarSet(v for (v, k) in zip(p.inputs, known) if k)
    for e in early, v in e.outputs
        push!(available, v)
    end
    isearly(a) = a isa Literal || a in available
    isknown = Bool[isearly(a) && !u for (a, u) in zip(p.outputs, unknown_results)]
    late = live_equations(late, p.outputs[.!isknown])
    late, residuals = close_over!(late, p.outputs[.!isknown], early, available)
    results = vcat(p.outputs[isknown], Vector{Atom}(residuals))
    early = Program(p.name, p.inputs[known], live_equations(early, results), results)
    later = Program(p.name, vcat(residuals, p.inputs[.!known]), late, p.outputs[.!isknown])
    # The halves share variables; a copy keeps each Program's variables its own. p is mostly
    # dropped, so `early` may take them over.
    Split(early, copy_program(later), isknown, length(residuals))
end

function split_equations(p::Program, known)
    early, late = Equation[], Equation[]
    unknown = VarSet(v for (v, k) in zip(p.inputs, known) if !k)
    isunknown(a) = a isa Var && a in unknown
    for e in p.equations
        if !any(isunknown, e.inputs)
            push!(early, e)
            continue
        end
        first_half, second_half = partial_eval(e.op, e, Bool[!isunknown(a) for a in e.inputs])
        append!(early, first_half)
        append!(late, second_half)
        for s in second_half, v in s.outputs
            push!(unknown, v)
        end
    end
    early, late
end
