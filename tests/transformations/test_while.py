"""Reverse mode through `lax.while_loop` when nobody knows the trips beforehand; JAX itself refuses that.

The references are the same loops unrolled in Python, as often as they run at that point.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import processes
import pytest
from agreement import assert_agree
from casekit import computed
from jax import lax

import pybridge as pb

RNG = np.random.default_rng(23)
W = RNG.uniform(-0.5, 0.5, (3, 3))


def unrolled(cond: Callable, body: Callable, start: Any) -> Any:
    """The loop for values that are not traced: each trip is asked for at those that JAX differentiates at."""

    def value(x):
        return jax.tree.map(_primal, x)

    while bool(jax.tree.leaves(cond(value(start)))[0]):
        start = body(start)
    return start


def _primal(x: Any) -> Any:
    while hasattr(x, "primal"):
        x = x.primal
    return x


@dataclass(frozen=True)
class Loop:
    """f(while_loop, x...): a function with a loop in it, at some inputs."""

    f: Callable
    inputs: tuple


def newton(loop, x):
    return loop(lambda s: jnp.abs(s * s - x) > 1e-12, lambda s: (s + x / s) / 2, x)


def counted(loop, x, n):
    return loop(lambda s: s[0] < n, lambda s: (s[0] + 2, jnp.sin(s[1]) * x + s[0]), (jnp.asarray(1), x))[1]


def recurrent(loop, x, w):
    """A matrix that stays the same, and a carry that is no result's."""

    def step(s):
        h, total = s
        return jnp.tanh(w @ h + x) * 1.2, total + jnp.sum(h * h)

    h, _ = loop(lambda s: s[1] < 9.0, step, (x, jnp.sum(x) * 0))
    return jnp.sum(h * jnp.arange(1.0, 4.0))


def nested(loop, x):
    def inner(y):
        return loop(lambda z: jnp.abs(z) < 2.0, lambda z: z * z + y / 2, y)

    return jnp.sum(loop(lambda s: s < 40.0, lambda s: s + inner(x) * (1.5 + jnp.cos(s)), x * 2))


def complex_loop(loop, x):
    z = loop(lambda z: jnp.abs(z) < 9.0, lambda z: z * z * jnp.exp(1j * x) + x, x + 0.5j)
    return jnp.real(z * jnp.conj(z)) + jnp.imag(z)


def in_a_branch(loop, x):
    return lax.cond(x > 0, lambda x: newton(loop, x), jnp.sin, x)


LOOPS = {
    "newton": Loop(newton, (2.0,)),
    "no trips": Loop(lambda loop, x: loop(lambda s: s < 0.0, lambda s: s * 2, x) * x, (1.5,)),
    "counted by an input": Loop(lambda loop, x: counted(loop, x, jnp.asarray(9)), (0.7,)),
    "recurrent": Loop(recurrent, (np.asarray([0.3, -0.2, 0.8]), W)),
    "nested": Loop(nested, (0.9,)),
    "complex": Loop(complex_loop, (0.8,)),
    "in a branch": Loop(in_a_branch, (2.0,)),
}
ORDERS = {
    "first": lambda f, n: jax.grad(f, argnums=n),
    "reverse over reverse": lambda f, n: jax.grad(lambda *x: _norm(jax.grad(f, argnums=n)(*x)), argnums=n),
    "forward over reverse": lambda f, n: (
        lambda *x: jax.jvp(jax.grad(f, argnums=n), x, tuple(map(jnp.cos, x)))
    ),
}


def _norm(tree: Any) -> Any:
    return sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(tree))


HOW = {"natively": {"execute": "julia"}, "by XLA": {"execute": "xla", "while_bound": 40}}


@pytest.mark.parametrize("name", LOOPS)
def test_gradients(name, x64):
    case = LOOPS[name]
    x = tuple(map(jnp.asarray, case.inputs))
    argnums = tuple(range(len(x)))
    ways = list(itertools.product(HOW, ORDERS))
    bridged = {how: pb.bridge(lambda *x: case.f(lax.while_loop, *x), **HOW[how]) for how in HOW}
    found = computed([ORDERS[order](bridged[how], argnums) for how, order in ways], [x] * len(ways))
    with jax.disable_jit():  # lax.cond in the reference runs as Python's if
        expected = {
            order: derive(lambda *x: case.f(unrolled, *x), argnums)(*x) for order, derive in ORDERS.items()
        }
    for (how, order), ours in zip(ways, found, strict=True):
        assert_agree(ours, expected[order], f"{name}, {order}, {how}", 1e-9)


def test_a_scan_of_loops_and_a_loop_of_scans(x64):
    def scanned(loop, x):
        return lax.scan(lambda c, y: (c * jnp.cos(newton(loop, y)), c), x[0], x)[0]

    def of_scans(loop, x):
        def step(s):
            return lax.scan(lambda c, y: (c + jnp.sin(y * c), None), s, x)[0]

        return loop(lambda s: s < 4.0, step, x[0])

    x = jnp.asarray([0.4, 2.0, 7.0])
    for f in (scanned, of_scans):
        found = jax.grad(pb.bridge(lambda x, f=f: f(lax.while_loop, x), execute="julia"))(x)
        with jax.disable_jit():
            expected = jax.grad(lambda x, f=f: f(unrolled, x))(x)
        assert_agree(found, expected, f.__name__, 1e-9)


def test_items_of_a_batch_run_as_often_as_they_need(x64):
    x = jnp.asarray([0.04, 2.0, 1e6, 3.0])
    f = pb.bridge(lambda x: newton(lax.while_loop, x), execute="julia")
    expected = 0.5 / jnp.sqrt(x)
    assert_agree(jax.vmap(jax.grad(f))(x), expected, "vmap of grad", 1e-8)
    assert_agree(jax.grad(lambda x: jnp.sum(jax.vmap(f)(x)))(x), expected, "grad of vmap", 1e-8)
    second = jax.vmap(jax.grad(jax.grad(f)))(x)
    assert_agree(second * x**1.5, -0.25 + 0 * x, "vmap of grad of grad", 1e-6)


def test_a_jacobian_batches_the_way_back_alone(x64):
    def f(x):
        return lax.while_loop(lambda s: jnp.sum(s) < 9.0, lambda s: s * jnp.exp(W @ s / 9), x)

    x = jnp.asarray([0.5, 0.7, 0.9])
    g = pb.bridge(f, execute="julia")
    assert_agree(jax.jacrev(g)(x), jax.jacfwd(f)(x), "jacrev", 1e-9)
    assert_agree(
        jax.hessian(lambda x: g(x)[1])(x), jax.jacfwd(jax.jacfwd(lambda x: f(x)[1]))(x), "hessian", 1e-8
    )
    jaxpr = jax.make_jaxpr(jax.jacrev(g))(x)
    programs = [str(e.params["program"]) for e in jaxpr.eqns if "program" in e.params]
    (backward,) = [p for p in programs if "while_passes" in p]
    assert "reduce_or" not in backward and "select_n" not in backward


def test_programs_and_optimised_programs_agree_in_julia(x64):
    x = np.asarray([0.3, -0.2, 0.8])
    vjp = pb.trace(lambda x, w: recurrent(lax.while_loop, x, w))(x, W).vjp()
    assert "while_passes" in str(vjp)
    assert pb.parse(str(vjp)) == vjp
    expected = jax.grad(lambda x, w: recurrent(unrolled, x, w), (0, 1))(jnp.asarray(x), jnp.asarray(W))
    assert_agree(vjp.call(x, W, 1.0), expected, "vjp", 1e-9)
    assert_agree(vjp.optimize().call(x, W, 1.0), expected, "optimised vjp", 1e-9)


def test_a_long_loop():
    """The tape grows many times. The derivative of x -> x + n ε sin x is close to 1 + n ε cos x."""
    n = 300_000
    f = pb.bridge(
        lambda x, n: lax.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + 1e-9 * jnp.sin(s[1])), (0, x)
        )[1],
        execute="julia",
    )
    with jax.enable_x64(True):
        found = jax.jit(jax.grad(f))(0.5, n)
    np.testing.assert_allclose(found, 1 + n * 1e-9 * np.cos(0.5), rtol=1e-7)


def test_xla_refuses_and_names_both_remedies(x64):
    f = pb.bridge(lambda x: newton(lax.while_loop, x), execute="xla")
    with pytest.raises(
        pb.UnsupportedPrimitive, match=r"test_while\.py:\d+.*while_bound=N.*\"julia\""
    ) as refused:
        jax.grad(f)(2.0)
    assert refused.value.primitive == "while_passes" and "test_while.py" in refused.value.source
    with pytest.raises(pb.UnsupportedPrimitive, match="while_bound"):
        jax.vmap(jax.grad(f))(jnp.arange(1.0, 4.0))
    assert f(2.0) > 1.4 and jax.jvp(f, (2.0,), (1.0,))[1] > 0.3  # these need no memory that grows


def test_auto_runs_such_a_loop_natively(capsys, x64):
    f = pb.bridge(lambda x: newton(lax.while_loop, x), explain=True)
    assert abs(jax.grad(f)(2.0) - 0.5 / np.sqrt(2)) < 1e-5
    said = capsys.readouterr().err
    assert said.count("runs as native kernel") == said.count("runs as") > 0


def test_out_of_memory_is_an_error_and_the_process_goes_on():
    """The tape would take 1.3 GB; the limit is what the process may map."""
    code = """
    import resource
    import jax, jax.numpy as jnp
    from jax import lax
    import pybridge as pb

    def long(x, limit):
        step = lambda s: (s[0] + 1, jnp.sin(s[1]) + x)
        return jnp.sum(lax.while_loop(lambda s: s[0] < limit, step, (0, x))[1])

    f = jax.jit(jax.grad(pb.bridge(long, execute="julia")))
    x = jnp.full((128, 128), 0.5)
    before = f(x, 9)
    mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + 2**28, resource.RLIM_INFINITY))
    try:
        f(x, 20_000).block_until_ready()
    except (jax.errors.JaxRuntimeError, ValueError) as e:
        print(e)
    assert (f(x, 9) == before).all()
    print("goes on")
    """
    said = processes.run(code)
    assert "RESOURCE_EXHAUSTED" in said and "out of memory" in said, said
    assert said.rstrip().endswith("goes on")
