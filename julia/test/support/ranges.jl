# Random Programs on numbers from the whole range of a dtype, and what they are in exact arithmetic.

using JaxprAD: Builder, Literal, TensorType, Atom, Equation, emit, emits

# ---- random Programs

"A Program that grows: what it has computed so far, in three shapes."
struct Growing
    rng::MersenneTwister
    builder::Builder
    type::DataType
    atoms::Vector{Atom}
end
const ROWS, COLUMNS = 5, 3
const SHAPES = [[ROWS, COLUMNS], [ROWS], Int[]]

"A shape of which there is something."
shape_in(g::Growing, shapes = SHAPES) = rand(g.rng, filter(n -> !isempty(of_shape(g, n)), shapes))
of_shape(g::Growing, n) = filter(a -> aval(a).shape == n, g.atoms)
"One of those computed last is likelier than one of the first."
function chosen_of(g::Growing, n)
    atoms = of_shape(g, n)
    atoms[max(1, length(atoms) - floor(Int, length(atoms) * rand(g.rng)^2))]
end
keep!(g::Growing, a::Atom) = (push!(g.atoms, a); a)
"A number whose exponent is about `middle`, within the range of normal numbers."
function number_of_range(rng, ::Type{T}, middle, width) where {T}
    e = clamp(round(Int, middle + width * randn(rng)), exponent(floatmin(T)), exponent(floatmax(T)))
    rand(rng, (-1, 1)) * ldexp(T(1 + rand(rng)), e)
end
"An array of such numbers, of a variable's type."
numbers_of_range(rng, v, middle, width) =
    map(_ -> number_of_range(rng, dtype(v), middle, width), zeros(reverse(Int.(aval(v).shape))...))
"""
The exponent about which an array's numbers lie: of ordinary numbers, of either end of the range, of
numbers whose squares or products with each other are there, or any."""
function middle_of_range(rng, ::Type{T}) where {T}
    low, high = exponent(floatmin(T)), exponent(floatmax(T))
    rand(rng, (0, 0, 0, low + rand(rng, 0:3), high - rand(rng, 0:3), low ÷ 2, high ÷ 2, high ÷ 2,
        rand(rng, low:high)))
end

const UNARY = (:neg, :abs, :sqrt, :rsqrt, :square, :exp, :log, :tanh, :logistic, :log1p, :expm1)
const BINARY = (:add, :add, :sub, :mul, :mul, :div, :div, :max, :min)

step_unary!(g) = keep!(g, emit(g.builder, rand(g.rng, UNARY), chosen_of(g, shape_in(g))))
step_power!(g) = keep!(g,
    emit(g.builder, :integer_pow, chosen_of(g, shape_in(g)); y = rand(g.rng, -2:3)))
function step_binary!(g)
    n = shape_in(g)
    keep!(g, emit(g.builder, rand(g.rng, BINARY), chosen_of(g, n), chosen_of(g, n)))
end
function step_literal!(g)
    number = Literal(number_of_range(g.rng, g.type, middle_of_range(g.rng, g.type), 1))
    operands = shuffle(g.rng, Atom[chosen_of(g, shape_in(g)), number])
    keep!(g, emit(g.builder, rand(g.rng, BINARY), operands...))
end
function step_broadcast!(g)
    a = chosen_of(g, shape_in(g, SHAPES[2:3]))
    spread = emit(g.builder, :broadcast_in_dim, a;
        shape = SHAPES[1], dims = collect(0:length(aval(a).shape)-1))
    keep!(g, emit(g.builder, rand(g.rng, BINARY), chosen_of(g, SHAPES[1]), spread))
end
function step_sum!(g)
    op = rand(g.rng, (:reduce_sum, :reduce_sum, :reduce_max))
    keep!(g, emit(g.builder, op, chosen_of(g, SHAPES[1]); axes = rand(g.rng, ([1], [0, 1]))))
end
"u w + v w, u / w - v / w, and sums of such sums."
function step_common!(g)
    n, op = shape_in(g), rand(g.rng, (:mul, :div))
    w = rand(g.rng) < 0.5 ? chosen_of(g, n) :
        Literal(number_of_range(g.rng, g.type, middle_of_range(g.rng, g.type), 1))
    terms = [emit(g.builder, op, chosen_of(g, n), w) for _ in 1:2]
    keep!(g, emit(g.builder, rand(g.rng, (:add, :sub)), terms...))
end
function step_product!(g)
    u, v = (chosen_of(g, SHAPES[1]) for _ in 1:2)
    y = emit(g.builder, :dot_general, u, v; lhs_contract = [1], rhs_contract = [1],
        lhs_batch = [0], rhs_batch = [0], dtype = JaxprAD.dtype_name(g.type), precision = nothing)
    keep!(g, y)
end
"A loop over rows whose carry is a row of numbers that are multiplied, divided and added to."
function step_loop!(g)
    T = g.type
    row, item = TensorType(T, [ROWS]), TensorType(T, Int[])
    body = JaxprAD.build("", [row, row, item]) do b, (factor, carry, x)
        h = Growing(g.rng, b, T, Atom[factor, carry, x])
        foreach(_ -> (rand(g.rng) < 0.5 ? step_binary! : step_common!)(h), 1:3)
        spread = emit(b, :broadcast_in_dim, x; shape = [ROWS], dims = Int[])
        Atom[emit(b, rand(g.rng, (:add, :mul)), chosen_of(h, [ROWS]), spread)]
    end
    inputs = Atom[chosen_of(g, [ROWS]) for _ in 1:3]
    foreach(a -> keep!(g, a), emits(g.builder, :scan, inputs;
        body = body, length = ROWS, reverse = rand(g.rng, Bool), consts = 1, carry = 1, unroll = 1))
end

const STEPS = (step_unary!, step_unary!, step_power!, step_binary!, step_binary!, step_literal!,
    step_literal!, step_broadcast!, step_broadcast!, step_sum!, step_common!, step_product!,
    step_loop!)

"A well-typed Program of `n` steps on numbers of type `T`, and inputs for it."
function random_program(rng, ::Type{T}, n) where {T}
    types = [TensorType(T, shape) for shape in vcat(SHAPES, SHAPES)]
    p = JaxprAD.build("random", types) do b, v
        g = Growing(rng, b, T, Atom[v...])
        foreach(_ -> rand(rng, STEPS)(g), 1:n)
        Atom[g.atoms[end], chosen_of(g, [ROWS, COLUMNS])]
    end
    typecheck(p), random_inputs(rng, p)
end
random_inputs(rng, p::Program) = map(p.inputs) do v
    numbers_of_range(rng, v, middle_of_range(rng, dtype(v)), rand(rng, (1, 1, 8)))
end

# ---- exact arithmetic

"Functions of numbers of any precision; what is not real is NaN."
const EXACTLY = Dict{Symbol,Function}(
    :neg => -, :abs => abs, :sign => sign, :sqrt => x -> x < 0 ? big(NaN) : sqrt(x),
    :rsqrt => x -> x < 0 ? big(NaN) : 1 / sqrt(x), :square => x -> x^2,
    :one_minus_square => x -> 1 - x^2, :exp => exp, :expm1 => expm1, :tanh => tanh,
    :log => x -> x < 0 ? big(NaN) : log(x), :log1p => x -> x < -1 ? big(NaN) : log1p(x),
    :logistic => x -> 1 / (1 + exp(-x)), :add => +, :sub => -, :mul => *, :div => /,
    :max => max, :min => min, :pow => ^, :eq => ==, :ne => !=, :lt => <, :le => <=, :gt => >,
    :ge => >=, :and => &, :or => |, :not => !,
    :select_n => (which, cases...) -> cases[Int(which)+1],
    :is_finite => isfinite, :copy => identity, :stop_gradient => identity
)
exactly(e::Equation) =
    name_of(e) === :integer_pow ? (x -> x^e[:y]) :
    name_of(e) === :convert_element_type ? as_exact : EXACTLY[name_of(e)]

"""
An evaluation in exact arithmetic (of 256 bits), or with a relative error of at most `u`, and an
absolute one of at most `least`, in each operation. `largest_term`: of all that was added.
`smallest`, `largest`: of the magnitudes of all results but zero."""
mutable struct Exact
    rng::MersenneTwister
    u::BigFloat
    least::BigFloat
    largest_term::BigFloat
    smallest::BigFloat
    largest::BigFloat
end
exactly_evaluated(rng) = Exact(rng, 0, 0, 0, Inf, 0)
with_rounding(rng, ::Type{T}) where {T} = Exact(rng, eps(T), nextfloat(T(0)), 0, Inf, 0)

rounded(x::Exact, v) = v
function rounded(x::Exact, v::BigFloat)
    iszero(x.u) || !isfinite(v) ? v :
    v * (1 + x.u * rand(x.rng, -1:1)) + x.least * rand(x.rng, -1:1)
end

as_exact(v::Union{Bool,AbstractFloat}) = BigFloat(v)
as_exact(a::AbstractArray{<:AbstractFloat}) = Array{Any}(map(big, a))
as_exact(a::AbstractArray) = Array{Any}(a)

function (x::Exact)(p::Program, inputs)
    values = IdDict{Any,Any}(zip(p.inputs, inputs))
    value(a::Literal) = as_exact(fill(a.value))
    value(a) = values[a]
    for e in p.equations
        operands = Any[value(a) for a in e.inputs]
        name_of(e) in SUMS && note_terms!(x, operands)
        for (v, y) in zip(e.outputs, exact_results(x, e, operands))
            values[v] = y
            note_magnitudes!(x, y)
        end
    end
    Any[value(a) for a in p.outputs]
end
const SUMS = (:add, :sub, :reduce_sum, :dot_general)
function note_terms!(x::Exact, operands)
    for a in operands, v in a
        isfinite(v) && (x.largest_term = max(x.largest_term, abs(v)))
    end
end

function note_magnitudes!(x::Exact, y)
    for v in y
        v isa BigFloat && !iszero(v) || continue
        x.smallest, x.largest = min(x.smallest, abs(v)), max(x.largest, abs(v))
    end
end

exact_results(x::Exact, e::Equation, operands) =
    name_of(e) === :scan ? exact_loop(x, e, operands) :
    JaxprAD.iselementwise(e.op) ? [exact_elements(x, exactly(e), operands)] :
    exact_movement(x, e, operands)

function exact_elements(x::Exact, f, operands)
    shape = size(operands[argmax(map(ndims, operands))])
    at(a, k) = ndims(a) == 0 ? a[] : a[k]
    reshape(Any[rounded(x, f((at(a, k) for a in operands)...)) for k in 1:prod(shape)], shape)
end

"By the primitive's own method, which knows no dtype but that of its operands."
function exact_movement(x::Exact, e::Equation, operands)
    wide(T) = T <: AbstractFloat ? BigFloat : T
    types = TensorType[TensorType(wide(dtype(v)), aval(v).shape) for v in e.outputs]
    typed = Any[Array{wide(dtype(a))}(v) for (a, v) in zip(e.inputs, operands)]
    Any[as_exact(map(v -> rounded(x, v), y))
        for y in JaxprAD.evaluate(e.op, typed, e.attrs, types)]
end

function exact_loop(x::Exact, e::Equation, operands)
    consts, carry, xs = JaxprAD.operand_parts(e.attrs, operands)
    trips, stacks = 1:e[:length], Dict{Int,Vector{Any}}()
    for t in (e[:reverse] ? reverse(trips) : trips)
        items = Any[Array{Any}(collect(selectdim(v, ndims(v), t))) for v in xs]
        carry, stacks[t] = JaxprAD.result_parts(e.attrs, x(e[:body], vcat(consts, carry, items)))
    end
    stacked(k) = cat((stacks[t][k] for t in trips)...; dims = ndims(stacks[1][k]) + 1)
    vcat(carry, Any[stacked(k) for k in eachindex(stacks[1])])
end

# ---- what passes may change

"""
A Program with inputs; what it gives as written; what would be exact, and how far from that the
rounding of its operations leads; and whether the terms of its sums may be added in any order."""
struct Judged
    inputs::Vector{Any}
    written::Vector{Any}
    exact::Vector{Any}
    spread::Vector{Any}
    inanyorder::Bool
end

function judged(rng, p::Program, inputs, samples = 4)
    T, x, plain = dtype(p.inputs[1]), map(as_exact, inputs), exactly_evaluated(rng)
    exact = plain(p, x)
    others = [with_rounding(rng, T)(p, x) for _ in 1:samples]
    spread = Any[
        [furthest(y[i], [other[k][i] for other in others]) for i in eachindex(y)]
        for (k, y) in enumerate(exact)
    ]
    Judged(inputs, run(p, inputs), exact, spread, plain.largest_term < big(floatmax(T)) / 64)
end
"Whether all that a Program computes is in the range of ordinary numbers of its dtype, or zero."
function stays_in_range(rng, p::Program, inputs)
    T, plain = dtype(p.inputs[1]), exactly_evaluated(rng)
    plain(p, map(as_exact, inputs))
    floatmin(T) <= plain.smallest && plain.largest <= floatmax(T)
end
furthest(y, others) =
    all(isfinite, others) ? maximum([abs(other - y) for other in others]) : big(Inf)

"""
Where a Program that a pass made gives a number that is not finite, or is further from the exact one
than rounding explains, though the Program as written is right there: a text that says so, or
nothing."""
function out_of_range(j::Judged, made::Program, name)
    found = run(made, j.inputs)
    for k in eachindex(found), i in eachindex(found[k])
        w, r, y, spread = j.written[k][i], found[k][i], j.exact[k][i], j.spread[k][i]
        # Where rounding alone may make another number of it, all is right.
        isfinite(w) && isfinite(y) && spread <= abs(y) && abs(w - y) <= abs(y) / 8 || continue
        least = nextfloat(zero(w))
        bound = 64spread + 4abs(w - y) + 16eps(typeof(w)) * abs(y) + 4least
        isfinite(r) ? abs(r - y) <= bound && continue : j.inanyorder || continue
        return "$name: result $k at $i is $r, as written $w, exactly $(Float64(y)), " *
               "within $(Float64(bound))"
    end
    nothing
end
