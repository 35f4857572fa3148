# Random numbers of Julia's. Drawn while a function is traced they are constants of its Program, the
# same at each call and in each trip of a loop: that is refused. A transform at the outermost traces
# at each call and runs what it has traced once, so that there they are Julia's.

"What tells whether numbers were drawn from Julia's default generator."
random_state() = generator_state(Random.default_rng())
generator_state(r::MersenneTwister) = (r.idxF, r.idxI, r.state.val[1], r.state.val[2])
# in tasks of Julia 1.7 and newer; its other field is for tasks that are started
generator_state(r::AbstractRNG) = (c = copy(r); (c.s0, c.s1, c.s2, c.s3))

const DRAWN_ONCE =
    "random numbers are drawn while a function is traced: they would be the same at each call, " *
    "in each trip of a loop and for all elements of a broadcast. Make them an argument, drawn " *
    "before the call; or, where they are to be the same, draw them from a generator with a seed " *
    "that the function makes: `rand(MersenneTwister(1), 3)`"
refuse_random(line = user_line()) = throw(TracingFailed(DRAWN_ONCE, line, nothing))

"Refuses an equation of a trace that is kept, where random numbers were drawn before it."
check_random(r::OpenTrace, line) =
    r.random === nothing || r.random == random_state() || refuse_random(line)

"""
Refuses random numbers from here on, since what follows is called once for all elements; the result
ends it. Not a function of what is called: inference would have to look through it, again and again.
"""
function watch_random()
    r = open_recording()::OpenTrace
    before = r.random
    r.random === nothing && (r.random = random_state())
    before
end
function end_watch(before)
    r = open_recording()::OpenTrace
    check_random(r, user_line())
    r.random = before
    nothing
end

"The generators in a function's variables and among its arguments, with copies."
function generators(@nospecialize(f), @nospecialize(arguments))
    variables = Any[getfield(f, k) for k in 1:nfields(f) if isdefined(f, k)]
    found = filter(x -> x isa AbstractRNG, Any[variables..., arguments...])
    Pair[r => deepcopy(r) for r in found]
end
check_generators(found) = foreach(found) do (r, before)
    same_fields(r, before) || refuse_random()
end
same_fields(x, y) =
    x === y || typeof(x) === typeof(y) && (x isa Union{AbstractArray,Number} ? isequal(x, y) :
     nfields(x) > 0 && all(k -> same_fields(getfield(x, k), getfield(y, k)), 1:nfields(x)))
