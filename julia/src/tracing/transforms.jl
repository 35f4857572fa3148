# The transforms as functions of functions. A function is traced at the values at hand; within a
# trace the derivative is written into it, so that transforms nest to any depth.

"A linearization of a function where its arguments were: the residuals are kept."
struct LinearizedFunction
    traced::TracedFunction
    halves::Linearized
    residuals::Vector{Any}
    value::Any
end

"""
    jvp(f, x::Tuple, ẋ::Tuple) -> (y, ẏ)

The value of `f(x...)` and its derivative along `ẋ`, by forward mode. Tangents have the structure of
what they belong to; integers and other known values among the arguments have none, and what stands
for these is not looked at.

    julia> jvp(sin, (0.0,), (2.0,))
    (0.0, 2.0)
"""
function jvp(@nospecialize(f), @nospecialize(x::Tuple), @nospecialize(ẋ::Tuple))
    t = trace_once(f, x...)
    leaves, tangents = flatten(x)[1], tangent_leaves(x, ẋ)
    p = jvp(t.program, active_inputs(t))
    results = run_program(p, vcat(t.captured, leaves, tangents))
    m = length(t.program.outputs)
    y = assembled(t.result, leaf_results(t.result, results[1:m]))
    y, with_tangents(t.result, y, results[m+1:end])
end

"""
    linearize(f, x...) -> (y, pushforward)

The value and the function `ẋ... -> ẏ`, the derivative at x: what it needs is computed once."""
function linearize(@nospecialize(f), @nospecialize(x...))
    l = linearized_function(f, x)
    held = Ref{Any}(x)          # so that the result has one type for all arguments
    l.value, function (ẋ...)
        ẏ = run_program(l.halves.linear, vcat(l.residuals, tangent_leaves(held[], ẋ)))
        tangents = results_where(l, l.halves.hastangent, ẏ)
        with_tangents(l.traced.result, l.value, tangents)
    end
end

"""
    vjp(f, x...) -> (y, pullback)

The value and the function `ȳ -> x̄`, a tuple of the arguments' cotangents, by reverse mode: the
transpose of `linearize`'s function.

    julia> y, pullback = vjp((x, a) -> a .* x, [1.0, 2.0], 3.0);

    julia> pullback([1.0, 1.0])
    ([3.0, 3.0], 3.0)
"""
function vjp(@nospecialize(f), @nospecialize(x...))
    l = linearized_function(f, x)
    held = Ref{Any}(x)
    n = length(l.residuals)
    backward = transpose(l.halves.linear, Bool[k > n for k in eachindex(l.halves.linear.inputs)])
    l.value, function (ȳ)
        given = cotangent_leaves(l, ȳ)
        with_tangents(l.traced.arguments, held[],
            run_program(backward, vcat(l.residuals, given)))
    end
end

function linearized_function(@nospecialize(f), @nospecialize(x))
    t = trace_once(f, x...)
    halves = linearized(t.program, active_inputs(t); compact = true)
    results = run_program(halves.known, vcat(t.captured, flatten(x)[1]))
    m = length(t.program.outputs)
    LinearizedFunction(t, halves, results[m+1:end],
        assembled(t.result, leaf_results(t.result, results[1:m])))
end

"""
    linear_transpose(f, x...) -> function

For a linear `f` the function `ȳ -> x̄`, a tuple. Of `x` only types and sizes matter.

    julia> linear_transpose(x -> [1.0 2.0; 3.0 4.0] * x, [0.0, 0.0])([1.0, 0.0])
    ([1.0, 2.0],)
"""
function linear_transpose(@nospecialize(f), @nospecialize(x...))
    t = trace(f, x...)
    held = Ref{Any}(x)
    backward = transpose(t.program, active_inputs(t))
    leaves = flatten(x)[1]
    known = Any[v for v in leaves if !isdifferentiable(v)]
    ȳ -> begin
        given = flatten(ȳ)[1]
        check_types(given, result_types(t))
        with_tangents(t.arguments, held[],
            run_program(backward, vcat(t.captured, known, given)))
    end
end

# ---- tangents

"Which inputs of a traced function are differentiated by: its arguments' floats."
active_inputs(t::TracedFunction) = Bool[
    k > length(t.captured) && isinexact(dtype(v)) for (k, v) in enumerate(t.program.inputs)
]

"The tangents of the floats among the leaves of x."
function tangent_leaves(@nospecialize(x), @nospecialize(ẋ))
    wanted, given = TensorType[leaf_type(v) for v in flatten(x)[1]], flatten(ẋ)[1]
    length(given) == length(wanted) && (given = given[map(t -> isinexact(t.dtype), wanted)])
    check_types(given, filter(t -> isinexact(t.dtype), wanted))
    given
end

"Cotangents for those results that depend on the arguments."
function cotangent_leaves(l::LinearizedFunction, @nospecialize(ȳ))
    kinds = result_types(l.traced)
    given = tangent_leaves(l.value, ȳ)
    float_results = l.halves.hastangent[map(t -> isinexact(t.dtype), kinds)]
    given[float_results]
end
results_where(l, mask, ẏ) = begin
    rest = Iterators.Stateful(ẏ)
    Any[
        has ? popfirst!(rest) : zero_like(t)
        for (has, t) in zip(mask, result_types(l.traced)) if isinexact(t.dtype)
    ]
end
zero_like(t::TensorType) = zeros(t.dtype, julia_size(t))

"""
A value of a structure with tangents in the place of its floats; arrays of integers have
`nothing` there."""
function with_tangents(s::Structure, @nospecialize(x), tangents)
    rest = Iterators.Stateful(tangents)
    leaves = flatten(x)[1]
    assembled(s, Any[
        isdifferentiable(v) ? tangent_value(kind, popfirst!(rest)) : nothing
        for (kind, v) in zip(leaf_kinds(s), leaves)
    ])
end
tangent_value(kind, x) = istraced(x) ? x : from_array(kind, x)

# ---- gradients and matrices of derivatives

"""
    gradient(f, x...)

The derivatives of a function with one real result: of the only argument, or a tuple of those by
each.

    julia> gradient(x -> sum(abs2, x), [1.0, 2.0])
    [2.0, 4.0]
"""
gradient(@nospecialize(f), @nospecialize(x...)) = value_and_gradient(f, x...)[2]

"The value and what `gradient` gives."
function value_and_gradient(@nospecialize(f), @nospecialize(x...))
    y, pullback = vjp(f, x...)
    y isa Real || throw(NotDifferentiable(
        "a gradient is of a function with one real result; this gives $(describe_result(y)): see " *
        "`jacobian`", user_line()))
    x̄ = pullback(one(y))
    y, length(x) == 1 ? x̄[1] : x̄
end
describe_result(y::AbstractArray) = "an array of size $(size(y))"
describe_result(y) = "a $(typeof(y))"

"""
    hvp(f, x, v)

The product of the Hessian of `f` at x with v: `jvp` of `gradient`, in the time of a few gradients.

    julia> hvp(x -> sum(x .^ 3), [1.0, 2.0], [1.0, 0.0])
    [6.0, 0.0]
"""
hvp(@nospecialize(f), @nospecialize(x), @nospecialize(v)) = jvp(gradient_function(f), (x,), (v,))[2]

"`z -> gradient(f, z)`, of the same type for every f."
function gradient_function(@nospecialize(f))
    held = Ref{Any}(f)
    z -> gradient(held[], z)
end

"""
    jacobian(f, x::AbstractArray)

The matrix of derivatives of the elements of `f(x)` (rows, in memory order) by those of x (columns),
by as many pushforwards as there are columns or, where there are fewer, pullbacks as there are rows.

    julia> jacobian(x -> [x[1] * x[2], x[1] + x[2]], [2.0, 3.0])
    [3.0 2.0; 1.0 1.0]
"""
function jacobian(@nospecialize(f), x::AbstractArray)
    y, push = linearize(f, x)
    y isa Number || y isa AbstractArray || throw(
        NotDifferentiable("a Jacobian is of a function that gives an array", user_line()))
    m, n = length(y), length(x)
    if n <= m
        columns = scan((_, k) -> (nothing, push(unit_vector(x, k))), nothing, collect(1:n))[2]
        return reshape(columns, m, n)
    end
    _, pull = vjp(f, x)
    rows = scan((_, k) -> (nothing, pull(unit_vector(y, k))[1]), nothing, collect(1:m))[2]
    permutedims(reshape(rows, n, m))
end
"The unit vector k in the space of an array's elements."
unit_vector(x::AbstractArray, k) =
    plain_type(eltype(x)).(reshape(collect(1:length(x)), size(x)) .== k)
unit_vector(x::Number, k) = one(x)

"""
    hessian(f, x::AbstractArray)

The matrix of second derivatives of a function with one real result.

    julia> hessian(x -> x[1]^2 * x[2], [1.0, 2.0])
    [4.0 2.0; 2.0 0.0]
"""
hessian(@nospecialize(f), x::AbstractArray) = jacobian(gradient_function(f), x)
