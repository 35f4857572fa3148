# Fewer equations for the same function.

const ROUNDS = 8        # passes feed each other; each round that helps removes an equation, most Programs need two

"""
    optimize(program) -> Program

Dead code, identities, constant folding, common subexpressions, factoring of common linear maps (`L(u) + L(v) → L(u + v)`) and of
common pairs of terms, until nothing more is found. Values change by rounding at most."""
function optimize(p::Program)
    shorter = rounds(p, false)
    # A sign that was used twice and moved is there twice; mostly sums absorb it, but where not it had better stay.
    count_equations(shorter) <= count_equations(dce(p)) ? shorter : rounds(p, true)
end

function rounds(p::Program, careful::Bool)
    p = dce(simplified(copy_program(p), careful))
    for _ in 1:ROUNDS
        candidate = dce(simplified(factor_sums(p), careful))
        count_equations(candidate) < count_equations(p) || break
        p = candidate
    end
    p
end
