"""Bridged functions, Programs, Julia functions and exports in pickles, in copies and in other processes."""

from __future__ import annotations

import copy
import functools
import itertools
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import processes
import pytest
from agreement import assert_agree

import pybridge as pb

X = np.linspace(0.5, 1.5, 3, dtype=np.float32)
own = functools.partial(pb.bridge, engine="jax")


def wave(x, a=2.0):
    return jnp.sin(a * x) / a


bridged_wave = own(wave, while_bound=3)


@own
def decorated(x):
    return jnp.sum(x**2)


@own(static_argnames="n")
def tower(x, n):
    return x if n == 0 else jnp.sin(tower(x, n - 1))


@own
@jax.jit
def over_jit(x):
    return jnp.cos(x)


@jax.jit
@own
def under_jit(x):
    return jnp.cos(x)


def logged(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)

    return wrapper


@logged
@own
def between(x):
    return jnp.tan(x)


@dataclass
class Model:
    w: Any

    @own(static_argnums=0)
    def loss(self, x):
        return jnp.sum(self.w * x)

    __hash__ = object.__hash__

    @staticmethod
    @own
    def double(x):
        return 2 * x

    @classmethod
    @own(static_argnums=0)
    def name(cls, x):
        return len(cls.__name__) * x


@dataclass
class Scaled:
    """A callable object with a state."""

    a: float

    def __call__(self, x):
        return self.a * x


NAMED = {  # what leads to them is their name
    "decorated": decorated,
    "recursive": tower,
    "over jit": over_jit,
    "under another decorator": between.__wrapped__,
    "method": Model.loss,
    "static method": Model.double,
    "under jit": under_jit.__wrapped__,
}
OTHERS = {
    "function": bridged_wave,
    "a second one": own(decorated.__wrapped__, while_bound=3),
    "JAX's function": own(jnp.sin),
    "JAX's function, not jitted": own(jax.nn.relu),
    "partial": own(functools.partial(wave, a=3.0)),
    "twice": own(decorated),
    "object": own(Scaled(2.0)),
    "class method": Model.name.__func__,
}
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def again(x: Any, protocol: int | None = None) -> Any:
    return pickle.loads(pickle.dumps(x, protocol))


@pytest.mark.parametrize(
    ("name", "protocol"),
    # older protocols pickle what holds the function first, and not every JAX has its own functions pickled
    [(name, p) for name, p in itertools.product(NAMED, PROTOCOLS) if p >= 4 or name != "under jit"],
)
def test_a_decorated_function_is_itself_again(name, protocol):
    f = NAMED[name]
    assert again(f, protocol) is f
    assert again([f, f], protocol) == [f, f]
    assert pickle.loads(cloudpickle.dumps(f)) is f


@pytest.mark.parametrize("name", OTHERS)
def test_another_function_is_one_like_it(name):
    f = OTHERS[name]
    for g in (again(f), again(f, 2), pickle.loads(cloudpickle.dumps(f))):
        assert type(g) is type(f) and g is not f
        assert repr(g) == repr(f) and g.static_arguments == f.static_arguments
        args = (Model, X) if name == "class method" else (X,)
        assert_agree(g(*args), f(*args), "value")
    first, second = again([f, f])
    assert first is second


def test_bound_methods_and_partials():
    model = Model(jnp.ones(3))
    bound = again(model.loss)
    assert_agree(bound(X), model.loss(X), "method")
    assert again(Model.name)(2.0) == 10 and again(Model.double)(2.0) == 4
    assert_agree(again(functools.partial(tower, n=2))(X), jnp.sin(jnp.sin(X)), "partial")
    partial = again(jax.tree_util.Partial(bridged_wave, a=3.0))
    assert_agree(jax.jit(lambda p, x: p(x))(partial, X), wave(X, 3.0), "JAX's partial")


def test_what_was_traced_stays_out():
    f = own(wave)
    before = pickle.dumps(f), cloudpickle.dumps(f)
    f(X), jax.grad(f)(1.0), jax.jit(f)(X), jax.vmap(f)(X)
    assert (pickle.dumps(f), cloudpickle.dumps(f)) == before

    count = 0

    def counted(x):
        nonlocal count
        count += 1
        return x

    own(counted)(1.0)
    g = pickle.loads(cloudpickle.dumps(own(counted)))
    g(1.0), g(2.0)
    assert g.__wrapped__.__closure__[0].cell_contents == 2  # its own count, from 1 on
    assert count == 1


def test_inside_a_transformation():
    def loss(x):
        f = own(lambda y: jnp.sum(x * y))
        f(x)
        return again(decorated)(x) + own(again(bridged_wave))(x).sum()

    assert_agree(jax.grad(loss)(X), jax.grad(lambda x: jnp.sum(x**2) + wave(x).sum())(X), "grad")


def test_attributes_of_the_user_come_along():
    f = own(wave)
    f.example_args, f.__doc__ = (X,), "Changed."
    for g in (again(f), pickle.loads(cloudpickle.dumps(f))):
        assert g.__doc__ == "Changed." and np.array_equal(g.example_args[0], X)
        assert g.__wrapped__ is wave


def test_what_has_no_name_needs_cloudpickle():
    a = jnp.asarray(3.0)

    @own
    def local(x):
        return a * x

    for f in (local, own(lambda x: a * x)):
        with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
            pickle.dumps(f)
        g = pickle.loads(cloudpickle.dumps(f))
        assert_agree(jax.grad(lambda x, g=g: g(x).sum())(X), 3 * np.ones(3, np.float32), "grad")


def test_modules_that_cloudpickle_is_told_to_send():
    here = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(here)
    try:
        sent = cloudpickle.dumps(tower)
    finally:
        cloudpickle.unregister_pickle_by_value(here)
    f = pickle.loads(sent)
    assert f is not tower and f.__name__ == f.__qualname__ == "tower"
    assert f.__wrapped__.__globals__["tower"] is f  # it calls the one that was sent
    assert_agree(f(X, 2), jnp.sin(jnp.sin(X)), "value")


# Copies


def test_functions_are_their_own_copies():
    for f in (bridged_wave, decorated, own(lambda x: x)):
        assert copy.copy(f) is f and copy.deepcopy(f) is f
        assert copy.deepcopy({"f": [f]})["f"][0] is f


def test_a_copy_of_an_object_has_a_bridged_method_of_its_own():
    class Solver:
        def __init__(self):
            self.a = jnp.ones(3)
            self.step = own(self._step)
            self.step.note = ["mutable"]

        def _step(self, x):
            return self.a * x

    solver = Solver()
    assert_agree(solver.step(X), X, "before")
    other = copy.deepcopy(solver)
    other.a = 2 * other.a
    assert_agree(other.step(X), 2 * X, "the copy's own, traced anew")
    assert other.step.__wrapped__.__self__ is other
    assert other.step.note == ["mutable"] and other.step.note is not solver.step.note
    assert copy.copy(solver).step is solver.step


# Programs


def scanned(x):
    constant = np.arange(300, dtype=np.float32)
    y, _ = jax.lax.scan(lambda c, v: (jnp.tanh(c * v), c), x[0], x)
    return {"y": y, "z": (x[0] * constant, None)}


def test_programs(x64):
    program = pb.trace(scanned)(X.astype(np.float64))
    for p in (again(program), again(program, 2), copy.deepcopy(program), copy.copy(program)):
        assert p == program and str(p) == str(program) and p.structure == program.structure
        assert_agree(p.to_jax()(X.astype(np.float64)), scanned(X.astype(np.float64)), "value")
    (body,) = (body for eq in program.equations for body in eq.bodies)
    assert again(body) == body and again(body).name == "" and again(program.equations) == program.equations


def test_derivatives_and_symbolic_programs():
    program = pb.trace(wave)(X)
    assert again(program.vjp()) == program.vjp()
    split = again(program.linearize())
    assert (split.known, split.linear) == (program.linearize().known, program.linearize().linear)
    spec = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 2*b"), jnp.float32)
    symbolic = pb.trace(lambda x: jnp.sin(x).sum(0))(spec)
    assert again(symbolic) == symbolic
    assert_agree(again(symbolic).to_jax()(np.ones((2, 4), np.float32)), 2 * jnp.sin(jnp.ones(4)), "at a size")


# Exports and Julia functions


def test_exports():
    exported = pb.export(decorated, ["cpu"])(X)
    assert isinstance(exported, jax.export.Exported)
    for other in (again(exported), copy.copy(exported), copy.deepcopy(exported)):
        assert_agree(other.call(X), decorated(X), "value")
    assert_agree(jax.grad(copy.deepcopy(exported).call)(X), 2 * X, "a copy has its derivatives")
    with pytest.raises(ValueError, match="No VJP"):
        jax.grad(again(exported).call)(X)
    kept = jax.export.deserialize(bytearray(exported.serialize(vjp_order=1)))
    assert_agree(jax.grad(kept.call)(X), 2 * X, "gradient")


def like(x):
    return x


def test_julia_functions(tmp_path):
    file = tmp_path / "model.jl"
    file.write_text("double(x) = 2 .* x\ndouble_vjp((x,), ct) = (2 .* ct,)\n")
    f = pb.julia_function("double", source=file, result=like, vjp="double_vjp")
    sent = pickle.dumps(f)
    file.unlink()  # the source is in the pickle
    for g in (pickle.loads(sent), copy.copy(f), copy.deepcopy(f)):
        assert g.function == f.function and repr(g) == repr(f) and g.__name__ == "double"
        assert_agree(g(X), 2 * X, "value")
        assert_agree(jax.grad(lambda x, g=g: g(x).sum())(X), 2 * np.ones(3, np.float32), "grad")
    promised = pb.julia_function(
        "double", source="double(x) = 2x", result=jax.ShapeDtypeStruct((), jnp.float32)
    )
    assert again(promised).result == promised.result
    inferred = again(pb.julia_function("sum", source=None))
    assert inferred(X) == X.sum()


def test_errors_keep_what_they_say():
    unsupported = pb.UnsupportedPrimitive("no such thing", primitive="thing", source="f.py:1 (f)")
    raised = pb.JuliaError("failed", kind="DomainError", stacktrace="[1] f")
    for error in (unsupported, raised, pb.UnknownOption("this one"), pb.NotPicklable("that one")):
        other = again(error)
        assert type(other) is type(error) and str(other) == str(error) and vars(other) == vars(error)


# Other processes


WAYS = ["spawn", "joblib", "dask"]


@pytest.fixture(scope="module")
def spread():
    """What one process says of each way that it spreads the same work."""
    return processes.run_file(Path(__file__).with_name("spread.py"), *WAYS)


@pytest.mark.parametrize("way", WAYS)
def test_worker_processes_compute_the_same(spread, way):
    assert f"{way}: fine" in spread.splitlines(), spread


def test_a_forked_child_is_refused_by_name():
    said = processes.run("""
        import os, warnings
        warnings.simplefilter("ignore")  # JAX and Python warn of forks with threads
        import numpy as np
        import pybridge as pb
        f = pb.bridge(lambda x: x * x)
        h = pb.julia_function("double", source="double(x) = 2 .* x", result=lambda x: x)
        x = np.ones(3, np.float32)
        f(x), h(x)
        child = os.fork()
        if child == 0:
            refused = 0
            for call in (f, h, pb.bridge(lambda x: x + 1)):
                try:
                    call(x)
                except pb.ForkedProcess as problem:
                    refused += "spawn" in str(problem)
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        print(f(x)[0], h(x)[0])
    """)
    assert said == "1.0 2.0\n"
