# Which passes run, by name and in their order: for `optimize`, for a linearization,
# and for native code.

"A function from Programs to Programs that do the same."
struct Pass
    name::Symbol
    run::Function
end
"`run(pass, program)` runs a pass."
run_passes(passes, p::Program, run = (pass, q) -> pass.run(q))::Program =
    foldl((q, pass) -> run(pass, q), passes; init = p)

# ---- optimize

simplify_passes(; options...) = [Pass(:simplify, p -> simplified(p; options...)), Pass(:dce, dce)]

"""
    optimize(program; factor = true) -> Program

Dead code, identities, constant folding, common subexpressions, and, where `factor`, factoring of
common linear maps (`L(u) + L(v) → L(u + v)`), of common pairs of terms and of what all terms of a
sum have, until nothing more is found. Values change by rounding at most, and without factoring
those of powers alone."""
function optimize(p::Program; factor::Bool = true)
    inner(q) = optimize(q; factor = factor)
    # Nested Programs see nothing of what is around them, so once is enough for them.
    p =
        copy_program(
            with(p;
                equations = Equation[
                    map_bodies(inner, e) for e in merge_loops(loop_constants(dce(p))).equations
                ])
        )
    # What a body's own loops leave as it is, is seen only now.
    p = loop_constants(p, inner)
    most = factor ? ROUNDS : 0
    shorter = rounds(simplify_passes(; regroup = factor), p, most)
    # A sign that was used twice and moved is there twice; mostly sums absorb it, but where not it
    # had better stay.
    count_equations(shorter) <= count_equations(p) ? shorter :
    rounds(simplify_passes(; regroup = factor, careful = true), p, most)
end

"Simplified, and at most so often factored and simplified again, while that pays."
function rounds(passes, p::Program, most)
    p = run_passes(passes, p)
    for _ in 1:most
        factored = factor_sums(p)
        factored === p && break
        candidate = run_passes(passes, factored)
        effort(candidate) < effort(p) || break
        p = candidate
    end
    p
end
"How many equations, and of so many how many compute and do not only move elements."
effort(p::Program) = count_equations(p), count(!ismovement, p.equations)

# ---- linearizations

"""
    linearized(program, active; compact, optimized) -> Linearized

A linearization; where `compact`, with residuals that are few and small: unrolled loops are rolled,
factors multiplied together, and large residuals that are cheap computed again. Stacks of arrays
that a loop updates little by little are so in any case."""
function linearized(p::Program, active; compact = false, optimized = false)
    l = linearize(compact ? compacted(p) : static_windows(p), active; compact = compact)
    optimized && (l = optimized_halves(l))
    shorter = compact ? rematerialize(l) : rematerialize(l, e -> movesonly(e.op, e))
    shorter === l || !(compact || optimized) ? shorter : optimized_halves(shorter)
end
"What is linearized in its place for residuals that are few."
compacted(p::Program) = static_windows(reroll_loops(p))
optimized_halves(l::Linearized) =
    Linearized(optimize(l.known), optimize(l.linear), l.hastangent, l.residuals)

"""
    with_gradient(program, active) -> Program or nothing

(x…) → (y…, the gradient of the one inexact result, a scalar, by the active inputs…): both halves of
the linearization in one Program, where residuals go no further than from one loop to the next.
Nothing where the result does not depend on the active inputs."""
function with_gradient(p::Program, active)
    l = optimized_halves(linearize(compacted(p), active; compact = true))
    any(l.hastangent) || return nothing
    b, x, m = Builder(), fresh(p.inputs), length(p.outputs)
    known = inline!(b, l.known, x)
    ones = Atom[filled(b, aval(a), 1) for a in p.outputs[l.hastangent]]
    x̄ = backward!(b, l.linear, known[m+1:end], ones)
    cotangents = Atom[instantiate(b, t, v) for (t, v) in zip(x̄, p.inputs[active])]
    optimize(
        Program(string("gradient_", p.name), x, b.equations, vcat(known[1:m], cotangents))
    )
end

"""
The passes over the two halves of a loop's body. `input_bytes`: what each known input takes where it
is kept, `nothing` for all of it."""
const LOOP_RESIDUAL_PASSES = (fewest_loop_residuals, pack_loop_residuals)
compact_loop_residuals(s::Split, input_bytes) =
    foldl((s, pass) -> pass(s, input_bytes), LOOP_RESIDUAL_PASSES; init = s)

# ---- native code

"""
What a Program goes through before code is made of it. It computes the user's formulas as they were
written: no sum is factored, since programs that compute with their own rounding errors rely on the
order (a sum that is compensated, a product of twice the precision)."""
const NATIVE_PASSES = [Pass(:reroll_loops, reroll_loops), Pass(:flatten_calls, flatten_calls),
    Pass(:optimize, p -> optimize(p; factor = false)),
    Pass(:absorb_transposes, absorb_transposes),
    Pass(:static_windows, static_windows), Pass(:share_reciprocals, share_reciprocals),
    Pass(:divide_parts, divide_parts), Pass(:hoist_invariants, hoist_invariants),
    Pass(:add_in_place, add_in_place), Pass(:begin_sums, begin_sums),
    Pass(:reorder_carries, reorder_carries), Pass(:transpose_records, transpose_records),
    Pass(:structures_of_arrays, structures_of_arrays), Pass(:transpose_stacks, transpose_stacks),
    Pass(:assign_layouts, assign_layouts),
    Pass(:overwrite_late, overwrite_late), Pass(:contract_products, contract_products)]
prepare_native(p::Program) = run_passes(NATIVE_PASSES, p)
