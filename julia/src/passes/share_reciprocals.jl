# x / d, where d is the same for three x, as x r with the reciprocal r of d, as XLA has it: a
# division takes some fifteen times as long as a product.
#
# What has a finite quotient may have no reciprocal: that of d = 1e-40 is infinite in single
# precision, that of 3e38 subnormal. So d is scaled by a power of two s, which is 1 but for very
# large and very small d: x / d = (x s) r with r = 1 / (d s). Both are normal numbers then, and x s
# leaves the range only where the quotient does. Derivatives are made before this, of the quotient
# itself: that of r would square it.

"""
    share_reciprocals(program) -> Program

The same Program, in which quotients of short rows by a number each are products. Values change
by rounding."""
function share_reciprocals(p::Program)
    any(e -> isquotient(e) || hasbodies(e), p.equations) || return p
    b, spread, reciprocals = Builder(), IdDict{Var,Equation}(), IdDict{Var,Tuple{Atom,Atom}}()
    for e in p.equations
        b.source = e.source
        isbroadcast(e) && (spread[e.outputs[1]] = e)
        push!(b.equations,
            divides_rows(e, spread) ? times_reciprocal!(b, e, spread[e.inputs[2]], reciprocals) :
            map_bodies(share_reciprocals, e))
    end
    dce(with(p; equations = b.equations))
end

"The product that the quotient `e` by a broadcast is, after what gives its factors."
function times_reciprocal!(b::Builder, e::Equation, broadcast::Equation, reciprocals)
    d = broadcast.inputs[1]
    factors = get!(() -> scaled_reciprocal!(b, d), reciprocals, d)
    s, r = [only_one(emit!(b, broadcast.op, Atom[a], broadcast.attrs)) for a in factors]
    with(e; op = primitive(:mul), inputs = Atom[emit(b, :mul, e.inputs[1], s), r])
end

"A power of two s, elementwise, and 1 / (d s)."
function scaled_reciprocal!(b::Builder, d::Atom)
    d, largest = Traced(b, d), exponent(floatmax(dtype(d))) + 1
    extreme, scale = 2.0^(3largest ÷ 4), 2.0^(largest ÷ 2)
    m = abs(d)
    small = where_(compare(:lt, m, 1 / extreme), literal(d, scale), literal(d, 1))
    s = where_(compare(:gt, m, extreme), 1 / scale, small)
    s.atom, (1 / (d * s)).atom
end

isquotient(e::Equation) =
    name(e.op) === :div && e.inputs[2] isa Var && isbinary(dtype(e.outputs[1]))
"Whether an equation broadcasts an array to several times as many elements."
isbroadcast(e::Equation) =
    name(e.op) === :broadcast_in_dim && e.inputs[1] isa Var && !isscalar(e.inputs[1]) &&
    isstatic(shape(e.outputs[1])) &&
    size_of(shape(e.outputs[1])) >= FEWEST_BY_RECIPROCAL * size_of(shape(e.inputs[1]))
"""
Whether an equation divides short rows by such a broadcast, each by a number. (By what is the same
for all of a long row, loop nests divide with less rounding.)"""
function divides_rows(e::Equation, spread)
    isquotient(e) && haskey(spread, e.inputs[2]) || return false
    dims, n = spread[e.inputs[2]][:dims], shape(e.outputs[1])
    !(length(n) - 1 in dims) && n[end] < SHORTEST_BY_RECIPROCAL
end
