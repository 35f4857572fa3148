# Partial evaluation inside of checkpoints: a split whose second half repeats the first, but for the
# values that the policy allows to save. As in JAX (jax/_src/interpreters/partial_eval.py,
# partial_eval_jaxpr_custom) the policy is asked about all equations inside, also those in loops,
# branches and other checkpoints.

"""
    partial_eval_saving(program, known, unknown_results, depth) -> Split

Its known Program maps the known inputs to the known results and what is kept, the unknown one what
is kept and *all* inputs to *all* results. Results marked in `unknown_results` are not known."""
function partial_eval_saving(p::Program, known::AbstractVector{Bool}, unknown_results, depth)
    unknown = VarSet(v for (v, k) in zip(p.inputs, known) if !k)
    isunknown(a) = a isa Var && a in unknown
    early, late, kept = Equation[], Equation[], Var[]
    for e in p.equations
        first_half, second_half, more = partial_eval_saving(e.op, e,
            Bool[!isunknown(a) for a in e.inputs], depth)
        computed = VarSet(v for f in first_half for v in f.outputs)
        union!(unknown, (v for v in e.outputs if !(v in computed)))
        append!(early, first_half)
        append!(late, second_half)
        append!(kept, more)
    end
    isknown = Bool[!isunknown(a) && !u for (a, u) in zip(p.outputs, unknown_results)]
    late = live_equations(late, p.outputs)
    kept = kept[used_inputs(Program(p.name, kept, late, p.outputs))]
    results = vcat(p.outputs[isknown], kept)
    early = Program(p.name, p.inputs[known], live_equations(early, results), results)
    Split(copy_program(early), copy_program(Program(p.name, vcat(kept, p.inputs), late, p.outputs)),
        isknown, length(kept))
end
