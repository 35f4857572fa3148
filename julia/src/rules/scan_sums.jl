# Scans that sum windows, each trip at a place of its own: each element of the sum has few terms, so
# that the order of these matters no more than rounding does. (Where all trips add to one place, a
# large first term would swallow them one by one.)

function begun_with(::Scan, eqn, k, term, definition)
    at = eqn[:consts] + k
    k <= eqn[:carry] && iszero_array(eqn.inputs[at], definition) &&
        sums_apart(eqn, k, definition) || return nothing
    with(eqn; inputs = Atom[i == at ? term : a for (i, a) in enumerate(eqn.inputs)])
end

"Whether the trips do nothing with a carry but add windows to it, each at a place of its own."
function sums_apart(eqn, k, definition)
    body = eqn[:body]
    uses = use_counts(body)
    producer = IdDict{Var,Equation}(v => e for e in body.equations for v in e.outputs)
    inside = LoopBody(eqn, producer, definition)
    before, v = body.inputs[eqn[:consts]+k], body.outputs[k]
    while v !== before
        e = v isa Var && get(uses, v, 0) == 1 ? get(producer, v, nothing) : nothing
        e !== nothing && e.op isa AddWindow && isapart(inside, e) || return false
        v = e.inputs[1]
    end
    get(uses, before, 0) == 1
end

"A loop, with what binds the variables of its body and those outside."
struct LoopBody
    loop::Equation
    producer::IdDict{Var,Equation}
    definition::IdDict{Var,Equation}
end

"Whether along an axis a window is one wide and starts, unclamped, elsewhere in each trip."
function isapart(t::LoopBody, e::Equation)
    x, u = e.inputs
    any(zip(e.inputs[3:end], shape(x), shape(u))) do (start, n, width)
        width == 1 || return false
        bound = trip_bound(t, start)
        bound !== nothing && bound <= n
    end
end

"""
Where a number of the body is another in each trip, none of them negative: what they are below. Or
nothing, where that is not known."""
trip_bound(t::LoopBody, a::Literal) = nothing
function trip_bound(t::LoopBody, a::Var)
    e = get(t.producer, a, nothing)
    e === nothing || return trip_bound(Val(name(e.op)), t, e)
    loop = t.loop
    i = findfirst(v -> v === a, loop[:body].inputs)
    i <= loop[:consts] && return nothing
    i > loop[:consts] + loop[:carry] && return slices_bound(t, loop.inputs[i])
    step, start = counter_step(loop, i - loop[:consts]), loop.inputs[i]
    step !== nothing && step > 0 && start.value >= 0 ?
    within_type(big(start.value) + big(step) * (loop[:length] - 1) + 1, a) : nothing
end
trip_bound(::Val, t::LoopBody, e) = nothing
function trip_bound(::Val{:convert_element_type}, t::LoopBody, e)
    bound = isinteger_dtype(dtype(e.outputs[1])) ? trip_bound(t, e.inputs[1]) : nothing
    bound === nothing ? nothing : within_type(bound, e.outputs[1])
end
# i < 0 ? i + n : i
function trip_bound(::Val{:select_n}, t::LoopBody, e)
    test = e.inputs[1] isa Var ? get(t.producer, e.inputs[1], nothing) : nothing
    test !== nothing && name(test.op) === :lt && iszero_literal(test.inputs[2]) &&
        trip_bound(t, test.inputs[1]) !== nothing ? trip_bound(t, e.inputs[2]) : nothing
end

"The same of the slices of an operand: the numbers of its places."
function slices_bound(t::LoopBody, a)
    e = a isa Var ? get(t.definition, a, nothing) : nothing
    e !== nothing && name(e.op) === :iota && length(shape(a)) == 1 ?
    within_type(Int(shape(a)[1]), a) : nothing
end
within_type(bound, a) = bound - 1 <= typemax(dtype(a)) ? bound : nothing
