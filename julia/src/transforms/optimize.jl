# Fewer equations for the same function.

const ROUNDS = 8        # passes feed each other; each round that helps removes an equation, most Programs need two

"""
    optimize(program) -> Program

Dead code, identities, constant folding, common subexpressions, factoring of common linear maps (`L(u) + L(v) → L(u + v)`) and of
common pairs of terms, until nothing more is found. Values change by rounding at most."""
function optimize(p::Program)
    p = dce(simplified(copy_program(p)))
    for _ in 1:ROUNDS
        candidate = dce(simplified(factor_sums(p)))
        count_equations(candidate) < count_equations(p) || break
        p = candidate
    end
    p
end
