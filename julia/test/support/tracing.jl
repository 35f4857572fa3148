# What the tests of traced functions share: plain Julia and difference quotients are the references.

using LinearAlgebra
using JaxprAD: Container, StaticValue, flatten, assembled, select

"The floats of a value, one after the other."
numbers(@nospecialize(y)) =
    Float64[v for leaf in flatten(y)[1] if eltype(leaf) <: AbstractFloat for v in leaf]
"A value like x whose floats are those of a vector."
function with_numbers(@nospecialize(x), v)
    leaves, s = flatten(x)
    rest = Iterators.Stateful(v)
    assembled(
        s,
        Any[
            leaf isa AbstractFloat ? popfirst!(rest) :
            eltype(leaf) <: AbstractFloat ?
            reshape(Float64[popfirst!(rest) for _ in 1:length(leaf)], size(leaf)) : leaf
            for leaf in leaves
        ]
    )
end
near(a, b, tolerance) =
    length(a) == length(b) && all(isapprox.(a, b; atol = tolerance, rtol = tolerance))

"Central differences at a step that suits double precision, improved by extrapolation."
function quotient(@nospecialize(f), x, v)
    slope(h) = (f(x .+ h .* v) .- f(x .- h .* v)) ./ 2h
    (4 .* slope(5e-5) .- slope(1e-4)) ./ 3
end

"Whether structures have leaves of the same kinds and known values of the same types, nested alike."
same_nesting(a, b) = a == b
same_nesting(a::StaticValue, b::StaticValue) = typeof(a.value) === typeof(b.value)
same_nesting(a::Container, b::Container) =
    length(a.parts) == length(b.parts) && all(map(same_nesting, a.parts, b.parts))

"""
    agrees(f, x...) -> Bool

Traced, `f` gives what it gives in plain Julia; forward mode gives its difference quotients, and
reverse mode pairs with forward mode."""
function agrees(@nospecialize(f), @nospecialize(x...); tolerance = 1e-7, derivative = true,
    name = string(f))
    rng, plain = seeded(string(name, map(size ∘ numbers, x)...)), f(x...)
    t = trace(f, x...)
    JaxprAD.typecheck(t.program)
    same_nesting(flatten(plain)[2], flatten(t(x...))[2]) || return false
    near(numbers(t(x...)), numbers(plain), 1e-12 + 1e-5tolerance) || return false
    derivative || return true
    point = numbers(x)
    direction = randn(rng, length(point))
    at(v) = numbers(f(with_numbers(x, v)...))
    y, ẏ = jvp(f, x, with_numbers(x, direction))
    near(numbers(y), numbers(plain), 1e-10) || return false
    near(numbers(ẏ), quotient(at, point, direction), tolerance) || return false
    weights = randn(rng, length(numbers(plain)))
    _, pullback = vjp(f, x...)
    x̄ = pullback(with_numbers(plain, weights))
    isapprox(sum(numbers(x̄) .* direction), sum(weights .* numbers(ẏ));
        rtol = tolerance, atol = tolerance)
end

"""
Whether the second derivative, forward over reverse, is the gradient's difference quotient."""
function second_agrees(f, x::Array; tolerance = 1e-6)
    direction = randn(seeded("second"), size(x)...)
    near(hvp(f, x, direction), quotient(z -> gradient(f, z), x, direction), tolerance)
end

"The message of the exception of type T that `f()` throws."
function message_of(T, @nospecialize(f))
    try
        f()
        "nothing was thrown"
    catch e
        e isa T || return string("not a ", T, ": ", sprint(showerror, e))
        sprint(showerror, e)
    end
end
