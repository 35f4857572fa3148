"""What engine="transpose" cannot trace is refused by name, with Julia's line, and nothing else changes."""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb

X = np.array([1.0, 2.0, 3.0])

CODE = """
using JaxprAD: scan
mutable struct Tally
    calls::Int
end
const TABLE = zeros(3)
const CALLS = Ref(0)
const TALLY = Tally(0)
const SEEN = Dict{Int,Any}()
const NOTES = Any[]
total = 0.0
fine(x) = 2 .* x
branches(x) = sum(x) > 0 ? x : -x
short_circuit(x) = x[1] > 0 && x[2] > 0 ? x : -x
loops(x) = (y = x; while sum(y) < 10; y = 2y; end; y)
counts(n) = sum(k for k in 1:n)
converts(x) = (y = zeros(3); y[1] = x[1]; y)
unknown(x) = string(x[1])
throws(x) = error("no such luck with ", length(x))
inner(x) = throws(x) .+ 1
indexes(x) = x[10]
filters(x) = x[x .> 1]
plain(x::Vector{Float64}) = sum(x)
two(x, y) = x
deep(x) = deep(x) .+ 1
adds(x) = (TABLE .+= 1; x)
keeps(x) = (TABLE[1] = x[1]; x)
increments(x) = (CALLS[] += 1; x)
tallies(x) = (TALLY.calls += 1; x)
remembers(x) = (SEEN[1] = x; x)
notes(x) = (push!(NOTES, x); x)
rebinds(x) = (global total = 1.0; x)
outside(x) = scan((s, v) -> (x[1] = s; (s, v)), 0.0, x)[1]
writes(x) = (x[1] = 7.0; x)
through_view(x) = (v = view(x, 2:3); v .= 0.0; x)
longer(x) = [x; x]
shorter_dtype(x) = Float32.(x)
words(x) = "text"
"""
LINES = CODE.splitlines()


def line_of(start: str) -> int:
    return next(k for k, line in enumerate(LINES, 1) if line.startswith(start))


def function(name, **options):
    return pb.julia_function(name, source=CODE, engine="transpose", **options)


UNTRACEABLE = {
    "branches": ("TracedControlFlow", "select"),
    "short_circuit": ("TracedControlFlow", "cond"),
    "loops": ("TracedControlFlow", "while_loop"),
    "converts": ("TracedConversion", "similar"),
    "throws": ("TracingFailed", "no such luck with 3"),
    "indexes": ("TracingFailed", "BoundsError"),
    "filters": ("TracingFailed", "conditions that are traced"),
    "keeps": ("TracedConversion", "cannot become a Float64"),
    "outside": ("EscapedTracer", "from outside"),
}


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_what_cannot_be_traced_is_named_with_its_line(name):
    kind, message = UNTRACEABLE[name]
    x = jnp.asarray(X)
    for run in (function(name), jax.jit(function(name)), jax.grad(lambda x: function(name)(x).sum())):
        with pytest.raises(pb.JuliaTracingError, match=message) as caught:
            run(x)
        error = caught.value
        assert error.kind == kind
        assert error.source.startswith(f"source of julia_function:{line_of(name + '(')}")
        assert error.source in str(error) and 'engine="enzyme"' in str(error)
    assert f"{name}(" in error.stacktrace
    np.testing.assert_array_equal(function("fine")(x), 2 * X)


def test_the_innermost_line_counts():
    with pytest.raises(pb.JuliaTracingError) as caught:
        function("inner")(X)
    assert caught.value.source == f"source of julia_function:{line_of('throws(')} (throws)"


def test_a_length_that_is_traced():
    with pytest.raises(pb.JuliaTracingError, match="not known"):
        function("counts")(3)


@pytest.mark.parametrize("name", ["adds", "increments", "tallies", "remembers", "notes", "rebinds"])
def test_a_global_that_changes(name):
    with pytest.raises(pb.JuliaTracingError, match="changes the global") as caught:
        function(name)(X)
    assert caught.value.kind == "GlobalChanged"


def test_signatures_that_take_no_traced_values():
    with pytest.raises(pb.JuliaTracingError, match=r"plain has no method.*AbstractArray"):
        function("plain")(X)
    with pytest.raises(pb.JuliaTracingError, match="two has no method"):
        function("two")(X)


def test_recursion_without_end():
    with pytest.raises(pb.JuliaTracingError, match="StackOverflow"):
        function("deep")(X)
    np.testing.assert_array_equal(function("fine")(X), 2 * X)


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("writes", "InputMutated", {}),
        ("through_view", "InputMutated", {"inputs": "view"}),
        ("longer", "ResultMismatch", {"result": X}),
        ("shorter_dtype", "ResultMismatch", {"result": X}),
        ("words", "ResultMismatch", {}),
        ("absent", "FunctionNotFound", {}),
    ],
)
def test_mistakes_are_those_of_the_other_engine(name, kind, options, x64):
    for engine in ("enzyme", "transpose"):
        with pytest.raises(pb.JuliaError) as caught:
            pb.julia_function(name, source=CODE, engine=engine, **options)(X)
        assert caught.value.kind == kind


def test_options():
    with pytest.raises(pb.ArgumentError, match="takes no rules"):
        function("fine", jvp="fine")
    with pytest.raises(pb.UnknownOption, match="'enzyme', 'transpose' and"):
        pb.julia_function("sin", engine="jax")


def test_sizes_that_are_not_known():
    (n,) = jax.export.symbolic_shape("n")
    with pytest.raises(pb.ArgumentError, match="known sizes"):
        pb.export(function("fine"), ["cpu"])(jax.ShapeDtypeStruct((n,), jnp.float32))


def test_copies():
    f = function("fine")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(X), 2 * X)
    assert pickle.loads(pickle.dumps(f)).engine == "transpose"
