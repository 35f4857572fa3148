# x / d, where d is the same for three x, as x r with the reciprocal r of d, as XLA has it: a
# division takes some fifteen times as long as a product, and derivatives need the reciprocal too.

"""
    share_reciprocals(program) -> Program

The same Program, in which quotients of short rows by a number each are products. Values change
by rounding, and where the array's reciprocal is infinite or subnormal."""
function share_reciprocals(p::Program)
    any(e -> isquotient(e) || hasbodies(e), p.equations) || return p
    b, spread, reciprocals = Builder(), IdDict{Var,Equation}(), IdDict{Var,Atom}()
    for e in p.equations
        b.source = e.source
        isbroadcast(e) && (spread[e.outputs[1]] = e)
        push!(b.equations,
            divides_rows(e, spread) ? times_reciprocal!(b, e, spread[e.inputs[2]], reciprocals) :
            map_bodies(share_reciprocals, e))
    end
    dce(with(p; equations = b.equations))
end

"The product that the quotient `e` by a broadcast is, after what gives its second factor."
function times_reciprocal!(b::Builder, e::Equation, broadcast::Equation, reciprocals)
    d = broadcast.inputs[1]
    r = get!(() -> emit(b, :div, Literal(one(dtype(d))), d), reciprocals, d)
    spread = only_one(emit!(b, broadcast.op, Atom[r], broadcast.attrs))
    with(e; op = primitive(:mul), inputs = Atom[e.inputs[1], spread])
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
