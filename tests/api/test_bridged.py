"""A bridged function is to Python and to JAX what the function is: by name, as a method, in others."""

from __future__ import annotations

import functools
import gc
import inspect
import pydoc
import re
import threading
import typing
import weakref
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from jax import lax

import pybridge as pb

X = np.linspace(0.5, 1.5, 3, dtype=np.float32)
own = functools.partial(pb.bridge, engine="jax")


def wave(x: jax.Array, a: float = 2.0, *, shift: typing.Optional["float"] = None) -> jax.Array:  # noqa: UP037, UP045
    """A wave.

    a: its frequency.
    """
    return jnp.sin(a * x) / a + (0 if shift is None else shift)


# What Python's tools see


def test_name_signature_and_documentation():
    f = own(wave, static_argnames="a")
    assert (f.__name__, f.__qualname__, f.__module__) == ("wave", "wave", __name__)
    assert f.__wrapped__ is wave and f.__doc__ == wave.__doc__
    assert inspect.signature(f) == inspect.signature(wave)
    assert typing.get_type_hints(f) == typing.get_type_hints(wave)
    assert inspect.unwrap(f) is wave and inspect.getsource(f) == inspect.getsource(wave)
    assert callable(f) and inspect.isroutine(f)
    shown = pydoc.render_doc(f, renderer=pydoc.plaintext)
    assert re.search(r"wave\(\s*x:", shown) and "its frequency" in shown


def test_attributes_of_the_function_are_taken_over():
    def f(x):
        return x

    f.example_args, f._settings, f.engine = (X,), "the user's", 3
    g = own(f)
    assert (g.example_args, g.engine) == (f.example_args, 3)
    assert_agree(g(X), X, "value")
    g.note = "mine"
    assert not hasattr(f, "note")


def test_repr_is_short_and_tells_the_options():
    assert repr(pb.bridge(wave)) == "<bridge of wave, engine='transpose', execute='auto'>"
    shown = repr(own(lambda x, n, *, m: x, static_argnums=-1, static_argnames=("m", "n"), while_bound=9))
    assert shown.startswith("<bridge of <lambda>, engine='jax', execute='xla', static_argnums=(1,), ")
    assert "static_argnames=['m', 'n'], while_bound=9>" in shown
    assert "bridge of wave," in repr(own(functools.partial(wave, a=3.0)))
    assert "bridge of Linear," in repr(own(eqx.nn.Linear(300, 300, key=jax.random.key(0))))


def test_identity_is_what_counts():
    f, g = own(wave), own(wave)
    assert f == f and f != g and len({f, g, f}) == 2
    h = functools.lru_cache(lambda function: function(1.0))
    assert h(f) == h(f) and h.cache_info().hits == 1


def test_it_goes_when_nobody_holds_it():
    f = own(lambda x: jnp.sin(x))
    f(1.0), jax.grad(f)(1.0)
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


# Methods


@functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["n"])
@dataclass
class Tree:
    w: jax.Array
    n: int

    @own
    def loss(self, x, a=1.0):
        """The loss."""
        return a * jnp.sum(self.w * x**self.n)

    @own(static_argnames="mode")
    def reduced(self, x, mode="sum"):
        return getattr(jnp, mode)(self.w * x)


class Plain:
    def __init__(self, w):
        self.w = w

    @own(static_argnums=0)
    def loss(self, x, a=1.0):
        return a * jnp.sum(self.w * x)

    @property
    @own(static_argnums=0)
    def norm(self):
        return jnp.sum(self.w**2)

    @staticmethod
    @own(static_argnums=1)
    def scaled(x, n):
        return n * x

    @classmethod
    @own(static_argnums=0)
    def made(cls, x):
        return len(cls.__name__) * x

    @own(static_argnums=0)
    def __call__(self, x):
        return self.w * x


class Module(eqx.Module):
    w: jax.Array
    n: int = eqx.field(static=True)

    @own
    def loss(self, x):
        return jnp.sum(self.w * x**self.n)

    @own
    def __call__(self, x):
        return self.w * x


def test_methods_of_pytrees_are_differentiated_in_the_object_too():
    tree = Tree(jnp.asarray(2 * X), 3)
    assert_agree(tree.loss(X), jnp.sum(2 * X**4), "value")
    assert_agree(jax.grad(tree.loss)(X), 6 * X**3, "in an argument")
    assert_agree(jax.grad(lambda t: t.loss(X, a=2.0))(tree).w, 2 * X**3, "in the object")
    assert_agree(jax.vmap(tree.reduced)(jnp.stack([X, X])), jnp.full(2, jnp.sum(2 * X**2)), "vmap")
    assert_agree(tree.reduced(X, mode="max"), jnp.max(2 * X**2), "static")
    module = Module(jnp.asarray(2 * X), 3)
    assert_agree(eqx.filter_grad(lambda m: m.loss(X))(module).w, X**3, "equinox")
    assert_agree(eqx.filter_jit(module)(X), 2 * X**2, "__call__")
    assert_agree(eqx.filter_jit(lambda f, x: f(x))(module.loss, X), jnp.sum(2 * X**4), "as an argument")


def test_methods_of_other_objects_have_it_as_a_static_argument():
    plain = Plain(jnp.asarray(2 * X))
    assert_agree(jax.grad(plain.loss)(X, 3.0), 6 * X, "method")
    assert_agree(plain(X), 2 * X**2, "__call__")
    assert_agree(plain.norm, jnp.sum(4 * X**2), "property")
    assert_agree((plain.scaled(X, 3), Plain.scaled(X, 3)), (3 * X, 3 * X), "static method")
    assert_agree((plain.made(2.0), Plain.made(2.0)), (jnp.float32(10), jnp.float32(10)), "class method")
    with pytest.raises(pb.ArgumentError, match=r"args\[0\].*Plain.*static_argnums"):
        own(Plain.loss.__wrapped__)(plain, X)


def test_bound_methods_are_pythons():
    tree = Tree(jnp.asarray(X), 2)
    assert inspect.ismethod(tree.loss) and tree.loss.__self__ is tree and tree.loss == tree.loss
    assert list(inspect.signature(tree.loss).parameters) == ["x", "a"]
    assert tree.loss.__name__ == "loss" and tree.loss.__doc__ == "The loss."


def test_options_of_a_bound_method_are_those_of_the_method():
    tree = Tree(jnp.asarray(X), 2)
    program = pb.trace(tree.reduced)(X, mode="prod")
    assert_agree(program.to_jax()(X), jnp.prod(X * X), "trace, by name")
    program = pb.trace(tree.reduced)(X, "prod")
    assert_agree(program.to_jax()(X), jnp.prod(X * X), "trace, by position")
    assert pb.trace(Plain(jnp.asarray(X)).loss)(X, 2.0).input_types[1].shape == ()
    assert pb.compare(tree.reduced, X, "prod", engines=["transpose"], repeats=0).agrees()


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_decorators_in_the_wrong_order_are_refused(kind):
    with pytest.raises(pb.UnknownOption, match=f"@{kind.__name__} above @bridge"):
        pb.bridge(kind(lambda x: x))


# In other functions


def test_as_a_value_in_other_functions():
    f = own(lambda x: jnp.sin(x) * x)
    expected = jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))(X)

    def loss(g, x):
        return jnp.sum(g(x))

    assert_agree(jax.jit(jax.grad(loss, 1), static_argnums=0)(f, X), expected, "static argument")
    assert_agree(jax.grad(functools.partial(loss, f))(X), expected, "partial")
    assert_agree(jax.grad(lambda x: jax.jit(lambda: loss(f, x))())(X), expected, "closure")
    partial = jax.tree_util.Partial(lambda a, x: loss(f, a * x), 1.0)
    assert_agree(jax.grad(lambda p, x: p(x), 1)(partial, X), expected, "JAX's partial")
    assert_agree(jax.grad(lambda p, x: p(x))(partial, X).args[0], X @ expected, "its argument")
    scanned = lax.scan(lambda c, v: (c + f(v), None), 0.0, X)[0]
    assert_agree(scanned, jnp.sum(jnp.sin(X) * X), "scan")
    switched = jax.grad(lambda x: jnp.sum(lax.switch(1, [jnp.cos, f], x)))(X)
    assert_agree(switched, expected, "switch")


def test_bridged_functions_in_bridged_functions_with_static_arguments():
    inner = pb.bridge(lambda x, n: x**n, static_argnums=1)

    @pb.bridge(static_argnames="depth")
    def outer(x, depth):
        return jnp.sum(inner(x, depth)) if depth < 2 else outer(inner(x, 2), depth - 1)

    assert_agree(outer(X, 3), jnp.sum(X**4), "value")
    assert_agree(jax.grad(outer)(X, 3), 4 * X**3, "grad")
    assert_agree(jax.hessian(outer)(X, depth=3), jnp.diag(12 * X**2), "hessian")


# Threads


@pytest.mark.parametrize("engine", ["jax", "transpose"])
def test_threads_that_call_it_first_together(engine):
    count, workers = 0, 8
    barrier = threading.Barrier(workers)

    @pb.bridge(engine=engine, static_argnums=1)
    def f(x, n):
        nonlocal count
        count += 1
        for _ in range(20):
            x = jnp.sin(x) + 0.1 * n
        return x

    found: dict[tuple[int, int], np.ndarray] = {}

    def work(k: int) -> None:
        barrier.wait()
        for n in (1, 2, 3):
            found[k, n] = np.asarray(jax.grad(lambda x, n=n: f(x, n).sum())(X + k // 4))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(workers)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(found) == 3 * workers and 3 <= count <= 3 * workers
    for (k, n), gradient in found.items():
        expected = jax.grad(lambda x, n=n: f.__wrapped__(x, n).sum())(X + k // 4)
        assert_agree(gradient, expected, f"thread {k}, n = {n}")
    traced = count
    f(X, 1), f(X, 2), f(X, 3)
    assert count == traced
