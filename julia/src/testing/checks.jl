# The comparisons themselves.

"What comparisons need: the function, traced or compiled, and where its derivatives are taken."
struct Subject
    f::Any
    x::Tuple
    point::Point
    plain::Vector{Any}              # the results of `f` itself, numbers and arrays
    weights::Tuple                  # a cotangent for those that are floats
    tangents::Tuple                 # a tangent for each float of the arguments
    rtol::Float64
    unit::Float64                   # rounding of the narrowest type
    run::Function                   # of functions, which is run many times
end

"""
    check_derivatives(f, x...; order = 2, rtol, rng, native = false) -> report

Whether the derivatives of `f` at `x` are those of its values:

- the traced function's values against those of `f` itself;
- `jvp` along each argument, or part of one, against extrapolated central differences of `f` itself;
- `vjp` against the same, and against `jvp`: ȳ·Jẋ = Jᵀȳ·ẋ;
- with `order = 2`, of the Hessian of ȳ·f: its products, forward over reverse, against differences
  of the gradient, and against reverse over reverse; its symmetry.

Tangents and cotangents are random, from `rng`. `rtol` is the relative error that is agreement, by
default 5e-7 in double precision and 2e-3 in single. With `native` the compiled code of
[`jit`](@ref) is what is compared. `failures(report)` is empty where all agree.

    julia> isempty(failures(check_derivatives((x, a) -> sum(sin.(a .* x)), [1.0, 2.0], 3.0)))
    true
"""
function check_derivatives(@nospecialize(f), @nospecialize(x...); order::Int = 2, rtol = nothing,
    rng::AbstractRNG = MersenneTwister(0), native::Bool = false)
    order in (0, 1, 2) ||
        throw(ArgumentError("derivatives of order 0, 1 and 2 are compared, not $order"))
    run = native ? jit : traced_once
    traced, _ = flatten_state(run(f)(x...))
    # afterwards, since what cannot be traced is an error that says where
    point, plain = Point(f, x), flatten_state(f(deepcopy(x)...))[1]
    floats_of_result = filter(isdifferentiable, plain)
    isempty(floats_of_result) &&
        throw(ArgumentError("no result is a floating-point number or an array of them"))
    unit = maximum(map(rounding, vcat(floats(point), floats_of_result)))
    s = Subject(f, x, point, plain, Tuple(random_like(rng, y) for y in floats_of_result),
        Tuple(random_tangent(rng, v) for v in floats(point)),
        something(rtol, unit^0.4), unit, run)
    checks = DerivativeCheck[value_check(s, traced)]
    order >= 1 && same_types(s.plain, traced) && first_order!(checks, s)
    order >= 2 && same_types(s.plain, traced) && second_order!(checks, s, rng)
    DerivativeReport(program_name(f), checks)
end

"A function that is traced at its first call, and runs as a Program."
function traced_once(@nospecialize(f))
    t = Ref{Any}(nothing)
    (x...) -> (t[] === nothing && (t[] = trace(f, x...)); t[](x...))
end

# ---- values

same_types(a, b) = map(leaf_type, a) == map(leaf_type, b)

function value_check(s::Subject, @nospecialize(traced))
    same_types(s.plain, traced) || return DerivativeCheck("value", "", Inf, s.rtol,
        "traced $(types_text(traced)), by itself $(types_text(s.plain))")
    compared("value", "", s, traced, s.plain, rounding_errors(s, s.plain, 8), zeros(length(traced)),
        "traced", "by itself")
end
types_text(x) = join(map(v -> string(leaf_type(v)), x), ", ")

"""
What rounding explains of each result, `count` units of what is largest in it: where an array's
elements cancel, they are no more exact than their terms."""
rounding_errors(s::Subject, @nospecialize(results), count) =
    Float64[count * s.unit * furthest(wide(y)) for y in results]

"""
The comparison of lists of arrays: with the rounding error of each, and the uncertainty of what it
is compared with."""
function compared(kind, argument, s::Subject, @nospecialize(found), @nospecialize(wanted), rounding,
    uncertain, by, against)
    worst, details = 0.0, ""
    for (k, (a, b)) in enumerate(zip(map(wide, found), map(wide, wanted)))
        apart = map(difference, a, b)
        error = relative(furthest(apart), rounding[k], max(furthest(a), furthest(b)))
        error > worst || continue
        at = argmax(apart)
        place = (length(found) > 1 ? ", result $k" : "") * (length(a) > 1 ? ", element $at" : "")
        worst = error
        details = "$by $(a[at]), $against $(b[at])$place" * unsettled(uncertain[k], s.rtol, b)
    end
    DerivativeCheck(kind, argument, worst, s.rtol, details)
end
difference(a, b) = isequal(a, b) || isnan(a) && isnan(b) ? 0.0 :
    (d = abs(a - b); isnan(d) ? Inf : d)
relative(apart, rounding, size) = apart <= rounding ? 0.0 :
    isfinite(apart) && size > 0 ? (apart - rounding) / size : Inf
unsettled(uncertain, rtol, b) = uncertain <= rtol * furthest(b) ? "" :
    "; the differences do not settle, $(short(uncertain)) apart: is the function smooth here?"

# ---- first order

const BY_DIFFERENCES = "by differences"

function first_order!(checks, s::Subject)
    push(@nospecialize(x), @nospecialize(ẋ)) = jvp(s.f, x, ẋ)[2]
    pull(@nospecialize(x), @nospecialize(ȳ)) = vjp(s.f, x...)[2](ȳ)
    forward, backward = s.run(push), s.run(pull)
    x̄ = or_reason(() -> flatten(backward(s.x, s.weights))[1])
    for (k, argument) in enumerate(s.point.names)
        ẋ = along(s.point, k, s.tangents[k])
        quotients = difference_quotients(
            h -> filter(isdifferentiable, flatten_state(s.f(moved(s.point, ẋ, h)...))[1]))
        ẏ = or_reason(() -> flatten(forward(s.x, ẋ))[1])
        append!(checks,
            first_order(s, argument, ẏ, x̄ isa Vector ? x̄[k] : x̄, s.tangents[k], quotients))
    end
end

"""
`f()`, or the reason why there is no such derivative: a function with a rule for one mode may have
none for the other."""
or_reason(@nospecialize(f)) =
    try
        f()
    catch e
        e isa NotDifferentiable ? e : rethrow()
    end

"The comparisons along one argument, of what there is of a JVP, of all results, and a VJP."
function first_order(s::Subject, argument, @nospecialize(ẏ), @nospecialize(x̄), @nospecialize(ẋ),
    quotients)
    slopes, uncertain = map(first, quotients), map(last, quotients)
    results = filter(isdifferentiable, s.plain)
    rounding = rounding_errors(s, results, 1000)
    # one number for all results, by their cotangent
    weighted(per_result) = sum(per_result .* map(w -> sum(abs, wide(w)), s.weights))
    found = DerivativeCheck[]
    ẏ isa NotDifferentiable && x̄ isa NotDifferentiable && throw(ẏ)
    ẏ isa NotDifferentiable || push!(found,
        compared("JVP", argument, s, ẏ, slopes, rounding, uncertain, "ẏ", BY_DIFFERENCES))
    x̄ isa NotDifferentiable || push!(found,
        scalar_check("VJP", argument, s, pairing([x̄], [ẋ]), pairing(s.weights, slopes),
            pairing_scale(s.weights, slopes), weighted(rounding), weighted(uncertain),
            "x̄·ẋ", BY_DIFFERENCES))
    ẏ isa NotDifferentiable || x̄ isa NotDifferentiable || push!(found,
        scalar_check("ȳ·Jẋ = Jᵀȳ·ẋ", argument, s, pairing([x̄], [ẋ]), pairing(s.weights, ẏ),
            pairing_scale(s.weights, ẏ), weighted(rounding_errors(s, results, 8)), 0.0,
            "by the VJP", "by the JVP"))
    found
end

function scalar_check(kind, argument, s::Subject, a, b, scale, rounding, uncertain, by, against)
    error = relative(difference(a, b), rounding, max(scale, abs(a)))
    DerivativeCheck(kind, argument, error, s.rtol,
        "$by $a, $against $b" * unsettled(uncertain, s.rtol, [scale]))
end

# ---- second order

function second_order!(checks, s::Subject, rng)
    # of ȳ·f, as a list of its floats
    gradient(@nospecialize(x), @nospecialize(ȳ)) = Tuple(flatten(vjp(s.f, x...)[2](ȳ))[1])
    x, ȳ, p = s.x, s.weights, s.point
    slope = s.run(gradient)
    push(@nospecialize(x), @nospecialize(ẋ), @nospecialize(ȳ)) =
        jvp((x...) -> gradient(x, ȳ), x, ẋ)[2]
    pull(@nospecialize(x), @nospecialize(v), @nospecialize(ȳ)) =
        vjp((x...) -> gradient(x, ȳ), x...)[2](v)
    forward, backward = s.run(push), s.run(pull)
    g = or_reason(() -> slope(x, ȳ))
    g isa NotDifferentiable && return       # no gradient: the first order has said so
    rounding = rounding_errors(s, g, 1000)
    for (k, argument) in enumerate(p.names)
        ẋ = along(p, k, s.tangents[k])
        quotients = difference_quotients(h -> slope(moved(p, ẋ, h), ȳ))
        Hẋ = forward(x, ẋ, ȳ)
        push!(checks, compared("HVP", argument, s, Hẋ, map(first, quotients), rounding,
            map(last, quotients), "Hẋ", BY_DIFFERENCES))
        v = map(u -> random_like(rng, u), g)
        vH = flatten(backward(x, v, ȳ))[1]
        push!(checks, scalar_check("HVP, reverse over reverse", argument, s,
            pairing([vH[k]], [s.tangents[k]]), pairing(v, Hẋ), pairing_scale(v, Hẋ),
            sum(rounding), 0.0, "v·Hẋ", "forward over reverse"))
    end
    push!(checks, symmetry(s, forward, x, ȳ, rounding, rng))
end

function symmetry(s::Subject, @nospecialize(forward), @nospecialize(x), @nospecialize(ȳ), rounding,
    rng)
    u, v = s.tangents, Tuple(random_tangent(rng, a) for a in floats(s.point))
    Hu, Hv = forward(x, u, ȳ), forward(x, v, ȳ)
    scalar_check("symmetry of the Hessian", "", s, pairing(v, Hu), pairing(u, Hv),
        pairing_scale(v, Hu), sum(rounding), 0.0, "v·Hu", "u·Hv")
end
