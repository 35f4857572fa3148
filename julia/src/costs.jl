# What computing costs, in additions an element, and the limits that passes and the plan of a kernel
# set to it. One scale for all of them: an addition is 1, an element that only moves 0. What a
# function of numbers costs stands in the line that defines it (rules/unary.jl and the like).

"""
What a Program takes, in additions: of each equation all its elements, of a loop all its trips. What
is no function of elements counts as one that is, so that this is an estimate from below."""
work(p::Program) = sum(Int[work(e) for e in p.equations])
function work(e::Equation)
    trips = get(e.attrs, :length, 1)
    hasbodies(e) && return trips * maximum(Int[work(p) for p in bodies(e)])
    (isfusable(e.op, e) ? cost(e.op, e) : 1) * sum(Int[size_of(shape(v)) for v in e.outputs])
end

# ---- the limits, in rising order

"""
An addition or two: it may be computed wherever it is read, however often, and again in another half
of a loop, without weighing."""
const CHEAP = 3
"""
Twice as much: what follows from one array at this cost is computed by each loop nest that needs it;
to keep it, too, would be one more array to write and read."""
const LITTLE = 2CHEAP
"""
Cost times readers up to which an element is computed once for each reader, who reads it elsewhere
than at its own place."""
const AFFORDABLE = 12
"""
A function of numbers from here on is expensive: a loop does not compute it again in every trip. exp
is the least of them."""
const EXPENSIVE = 10
"""
A large residual is computed again in the linear half up to this cost, beyond what is computed again
already, a few functions of numbers: what costs more is worth the memory."""
const EXPENSIVE_RESIDUAL = 60
"""
The same where a result of the known half would serve: less, since it is there anyway and
may not be wanted."""
const EXPENSIVE_RESULT = 16
"""
Costs are added up no further than this: what is computed from itself many times over
would overflow them."""
const LARGEST_COST = 1000

"Whether an elementwise function, or what is no function of elements, is not to be computed again."
isexpensive(e::Equation) = isfusable(e.op, e) ? cost(e.op, e) >= EXPENSIVE : !isfree(e.op)
"Whether the equation only moves elements."
ismovement(e::Equation) = isfusable(e.op, e) ? cost(e.op, e) == 0 : isfree(e.op)
"Whether its elements may be computed again from those of the operands."
isrepeatable(e::Equation) =
    ischeap(e.op) || movesonly(e.op, e) ||
    isfusable(e.op, e) && all(k -> reads_elements(e.op, e, k), eachindex(e.inputs))
"An addition or two an element, or a movement of elements."
ischeaply_repeated(e::Equation) = isrepeatable(e) && cost(e.op, e) <= CHEAP
