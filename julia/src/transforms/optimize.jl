# Fewer equations for the same function.

const ROUNDS = 8        # passes feed each other; each round that helps removes an equation, most Programs need two

"""
    optimize(program) -> Program

Dead code, identities, constant folding, common subexpressions, factoring of common linear maps (`L(u) + L(v) → L(u + v)`) and of
common pairs of terms, until nothing more is found. Values change by rounding at most."""
function optimize(p::Program)
    # Nested Programs see nothing of what is around them, so once is enough for them.
    p = copy_program(with(p; equations = Equation[map_bodies(optimize, e) for e in dce(p).equations]))
    shorter = rounds(p, false)
    # A sign that was used twice and moved is there twice; mostly sums absorb it, but where not it had better stay.
    count_equations(shorter) <= count_equations(p) ? shorter : rounds(p, true)
end

function rounds(p::Program, careful::Bool)
    p = dce(simplified(p, careful))
    for _ in 1:ROUNDS
        factored = factor_sums(p)
        factored === p && break
        candidate = dce(simplified(factored, careful))
        count_equations(candidate) < count_equations(p) || break
        p = candidate
    end
    p
end
