# Straight-line code that repeats itself, as a loop again. Python loops are unrolled by tracing;
# rolled back, their derivatives and kernels take the time of one trip to make. The pass makes a
# `scan`, and looks into `slice`, which is how such loops take elements.

"""
    reroll_loops(program) -> Program

The same Program with `scan` for stretches of code in which one block of equations follows another
and each trip takes what the trip before left, the same values as all others, the next element of
an array, or a number of its own. Values do not change. The last trip stays as it is: what comes
after mostly needs parts of it. Short stretches stay too."""
reroll_loops(p::Program) = rolled(rolled(p, true), false)

"""
With loops of trips whose numbers are the same (`exact`), or any. First the same ones: of a loop
around stages that differ in their numbers, the loop is found and not the stages."""
function rolled(p::Program, exact)
    length(p.equations) < WORTH_ROLLING && return p
    c = Code(p, exact)
    b, env, i = Builder(), Environment(), 1
    while i <= length(p.equations)
        check_cancelled()
        l = loop_at(c, i)
        if l === nothing
            e = p.equations[i]
            push!(b.equations, with(e; inputs = Atom[get(env, a, a) for a in e.inputs]))
            i += 1
        else
            roll!(b, env, c, l)
            i += l.trips * l.period
        end
    end
    with(p; equations = b.equations, outputs = Atom[get(env, a, a) for a in p.outputs])
end

"The equations with what tells them apart, where each variable is set, and where it is last used."
struct Code
    equations::Vector{Equation}
    kinds::Vector{UInt}
    places::IdDict{Var,Int}                 # (equation, result) as one number
    last_use::IdDict{Var,Int}
    alike::Dict{UInt,Vector{Int}}           # equations by kind, in order
    # by period: up to where equations are known to be like those a period later, and where what
    # they take is too
    alike_until::Vector{Int}
    steady_until::Vector{Int}
end
const MOST_RESULTS = 1024

function Code(p::Program, exact)
    kinds = map(e -> kind(e, exact), p.equations)
    places, last_use, alike = IdDict{Var,Int}(), IdDict{Var,Int}(), Dict{UInt,Vector{Int}}()
    for (i, e) in enumerate(p.equations)
        push!(get!(() -> Int[], alike, kinds[i]), i)
        foreach((o, v) -> places[v] = MOST_RESULTS * i + o, 1:length(e.outputs), e.outputs)
        foreach(a -> a isa Var && (last_use[a] = i), e.inputs)
    end
    foreach(a -> a isa Var && (last_use[a] = typemax(Int)), p.outputs)
    n = length(kinds)
    Code(p.equations, kinds, places, last_use, alike, zeros(Int, n), zeros(Int, n))
end

isslice(e::Equation) = name(e.op) === :slice

"""
A hash of all that must be equal in two trips. Where a slice begins is not, nor, unless `exact`, are
numbers; equations with bodies are like no other."""
function kind(e::Equation, exact)
    (hasbodies(e) || length(e.outputs) >= MOST_RESULTS) && return objectid(e.outputs)
    h = foldl((h, v) -> hash(aval(v), h), e.outputs; init = hash(name(e.op)))
    h = foldl((h, a) -> hash(operand_kind(a, exact), h), e.inputs; init = h)
    isslice(e) ? hash(e[:strides], h) :
    foldl((h, k) -> hash(k => e[k], h), sort!(collect(keys(e.attrs))); init = h)
end

operand_kind(a::Var, exact) = aval(a)
operand_kind(a::Literal, exact) = exact || !isconstant_number(a.value) ? a : typeof(a.value)

# What an operand is in every trip.
struct Invariant            # the same variable
    value::Var
end
struct Local                # result `result` of the block's equation `equation`, of this trip
    equation::Int
    result::Int
end
struct Carried              # the same of the trip before, and before the first trip `start`
    of::Local
    start::Var
end
struct Elements             # the next element along `axis`, for a slice
    array::Var
    axis::Int
    first::Int
    step::Int
    window::Tuple           # start and limit of the first trip: slices may differ along other axes
end
struct PerTrip              # a number of its own in each trip
    values::Vector{Literal}
end
Base.:(==)(a::PerTrip, b::PerTrip) = a.values == b.values
Base.hash(x::PerTrip, h::UInt) = hash(x.values, h)

"""
`trips` times a block of `period` equations, from equation `first` on; `operands` of each equation
of the block."""
struct RepeatedBlock
    first::Int
    period::Int
    trips::Int
    operands::Vector{Vector{Any}}
end
"Equation `k` of trip `t`, both from 0."
equation(c::Code, l::RepeatedBlock, k, t) = c.equations[l.first+t*l.period+k]

isworth(trips, period) = trips > FEWEST_TRIPS && trips * period >= WORTH_ROLLING

"The loop that begins with equation `i`, or nothing."
function loop_at(c::Code, i)
    candidates = c.alike[c.kinds[i]]
    from = searchsortedfirst(candidates, i) + 1
    for j in candidates[from:min(end, from + MOST_CANDIDATES)]
        period = j - i
        isworth((alike_until(c, i, period) - i) ÷ period + 1, period) || continue
        trips = (steady_until(c, i + period, period) - i) ÷ period + 1
        isworth(trips, period) || continue
        l = RepeatedBlock(i, period, trips, Vector{Any}[])
        all(k -> find_operands!(c, l, k), 0:period-1) || continue
        broken = findfirst(t -> !follows(c, l, t), 2:trips-1)
        trips = broken === nothing ? trips : broken + 1
        # The last trip stays.
        isworth(trips, period) &&
            return with_varying(c, RepeatedBlock(i, period, trips - 1, l.operands))
    end
    nothing
end

"The block with `PerTrip` for literals that are not the same in all trips."
with_varying(c::Code, l::RepeatedBlock) =
    RepeatedBlock(l.first, l.period, l.trips, [
        Any[in_trips(x, c, l, k - 1, s) for (s, x) in enumerate(list)]
        for (k, list) in enumerate(l.operands)
    ])
in_trips(x, c, l, k, s) = x
function in_trips(x::Literal, c, l, k, s)
    values = Literal[equation(c, l, k, t).inputs[s] for t in 0:l.trips-1]
    all(a -> a === x, values) ? x : PerTrip(values)
end

"The first equation from `i` that is not like the one a period later."
alike_until(c::Code, i, period) =
    first_since(c.alike_until, i, period, length(c.equations)) do x
        c.kinds[x] != c.kinds[x+period]
    end

"""
The first equation from `i` that is not like the one a period later, or whose operands are not those
that a loop has from its second trip on: the same variables, or the same results of a trip later."""
steady_until(c::Code, i, period) =
    first_since(c.steady_until, i, period, length(c.equations)) do x
        c.kinds[x] != c.kinds[x+period] || !issteady(c, x, period)
    end

function issteady(c::Code, x, period)
    for (a, b) in zip(c.equations[x].inputs, c.equations[x+period].inputs)
        a isa Var && a !== b || continue
        p = get(c.places, a, 0)
        p > 0 && get(c.places, b, 0) == p + MOST_RESULTS * period || return false
    end
    true
end

"""
The first `x` from `i` on for which `differs(x)`, or that has no equation a period later; `known`
holds what was found for this period, so that each `x` is looked at once."""
function first_since(differs, known, i, period, n)
    known[period] >= i && return known[period]
    x = i
    while x + period <= n && !differs(x)
        x += 1
    end
    known[period] = x
end

"""
Notes what the operands of equation `k` are, judged by two trips; false where they
are something else."""
function find_operands!(c::Code, l::RepeatedBlock, k)
    e, f = equation(c, l, k, 0), equation(c, l, k, 1)
    operands = Any[operand(c, l, a, b) for (a, b) in zip(e.inputs, f.inputs)]
    isslice(e) && e[:start] != f[:start] && (operands[1] = elements(e, f, operands[1]))
    push!(l.operands, operands)
    !any(isnothing, operands)
end
operand(c, l, a::Literal, b::Literal) = a
function operand(c, l, a::Var, b::Var)
    p, q = (get(c.places, v, 0) ÷ MOST_RESULTS for v in (a, b))
    q < l.first && return a === b ? Invariant(a) : nothing
    trip, k = fldmod(q - l.first, l.period)
    result = Local(k, c.places[b] % MOST_RESULTS)
    trip == 1 && return p == q - l.period ? result : nothing
    trip == 0 && p < l.first ? Carried(result, a) : nothing
end
elements(e, f, array) = nothing
function elements(e, f, array::Invariant)
    all(d -> d isa Int, vcat(e[:start], e[:limit], f[:start], f[:limit])) || return nothing
    axes = findall(e[:start] .!= f[:start])
    length(axes) == 1 && e[:limit][axes[1]] - e[:start][axes[1]] == 1 || return nothing
    from, window = e[:start][axes[1]], (Tuple(e[:start]), Tuple(e[:limit]))
    Elements(array.value, axes[1] - 1, from, f[:start][axes[1]] - from, window)
end

"Whether trip `t` is like the first two."
follows(c::Code, l::RepeatedBlock, t) = all(k -> follows(c, l, k, t), 0:l.period-1)
function follows(c, l, k, t)
    e, operands = equation(c, l, k, t), l.operands[k+1]
    all(s -> follows(operands[s], c, l, e.inputs[s], t), eachindex(operands)) &&
        (!(isslice(e)) || e[:start] == start(operands[1], equation(c, l, k, 0), t))
end
follows(x::Literal, c, l, a, t) = true
follows(x::Invariant, c, l, a, t) = a === x.value
follows(x::Local, c, l, a, t) = a === result_of(c, l, x, t)
follows(x::Carried, c, l, a, t) = a === result_of(c, l, x.of, t - 1)
follows(x::Elements, c, l, a, t) = a === x.array
result_of(c, l, x::Local, t) = equation(c, l, x.equation, t).outputs[x.result]

"Where a slice begins in trip `t`."
start(x, first_slice, t) = first_slice[:start]
start(x::Elements, first_slice, t) =
    [d - 1 == x.axis ? x.first + t * x.step : n for (d, n) in enumerate(first_slice[:start])]

# ---- writing

function roll!(b::Builder, env, c::Code, l::RepeatedBlock)
    operands = unique(x for list in l.operands for x in list)
    invariants, carried, slices = ([x for x in operands if x isa T]
     for T in (Invariant, Carried, Union{Elements,PerTrip}))
    stacks = stacked_results(c, l, carried)
    b.source = equation(c, l, 0, 0).source
    now(v) = get(env, v, v)
    xs = Atom[of_all_trips(b, x, l, c, now) for x in slices]
    body = block_body(c, l, invariants, carried, slices, map(first, stacks), xs)
    y = emit!(b, primitive(:scan),
        vcat(Atom[now(x.value) for x in invariants], Atom[now(x.start) for x in carried], xs),
        Attributes(:length => l.trips, :reverse => false, :consts => length(invariants),
            :carry => length(carried), :unroll => 1, :body => body))
    for (x, v) in zip(carried, y)
        env[result_of(c, l, x.of, l.trips - 1)] = v
    end
    for ((x, trips), v) in zip(stacks, y[length(carried)+1:end]), t in trips
        env[result_of(c, l, x, t)] = trip_of(b, v, t)
    end
end

"""
The results of trips that later code uses, and which trips: other than those that the loop carries
to its end."""
function stacked_results(c::Code, l::RepeatedBlock, carried)
    after, found = l.first + l.trips * l.period, Pair{Local,Vector{Int}}[]
    atend = Set(x.of for x in carried)
    for k in 0:l.period-1, o in eachindex(equation(c, l, k, 0).outputs)
        x = Local(k, o)
        trips = [
            t for t in 0:l.trips-1 if get(c.last_use, result_of(c, l, x, t), 0) >= after &&
            !(t == l.trips - 1 && x in atend)
        ]
        isempty(trips) || push!(found, x => trips)
    end
    found
end

"What an operand is in all trips, along a new first axis."
of_all_trips(b::Builder, x::PerTrip, l, c, now) =
    emit(b, :constant; value = constant_numbers(a.value for a in x.values),
        type = TensorType(typeof(x.values[1].value), Dim[l.trips]))
function of_all_trips(b::Builder, x::Elements, l, c, now)
    array = now(x.array)
    e = equation(c, l, findfirst(list -> x in list, l.operands) - 1, 0)
    from, limit, strides = copy(e[:start]), copy(e[:limit]), copy(e[:strides])
    final = x.first + (l.trips - 1) * x.step
    from[x.axis+1], limit[x.axis+1], strides[x.axis+1] = (min(x.first, final),
        max(x.first, final) + 1, abs(x.step))
    y = emit(b, :slice, array; start = from, limit = limit, strides = strides)
    x.step < 0 && (y = emit(b, :rev, y; dims = [x.axis]))
    rank = length(from)
    x.axis == 0 ? y :
    emit(b, :transpose, y; perm = [x.axis, filter(!=(x.axis), 0:rank-1)...])
end

function trip_of(b::Builder, stack, t)
    rest = Int[d for d in shape(stack)[2:end]]
    y = emit(b, :slice, stack; start = [t, zero(rest)...], limit = [t + 1, rest...],
        strides = ones(Int, length(rest) + 1))
    emit(b, :squeeze, y; dims = [0])
end

function block_body(c::Code, l::RepeatedBlock, invariants, carried, slices, stacks, xs)
    types = vcat([aval(x.value) for x in invariants], [aval(x.start) for x in carried],
        [TensorType(dtype(a), shape(a)[2:end]) for a in xs])
    build("block", types) do b, v
        given_ = Dict{Any,Atom}(zip(Any[invariants..., carried..., slices...], v))
        atom(x::Literal) = x
        atom(x) = given_[x]
        for (k, operands) in enumerate(l.operands)
            e = equation(c, l, k - 1, 0)
            b.source = e.source
            y =
                !isempty(operands) && operands[1] isa Elements ?
                [emit(b, :reshape, atom(operands[1]); shape = shape(e.outputs[1]))] :
                emit!(b, e.op, Atom[operand_of(b, e, x, atom(x)) for x in operands], e.attrs)
            foreach((o, a) -> given_[Local(k - 1, o)] = a, eachindex(y), y)
        end
        vcat(Atom[given_[x.of] for x in carried], Atom[given_[s] for s in stacks])
    end
end

operand_of(b::Builder, e::Equation, x, atom) = atom
"A number goes with arrays where it is a literal; what is a variable has their shape."
operand_of(b::Builder, e::Equation, ::PerTrip, atom) =
    iselementwise(e.op) && !isscalar(e.outputs[1]) ?
    emit(b, :broadcast_in_dim, atom; shape = shape(e.outputs[1]), dims = Int[]) : atom
