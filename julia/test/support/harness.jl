# The checks that every rule must pass. Each is a predicate, so that a deliberately wrong rule can
# be shown to fail it (`harness_test.jl`); `check` runs them all on one Program.

using JaxprAD, Test, Random
import JaxprAD:
    Program, parse_program, typecheck, jvp, linearize, vjp, program_text, isinexact,
    dtype, aval

"""
A Program from its signature and body: `program(\"(%0: f64[3]) { %1: f64[3] = sin
%0 return %1 }\")`."""
program(text) = parse_program(startswith(text, "pybridge") ? text : "pybridge 1\nprogram f" * text)

"JaxprAD's primitives, without those that tests define."
const OWN_PRIMITIVES = collect(values(JaxprAD.PRIMITIVES))

name_of(e::JaxprAD.Equation) = JaxprAD.name(e.op)

"Random numbers that depend on the test's name alone."
seeded(name) =
    MersenneTwister(foldl((h, c) -> 0x01000193 * (h ⊻ UInt32(c)), name; init = 0x811c9dc5))

"""
A standard normal array for a type of the Program; `shape` is the Program's, so the
dimensions are reversed."""
normal(rng, ::Type{T}, shape = Int[]) where {T<:Union{Float32,Float64}} =
    randn(rng, T, reverse(Tuple(shape))...) |> asarray
normal(rng, ::Type{T}, shape = Int[]) where {T<:AbstractFloat} =
    T.(normal(rng, Float32, shape)) |> asarray
normal(rng, ::Type{Complex{T}}, shape = Int[]) where {T} =
    complex.(normal(rng, T, shape), normal(rng, T, shape)) |> asarray
asarray(x::AbstractArray) = x
asarray(x::Number) = fill(x)
"""
Numbers far apart in random order, so that neighbouring inputs have the same order and
the same extrema."""
spaced(rng, size...) = reshape(shuffle(rng, collect(range(-2.0, 2.0; length = prod(size)))), size)
like(rng, x::AbstractArray) = normal(rng, eltype(x), reverse(size(x)))

"""
A row-major array written in the Program's order: `rowmajor([1 2; 3 4])` is the 2×2
array with those rows."""
rowmajor(x::AbstractArray) = permutedims(x, ndims(x):-1:1)
rowmajor(x::AbstractVector) = x

"""
Processor time that `f()` takes at best, in seconds: other processes do not count, and a collection
more or less hardly does."""
function least_seconds(f)
    clock() = ccall(:clock, Clong, ()) / 1e6
    minimum((start = clock(); f(); clock() - start) for _ in 1:4)
end

run(p::Program, x) = JaxprAD.evaluate(p, collect(Any, x))

# A tangent space element is a vector of arrays.
move(x, h, ẋ) = Any[v isa Nothing ? a : moved(a, eltype(a)(h), v) for (a, v) in zip(x, ẋ)]
# A loop, since Julia takes ten times as long to compile a broadcast, for each dtype and rank.
function moved(x, h, ẋ)
    y = copy(x)
    for i in eachindex(y, ẋ)
        y[i] += h * ẋ[i]
    end
    y
end
inexact_only(xs) = Any[x for x in xs if isinexact(eltype(x))]
"The numbers in order, in double precision: most checks are compiled for these two types alone."
wide(x::AbstractArray) = convert(Vector{Float64}, vec(x))
wide(x::AbstractArray{<:Complex}) = convert(Vector{ComplexF64}, vec(x))
largest(xs) = reduce(max, xs; init = 0.0)       # `maximum` of nothing needs Julia 1.6
magnitude(xs) = largest(Float64[largest(abs.(wide(x))) for x in xs])
difference(a, b) = Any[wide(x) .- wide(y) for (x, y) in zip(a, b)]
"""
Transposition does not conjugate, and primitives such as `real` are only real-linear: the
pairing is Re Σ ab."""
pairing(a, b) = sum(Float64[real(sum(wide(x) .* wide(y))) for (x, y) in zip(a, b)])

"""
The largest error relative to the largest entry (absolutely below 1); a NaN on one side
only is infinite."""
function relative_error(a, b)
    length(a) == length(b) && all(size(x) == size(y) for (x, y) in zip(a, b)) || return Inf
    worst = 0.0
    for (x, y) in zip(a, b)
        scale = max(1.0, magnitude(Any[filter(isfinite, wide(y))]))
        for (u, v) in zip(wide(x), wide(y))
            isequal(u, v) || (isnan(u) && isnan(v)) || u == v ||
                (worst = max(worst, isfinite(u) && isfinite(v) ? abs(u - v) / scale : Inf))
        end
    end
    worst
end

"""
A Program with the types and inputs that a check works on: x, the active inputs,
tangents for them."""
struct Case
    program::Program
    x::Vector{Any}
    active::Vector{Bool}
    rng::MersenneTwister
    tolerance::Float64
end
function Case(text::AbstractString, x...; active = nothing, name = text, tolerance = nothing)
    p, x = program(text), collect(Any, map(asarray, x))
    act = active === nothing ? Bool[isinexact(dtype(v)) for v in p.inputs] : collect(Bool, active)
    precision = max(eps(),
        largest(
            Float64[eps(JaxprAD.real_dtype(dtype(v)))
                    for v in p.inputs if isinexact(dtype(v))]
        ))
    Case(p, x, act, seeded(name), something(tolerance, precision^0.6))
end
tangents(c::Case) = Any[a ? like(c.rng, x) : nothing for (a, x) in zip(c.active, c.x)]
only_active(c::Case, ẋ) = ẋ[c.active]
takes(p::Program) = Bool[isinexact(dtype(a)) for a in p.outputs]
cotangents(c::Case) = Any[like(c.rng, y) for y in inexact_only(run(c.program, c.x))]

"A Program is well typed and its text reads back as the same text."
function wellformed(p::Program)
    typecheck(p)
    text = program_text(p)
    program_text(typecheck(parse_program(text))) == text
end

"Central differences of `f` at `x` along `ẋ`, for a sweep of steps."
steps = 2.0 .^ (-6:-2:-22)
differences(f, x, ẋ) =
    [Any[d ./ 2h for d in difference(f(move(x, h, ẋ)), f(move(x, -h, ẋ)))] for h in steps]

"""
The result has the declared types, equals the reference, is the same on a second call, and the
inputs are untouched."""
function value_agrees(c::Case, reference)
    before = deepcopy(c.x)
    y = run(c.program, c.x)
    typed = all(
        eltype(v) === dtype(a) && [reverse(size(v))...] == aval(a).shape
        for (v, a) in zip(y, c.program.outputs) if all(d -> d isa Int, aval(a).shape)
    )
    wellformed(c.program) && typed && isequal(before, c.x) && isequal(y, run(c.program, c.x)) &&
        (
            reference === nothing ||
            relative_error(y, Any[asarray(r) for r in reference(c.x...)]) <=
            max(c.tolerance^1.4, 4eps())
        )
end

push_forward(c::Case, ẋ) = begin
    j = jvp(c.program, c.active)
    out = run(j, vcat(c.x, only_active(c, ẋ)))
    wellformed(j), out[1:length(c.program.outputs)], out[length(c.program.outputs)+1:end]
end

"jvp gives the value and the derivative that the best of a sweep of finite differences gives."
function jvp_agrees(c::Case)
    ẋ = tangents(c)
    typed, y, ẏ = push_forward(c, ẋ)
    estimates = differences(x -> inexact_only(run(c.program, x)), c.x, ẋ)
    typed && relative_error(y, run(c.program, c.x)) == 0 &&
        minimum(relative_error(map(wide, ẏ), e) for e in estimates) <= c.tolerance
end

twice_added(a, b) = Any[u isa Nothing ? nothing : moved(u, eltype(u)(2), v) for (u, v) in zip(a, b)]

"The tangent map is additive and homogeneous."
function jvp_is_linear(c::Case)
    a, b = tangents(c), tangents(c)
    at(ẋ) = push_forward(c, ẋ)[3]
    relative_error(at(twice_added(a, b)), twice_added(at(a), at(b))) <= c.tolerance
end

"The remainder f(x + hẋ) - f(x) - hẏ falls as h² or faster (or is nothing but rounding)."
function taylor_slope(c::Case)
    ẋ = tangents(c)
    _, y, ẏ = push_forward(c, ẋ)
    y = inexact_only(y)
    precision = c.tolerance^(1 / 0.6) * max(1.0, magnitude(y))
    hs, rs = Float64[], Float64[]
    for h in 2.0 .^ (-3:-1:-20)
        moved = difference(inexact_only(run(c.program, move(c.x, h, ẋ))), y)
        r = magnitude(Any[m .- h .* wide(t) for (m, t) in zip(moved, ẏ)])
        r > 200precision && (push!(hs, log(h)); push!(rs, log(r)))
    end
    length(hs) < 2 && return Inf
    n = length(hs)
    (n * sum(hs .* rs) - sum(hs) * sum(rs)) / (n * sum(abs2, hs) - sum(hs)^2)
end
taylor_agrees(c::Case) = taylor_slope(c) >= 1.7

"linearize computes the same values and tangents as jvp."
function linearize_agrees(c::Case)
    ẋ = tangents(c)
    _, y, ẏ = push_forward(c, ẋ)
    l = linearize(c.program, c.active)
    known = run(l.known, c.x)
    m = length(y)
    split = run(l.linear, vcat(known[m+1:end], only_active(c, ẋ)))
    full = Any[]
    rest = Iterators.Stateful(split)
    for (v, has) in zip(y, l.hastangent)
        isinexact(eltype(v)) && push!(full, has ? popfirst!(rest) : zero(v))
    end
    wellformed(l.known) && wellformed(l.linear) && relative_error(known[1:m], y) == 0 &&
        relative_error(full, ẏ) <= c.tolerance^1.4
end

"""
⟨ȳ, L ẋ⟩ = ⟨Lᵀ ȳ, ẋ⟩ for the linear part, where L ẋ is measured by finite differences of
the Program itself."""
function transpose_agrees(c::Case)
    l = linearize(c.program, c.active)
    known = run(l.known, c.x)
    residuals = known[length(c.program.outputs)+1:end]
    n = length(residuals)
    t = JaxprAD.transpose(l.linear, Bool[k > n for k in 1:length(l.linear.inputs)])
    ẋ = tangents(c)
    ȳ = Any[like(c.rng, v) for (v, has) in zip(known, l.hastangent) if has]
    x̄ = run(t, vcat(residuals, ȳ))
    measure(x) = Any[v for (v, has) in zip(run(c.program, x), l.hastangent) if has]
    wellformed(t) &&
        pairings_agree(c, [pairing(ȳ, d) for d in differences(measure, c.x, ẋ)],
            pairing(x̄, only_active(c, ẋ)))
end

"The best estimate of a sweep agrees with the number."
pairings_agree(c, estimates, exact) =
    minimum(abs(e - exact) for e in estimates) <=
    c.tolerance * max(1.0, abs(exact), largest(abs.(filter(isfinite, estimates))))

"vjp pairs with finite differences of the Program."
function vjp_agrees(c::Case)
    v = vjp(c.program, c.active)
    ẋ, ȳ = tangents(c), cotangents(c)
    x̄ = run(v, vcat(c.x, ȳ))
    estimates = [pairing(ȳ, d) for d in differences(x -> inexact_only(run(c.program, x)), c.x, ẋ)]
    wellformed(v) && pairings_agree(c, estimates, pairing(x̄, only_active(c, ẋ)))
end

"""
The derivative Program of the vjp, as a Case of its own: at (x, ȳ), with the same
active inputs and ȳ."""
function reverse_case(c::Case)
    ȳ = cotangents(c)
    Case(typecheck(vjp(c.program, c.active)), vcat(c.x, ȳ), vcat(c.active, trues(length(ȳ))), c.rng,
        10c.tolerance)
end
"""
Second order: the vjp's own jvp and vjp are those of the vjp (reverse over reverse,
forward over reverse)."""
second_order_agrees(c::Case) = (r = reverse_case(c); jvp_agrees(r) && vjp_agrees(r))

include("times.jl")
include("native.jl")
include("objects.jl")

const CHECKS = [jvp_agrees, jvp_is_linear, taylor_agrees, linearize_agrees, transpose_agrees,
    vjp_agrees, second_order_agrees]

"""
    check(text, x...; reference, active, tolerance, second = true)

Every check on one Program, and that its native code computes the same. `reference(x...)` gives the
tuple of expected results by other means. `active` marks the inputs to differentiate (all inexact
ones). `second = false` leaves out second order, for primitives whose derivative has none."""
function check(text, x...; reference = nothing, active = nothing, tolerance = nothing,
    second = true, name = text)
    c = Case(text, x...; active = active, name = name, tolerance = tolerance)
    @testset "$name" begin
        @test value_agrees(c, reference)
        differentiable = any(c.active) && any(takes(c.program))
        for agrees in (differentiable ? CHECKS : [])
            agrees === second_order_agrees && !second && continue
            @test (nameof(agrees); agrees(c))
        end
        NATIVE && @test native_agrees(c; derivative = differentiable)
    end
end

"Only the value: for integers, bools and inputs where there is no derivative."
check_value(text, reference, x...) = @testset "$text" begin
    c = Case(text, x...)
    @test value_agrees(c, reference)
    NATIVE && @test native_agrees(c; derivative = false)
end

"The names of a Program's equations, in order."
names_in(p) = [JaxprAD.name(e.op) for e in p.equations]

"An ill-typed Program is refused."
refuses(text) =
    try
        typecheck(program(text))
        false
    catch e
        e isa JaxprAD.ProgramTypeError || rethrow()
        true
    end
