# Windows at places that a Program knows become slices and their counterparts: the derivatives of
# these need no indices, and loop nests compute them with what else there is.

"""
    static_windows(program) -> Program

The same Program, in which gathers, scatters and dynamic slices of one window, at a place that
follows from literals alone, are slices, updates and sums with padded arrays."""
function static_windows(p::Program)
    known, b, changed = IdDict{Var,Array}(), Builder(), any(hasbodies, p.equations)
    look(a::Var) = get(known, a, nothing)
    look(a::Literal) = fill(a.value)
    for e in p.equations
        check_cancelled()
        b.source = e.source
        result = static_windows(e.op, b, e, look)
        if result === nothing
            push!(b.equations, map_bodies(static_windows, e))
            values = known_integers(e, look)
            values === nothing || (known[e.outputs[1]] = values)
        else
            changed = true
            b.equations[end] = with(b.equations[end]; outputs = e.outputs)
        end
    end
    changed ? dce(with(p; equations = b.equations)) : p
end

"The elements of the one result, a few integers that follow from known ones, or nothing."
function known_integers(e::Equation, look)
    length(e.outputs) == 1 && (iselementwise(e.op) || name(e.op) in ARRANGES) || return nothing
    type = aval(e.outputs[1])
    type.dtype <: Integer && all(n -> n isa Int, type.shape) &&
        size_of(type.shape) <= MOST_KNOWN || return nothing
    x = Any[look(a) for a in e.inputs]
    any(isnothing, x) ? nothing : evaluate(e.op, x, e.attrs, [type])[1]
end
const ARRANGES = (:broadcast_in_dim, :concatenate, :constant, :iota, :reshape, :slice, :squeeze)
"Indices of one window have an element for each axis."
const MOST_KNOWN = 32
