"""Calls of bridged functions where nothing is traced: what is compiled is called without Python's work."""

from __future__ import annotations

import gc
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree

import pybridge as pb
from pybridge.api import bridged as module

X = jnp.linspace(-1.0, 1.5, 6)


def same(found, expected):
    assert_agree(found, expected, "called where nothing is traced")


@pytest.fixture
def looked_at(monkeypatch):
    """How often a bridged function looked at its arguments, and at the function."""
    counts = {"arguments": 0, "function": 0}
    trace, closed_trace = module.Bridged._trace, module.closed_trace

    def counted_trace(self, *args):
        counts["arguments"] += 1
        return trace(self, *args)

    def counted_closed_trace(*args):
        counts["function"] += 1
        return closed_trace(*args)

    monkeypatch.setattr(module.Bridged, "_trace", counted_trace)
    monkeypatch.setattr(module, "closed_trace", counted_closed_trace)
    return counts


@pytest.mark.parametrize("execute", ["auto", "julia", "xla"])
def test_python_does_nothing_from_the_second_call_on(execute, looked_at):
    def f(tree, scale):
        return {"y": jnp.sin(tree["x"]) * scale, "same": tree["x"], "three": jnp.float32(3)}

    g = pb.bridge(f, execute=execute)
    for _ in range(2):
        same(g({"x": X}, scale=X[0]), f({"x": X}, X[0]))
    before = dict(looked_at)
    assert before["function"] == 1
    for _ in range(5):
        same(g({"x": X + 1}, scale=X[1]), f({"x": X + 1}, X[1]))
    assert looked_at == before


def test_each_shape_and_dtype_and_tree_is_traced_once(looked_at):
    g = pb.bridge(lambda *xs: sum(jnp.sum(x * x) for x in xs))
    calls = [(X,), (X[:3],), (X, X), (X.astype(jnp.float16),), (X > 0, X)]
    for _ in range(3):
        for xs in calls:
            same(g(*xs), sum(jnp.sum(x * x) for x in xs))
    assert looked_at["function"] == len(calls)


def test_arguments_of_any_kind_and_transformations_give_the_same():
    def f(x, n=2.0):
        return jnp.cos(x) ** n

    g = pb.bridge(f)
    for x in (X, np.asarray(X), 0.5, np.float32(0.5), X):
        same(g(x), f(x))
        same(g(x, n=3.0), f(x, n=3.0))
        assert g(x).weak_type == jax.jit(f)(x).weak_type
    same(jax.grad(lambda x: g(x).sum())(X), jax.grad(lambda x: f(x).sum())(X))
    same(jax.vmap(g)(X), jax.vmap(f)(X))
    same(jax.jit(lambda: g(X))(), f(X))


def test_a_function_in_pieces_stays_in_pieces():
    seen = []

    def f(x, print_it):
        if x.shape[0] == 3:
            jax.debug.callback(lambda v: seen.append(float(v)), x[0], ordered=True)
        return jnp.sin(x) * print_it

    g = pb.bridge(f)
    same(g(X, X[0]), f(X, X[0]))
    for k in range(3):
        same(g(X[k : k + 3], X[0]), jnp.sin(X[k : k + 3]) * X[0])
    jax.effects_barrier()
    assert seen == [float(x) for x in X[:3]]
    same(g(X, X[1]), f(X, X[1]))


def test_a_large_constant_is_no_part_of_what_is_compiled():
    large = jnp.arange(100_000.0)
    g = pb.bridge(lambda x: jnp.sum(large * x))
    for scale in (X[0], X[1]):
        same(g(scale), jnp.sum(large * scale))
    assert g._compiled is None


def test_settings_of_jax_are_heeded():
    g = pb.bridge(jnp.log)
    same(g(X + 2), jnp.log(X + 2))
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        g(X)
    with jax.disable_jit():
        same(g(X + 2), jnp.log(X + 2))
    with jax.enable_x64(True):
        x = jnp.asarray(np.linspace(1, 2, 6))
        assert g(x).dtype == jnp.float64
        same(g(x), jnp.log(x))
    assert bool(jnp.isnan(g(X)[0]))


def test_a_dropped_function_is_dropped():
    g = pb.bridge(lambda x: x * 3)
    g(X), g(X)
    reference = weakref.ref(g)
    del g
    gc.collect()
    assert reference() is None


def test_many_threads_call_one_function():
    g = pb.bridge(lambda x: jnp.sin(x) * 5)
    found: list = []

    def work():
        found.extend(g(X + k) for k in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 80
    for k, y in enumerate(found[:20]):
        assert y.shape == X.shape and bool(jnp.isfinite(y).all()), k
