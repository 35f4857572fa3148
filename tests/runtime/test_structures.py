"""Derivative Programs take and give the user's pytrees, by the names of the user's arguments."""

from __future__ import annotations

import collections
import inspect
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from hypothesis import given, settings
from hypothesis import strategies as st

import pybridge as pb

Pair = collections.namedtuple("Pair", "left right")

# Trees of arguments: floats "f", integers "i", None.
LEAVES = st.sampled_from(["f", "f", "i", None])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=6,
)


def filled(tree: Any, numbers: Any) -> Any:
    return jax.tree.map(lambda kind: np.float64(next(numbers)) if kind == "f" else np.int64(2), tree)


def is_float(x: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(x), jnp.floating)


def floats(tree: Any) -> Any:
    """The tree with None in the place of integers."""
    return jax.tree.map(lambda x: x if is_float(x) else None, tree)


def mixing(*args, **kwargs):
    """Every float of the result depends on every float of the arguments; integers among the results."""
    leaves = jax.tree.leaves((args, kwargs))
    total = sum(jnp.sin(x * (k + 1)) for k, x in enumerate(leaves))
    return {"total": total * 1.0, "parts": (jax.tree.map(lambda x: x * x, args), [total**2, jnp.int32(3)])}


def smooth(args: tuple, kwargs: dict[str, Any]):
    """The function of the floats alone, which JAX differentiates, and their values."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if is_float(x)]

    def of_floats(*xs):
        given = dict(zip(places, xs, strict=True))
        a, k = jax.tree.unflatten(tree, [given.get(i, x) for i, x in enumerate(leaves)])
        return [y for y in jax.tree.leaves(mixing(*a, **k)) if is_float(y)]

    return of_floats, [leaves[i] for i in places]


@settings(max_examples=25, deadline=None)
@given(st.lists(TREES, min_size=1, max_size=3), st.dictionaries(st.sampled_from("uv"), TREES, max_size=2))
def test_derivatives_have_the_trees_of_what_they_belong_to(trees, by_name):
    with jax.enable_x64(True):
        numbers = itertools.count(0.3)
        args, kwargs = tuple(filled(t, numbers) for t in trees), filled(by_name, numbers)
        program = pb.trace(mixing)(*args, **kwargs)
        f, xs = smooth(args, kwargs)
        if not xs:
            return
        _, pull = jax.vjp(f, *xs)
        value = mixing(*args, **kwargs)
        ct = jax.tree.map(lambda _: np.float64(next(numbers)), floats(value))
        result, bars = program.vjp(value=True).call(*args, ct, **kwargs)
        assert jax.tree.structure(result) == jax.tree.structure(value)
        assert_agree(result, value, "value", 1e-12)
        assert_agree(bars, pull(jax.tree.leaves(ct)), "cotangents", 1e-12)
        of_args, of_kwargs = bars[: len(args)], bars[len(args) :]
        for bar, x in zip((*of_args, *of_kwargs), (*args, *(kwargs[k] for k in sorted(kwargs))), strict=True):
            expected = floats(x) if jax.tree.leaves(floats(x)) else None
            assert jax.tree.structure(bar) == jax.tree.structure(expected)
        dots = [np.float64(next(numbers)) for _ in xs]
        pushed = jax.jvp(f, tuple(xs), tuple(dots))[1]
        tangents = jax.tree.unflatten(jax.tree.structure(floats((args, kwargs))), dots)
        by_position = [t for t in tangents[0] if jax.tree.leaves(t)]
        named = {f"{k}_dot": t for k, t in tangents[1].items() if jax.tree.leaves(t)}
        result, dot = program.jvp().call(*args, *by_position, **kwargs, **named)
        assert_agree((result, dot), (value, pushed), "JVP", 1e-12)
        assert jax.tree.structure(dot) == jax.tree.structure(floats(value))
        lin = program.linearize()
        _, residuals = lin.known.call(*args, **kwargs)
        assert_agree(lin.linear.call(residuals, *by_position, **named), pushed, "linear part", 1e-12)
        back = lin.linear.transpose(linear=[n for n in lin.linear.input_names if "_dot" in n])
        assert_agree(back.call(residuals, ct)[1:], pull(jax.tree.leaves(ct)), "its transpose", 1e-12)


PARAMS = {"w": np.arange(6.0).reshape(3, 2) / 7, "b": np.array([0.1, -0.2])}
X = np.linspace(-1, 1, 12).reshape(4, 3)


def model(params, x, n, *, scale):
    """Gives a float and an integer."""
    y = jnp.tanh(x @ params["w"] + params["b"]) * scale
    return {"loss": jnp.sum(y**2), "count": n + 1}


@pytest.fixture
def program(x64):
    return pb.trace(model)(PARAMS, X, np.int64(3), scale=np.float64(2))


CT = {"loss": np.float64(1.5), "count": None}


def loss(params, x, scale=2.0):
    return model(params, x, 3, scale=scale)["loss"]


def test_names_are_the_users(program):
    x = ("params['b']", "params['w']", "x", "n", "scale")
    assert program.input_names == x and program.output_names == ("result['count']", "result['loss']")
    vjp = program.vjp()
    assert vjp.input_names == (*x, "ct['loss']")
    assert vjp.output_names == ("params_bar['b']", "params_bar['w']", "x_bar", "scale_bar")
    jvp = program.jvp(active=["x", "scale"])
    assert jvp.input_names == (*x, "x_dot", "scale_dot")
    assert jvp.output_names == (*program.output_names, "result_dot['loss']")
    assert vjp.vjp(active="x").input_names == (
        *vjp.input_names,
        "ct_2[0]['b']",
        "ct_2[0]['w']",
        "ct_2[1]",
        "ct_2[3]",
    )
    assert vjp.optimize().input_names == vjp.input_names
    lines = str(vjp).splitlines()
    assert lines[2] == "  # %0 params['b'], %1 params['w'], %2 x, %3 n, %4 scale, %5 ct['loss']"
    assert lines[-2].endswith("  # params_bar['b'], params_bar['w'], x_bar, scale_bar")
    assert pb.parse(str(vjp)) == vjp and pb.parse(str(vjp)).text == vjp.text


def test_derivatives_of_derivatives_by_name(program):
    with jax.enable_x64(True):
        dot = {"w": np.ones((3, 2)), "b": np.full(2, 0.5)}
        hvp = program.vjp(active="params").jvp(active="params").optimize()
        (_, *rest), (found, *none) = hvp.call(PARAMS, X, np.int64(3), CT, dot, scale=np.float64(2))
        assert rest == none == [None, None, None]
        expected = jax.jvp(lambda p: jax.grad(loss)(p, X), (PARAMS,), (dot,))[1]
        assert_agree(found, jax.tree.map(lambda x: 1.5 * x, expected), "HVP", 1e-12)
        # by a part of an argument, and by the cotangent
        mixed = program.vjp(active="params['w']").jvp(active=["x", "ct"])
        x_dot, ct_dot = np.cos(X), {"loss": np.float64(0.25), "count": None}
        _, (found, *_) = mixed.call(PARAMS, X, np.int64(3), CT, x_dot, ct_dot, scale=np.float64(2))
        assert found["b"] is None
        of_x = jax.jvp(lambda x: jax.grad(loss)(PARAMS, x)["w"], (X,), (x_dot,))
        assert_agree(found["w"], 1.5 * of_x[1] + 0.25 * of_x[0], "mixed", 1e-12)


def test_calls_by_name_and_as_lax_operations(program):
    with jax.enable_x64(True):
        vjp, scale = program.vjp(active=["x"]), np.float64(2)
        expected = 1.5 * jax.grad(loss, 1)(PARAMS, X)
        for run in (vjp.call, vjp.to_jax(), jax.jit(vjp.to_jax())):
            for found in (
                run(PARAMS, X, np.int64(3), CT, scale=scale),
                run(PARAMS, ct=CT, n=np.int64(3), x=X, scale=scale),
            ):
                assert found[0] is found[2] is found[3] is None
                assert_agree(found[1], expected, "x_bar", 1e-12)


def test_what_is_traced_again_and_transposed_has_the_names_still(program):
    with jax.enable_x64(True):
        vjp = program.vjp()
        args, scale = (PARAMS, X, np.int64(3), CT), np.float64(2)
        again = pb.trace(vjp.to_jax())(*args, scale=scale)
        assert again.input_names == (*vjp.input_names[:4], "ct['loss']", "scale")
        assert str(inspect.signature(vjp.to_jax())) == "(params, x, n, ct, *, scale)"
        back = program.linearize(active=["x", "params"]).linear.transpose(linear=["x_dot", "params_dot"])
        assert back.output_names == ("params_bar['b']", "params_bar['w']", "x_bar")
        forward = program.jvp(active="x").vjp(active=["x", "x_dot"])
        assert forward.output_names == ("x_bar", "x_dot_bar")


def test_arguments_that_do_not_fit(program):
    vjp, n, scale = program.vjp(), np.int64(3), np.float64(2)
    with pytest.raises(pb.ArgumentError, match=r"argument ct of vjp_model has the structure .*'count': None"):
        vjp.call(PARAMS, X, n, {"loss": 1.0, "count": 0}, scale=scale)
    for args, kwargs, got in (
        ((PARAMS, X, n), {"scale": scale}, "it got 3 by position and scale by name"),
        ((PARAMS, X, n, CT, scale), {}, "it got 5 by position$"),
        ((PARAMS, X, n, CT), {"x": X, "scale": scale}, "4 by position and x, scale by name"),
        ((PARAMS, X, n, CT), {"scales": scale}, "4 by position and scales by name"),
    ):
        with pytest.raises(pb.ArgumentError, match=r"takes the arguments params, x, n, scale=, ct, .*" + got):
            vjp.call(*args, **kwargs)


@pytest.mark.parametrize(
    "name, error, message",
    [
        ("z", pb.ArgumentError, r"model has no input 'z'; it has params, x, n, scale$"),
        ("para", pb.ArgumentError, r"model has no input 'para'; it has params"),
        ("params['c']", pb.ArgumentError, r"no input .*; it has params\['b'\], params\['w'\]$"),
        ("n", pb.NotDifferentiable, r"n of model has type i64\[\]; only float"),
    ],
)
def test_names_that_are_none(program, name, error, message):
    for transform in (program.vjp, program.jvp, program.linearize):
        with pytest.raises(error, match=message):
            transform(active=[name])
    with pytest.raises(error, match=message):
        program.transpose(linear=name)


def test_results_by_name_and_programs_without_names(x64):
    program = pb.trace(lambda x: {"a": 2 * x, "b": (3 * x, x)})(np.float64(1))
    back = program.transpose(cotangents=["result['b'][0]"])
    assert back.input_names == ("ct['b'][0]",)
    assert back.call({"a": None, "b": (np.float64(2), None)}) == (6.0,)
    with pytest.raises(pb.ArgumentError, match=r"has no result 'c'; it has result$"):
        program.transpose(cotangents="c")
    bare = pb.parse(program.text)
    assert bare.input_names is None and bare.vjp().structure is None
    with pytest.raises(pb.ArgumentError, match=r"the inputs of .* have no names"):
        bare.vjp(active="x")


def test_arguments_of_any_kind_have_a_name(x64):
    def f(a, /, *rest, **more):
        return a + sum(rest) + sum(more.values())

    program = pb.trace(f)(1.0, 2.0, 3.0, b=4.0)
    assert program.input_names == ("a", "rest_0", "rest_1", "b")
    many = pb.trace(lambda xs: sum(xs))([1.0] * 30)
    with pytest.raises(pb.ArgumentError, match=r"xs\[19\] and 10 more$"):
        many.vjp(active="xs[30]")


@jax.tree_util.register_pytree_node_class
class Strict:
    """Refuses parts that are no floats, as classes that check their fields do."""

    def __init__(self, x, n):
        assert not isinstance(x, int)
        self.x, self.n = x, n

    def tree_flatten(self):
        return (self.x, self.n), None

    @classmethod
    def tree_unflatten(cls, _, parts):
        return cls(*parts)


def test_classes_that_check_their_parts(x64):
    s = Strict(np.float64(3), np.int64(2))
    vjp = pb.trace(lambda s: s.x**2 * s.n)(s).vjp()
    (bar,) = vjp.call(s, np.float64(1))
    assert isinstance(bar, Strict) and bar.x == 12 and bar.n is None
    assert vjp.input_names[-1] == "ct" and vjp.input_names[0].startswith("s[")


def test_equal_programs_keep_their_own_names(x64):
    """Julia is asked once, by content; what it makes is given to each."""
    first, second = pb.trace(lambda x: x * 3)(2.0), pb.trace(lambda y: {"z": y * 3})(2.0)
    assert first == second and first.vjp() == second.vjp()
    assert first.vjp().input_names == ("x", "ct") and second.vjp().input_names == ("y", "ct['z']")
    assert first.vjp().call(2.0, 1.0) == second.vjp().call(2.0, {"z": 1.0}) == (3.0,)
