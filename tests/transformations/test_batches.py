"""`jax.vmap` of Programs: where results have their batch axis, and what that costs."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from bound_programs import programs_in
from casekit import QUICK
from covering import covering
from jax import lax

import pybridge as pb

XS = np.random.default_rng(0).uniform(0.5, 1, (3, 4))
YS = np.random.default_rng(1).uniform(0.5, 1, (4, 2, 3))


def path(x, y):
    """(x of 4, y of (4, 2)) -> the states of 5 trips, the last of them, and what depends on no argument."""

    def trip(state, _):
        state = jnp.sin(state) * x[:, None] + y
        return state, (state, state.sum(0))

    last, (states, sums) = lax.scan(trip, jnp.cos(y), None, length=5)
    return states, sums, last, jnp.arange(3.0)


def loss(x, y):
    return sum(jnp.sum(r * r) for r in path(x, y))


@pytest.mark.parametrize("execute", ["julia", "xla"])
@pytest.mark.parametrize("out_axes", [0, (1, 0, 1, 0), (2, 1, 2, 1)])
@pytest.mark.parametrize("in_axes", [(0, 2), (0, None), (None, 2)])
def test_every_place_of_the_batch_axis(in_axes, out_axes, execute, x64):
    args = [
        a if axis is not None else a.take(0, k) for a, axis, k in zip((XS, YS), in_axes, (0, 2), strict=True)
    ]
    found, wanted = (jax.vmap(f, in_axes, out_axes)(*args) for f in (pb.bridge(path, execute=execute), path))
    assert_agree(found, wanted, "value", 1e-12)


EXECUTES = "julia", "xla"


def assert_all_agree(f, ways, tolerance, runs=1):
    """Each way applied to `f`, and given the arguments next to it, is as in JAX, by kernels and by XLA.

    All are compiled as one program.
    """
    bridged = {execute: pb.bridge(f, execute=execute) for execute in EXECUTES}

    @functools.partial(jax.jit, compiler_options=QUICK)
    def program(given):
        return {
            name: {way: of(g)(*given[way]) for way, (of, _) in ways.items()}
            for name, g in (bridged | {"jax": f}).items()
        }

    for _ in range(runs):
        results = program({way: args for way, (_, args) in ways.items()})
        for execute in EXECUTES:
            for way, expected in results["jax"].items():
                assert_agree(results[execute][way], expected, f"{way}, {execute}", tolerance)


def test_derivatives_of_batches(x64):
    ways = {
        "vmap of grad": lambda f: jax.vmap(jax.grad(f, (0, 1)), (0, 2)),
        "grad of vmap": lambda f: jax.grad(lambda x, y: jax.vmap(f, (0, 2))(x, y).sum(), (0, 1)),
        "vmap of vmap": lambda f: lambda x, y: jax.vmap(jax.vmap(jax.grad(f), (None, 2)), (0, None))(x, y),
        "vmap of hvp": lambda f: jax.vmap(lambda x, y: jax.jvp(jax.grad(f), (x, y), (y[:, 0], y))[1], (0, 2)),
        "hessian": lambda f: lambda x, y: jax.hessian(f)(x[0], y[..., 0]),
    }
    assert_all_agree(loss, {name: (of, (XS, YS)) for name, of in ways.items()}, 1e-10)
    of = ways["vmap of grad"]
    assert_agree(of(pb.bridge(loss))(XS, YS), of(loss)(XS, YS), "eager", 1e-10)


def test_residuals_of_a_loop_are_not_moved(x64):
    """They have the batch axis behind that of the trips, where JAX's rule for `scan` puts it and wants it."""
    g = pb.bridge(lambda x, y: path(x, y)[2])
    of = jax.vmap(jax.grad(lambda x, y: jnp.sum(g(x, y)), (0, 1)), (0, 2))
    forward, backward = programs_in(jax.make_jaxpr(of)(XS, YS).jaxpr)
    moved = [eq for p in (forward, backward) for eq in p.all_equations() if eq.op == "transpose"]
    assert not [eq for eq in moved if 5 in eq.outputs[0].type.shape]


def test_stacked_results_have_the_batch_axis_in_front(x64):
    """Where the user wants it: a kernel puts it there as it writes, and XLA would in a pass of its own."""
    of = jax.vmap(pb.bridge(path), (0, 2))
    (program,) = programs_in(jax.make_jaxpr(of)(XS, YS).jaxpr)
    assert program.output_types[0].shape == (3, 5, 4, 2)


def lorenz(parameters, state, weights):
    """Scalars that a loop in a loop carries: what is kept of a trip is a record of them."""

    def step(s, w):
        x, y, z = s
        sigma, rho, beta = parameters
        return (x + w * sigma * (y - x), y + w * (x * (rho - z) - y), z + w * (x * y - beta * z)), x * y

    def outer(s, w):
        s, seen = lax.scan(step, s, w)
        return s, jnp.sum(jnp.sin(seen))

    end, sums = lax.scan(outer, tuple(state), weights)
    return sum(end) + jnp.sum(sums)


def items(n):
    rng = np.random.default_rng(n)
    return rng.uniform(0.5, 1.5, (n, 3)), rng.uniform(0.5, 1.5, (3, n)), rng.uniform(0.01, 0.02, (n, 4, 5))


AXES = (0, 1, 0)
OF_RECORDS = {
    "gradients": lambda f: jax.vmap(jax.grad(f, (0, 1, 2)), AXES),
    "grad of vmap": lambda f: jax.grad(lambda *x: jax.vmap(f, AXES)(*x).sum(), (0, 1, 2)),
    "shared": lambda f: jax.vmap(jax.grad(f, (0, 1, 2)), (None, 1, None)),
    "HVPs": lambda f: jax.vmap(lambda *x: jax.jvp(jax.grad(f, (0, 1, 2)), x, x)[1], AXES),
    "Hessians": lambda f: jax.vmap(jax.hessian(f), AXES),
    "vmap of vmap": lambda f: jax.vmap(jax.vmap(jax.grad(f), (None, 1, None)), (0, None, 0)),
}
SIZES = [3, 16, 37]
COVERED = covering(OF_RECORDS, SIZES, least=1)


@pytest.mark.parametrize("n", SIZES)
def test_records_of_batches(n, x64):
    args = items(n)
    shared = (args[0][0], args[1], args[2][0])
    ways = {way: (OF_RECORDS[way], shared if way == "shared" else args) for way, size in COVERED if size == n}
    assert_all_agree(lorenz, ways, 1e-10)


@pytest.mark.parametrize(
    ("n", "execute", "shape"),
    [(16, "julia", (4, 5, 3, 16)), (15, "julia", (4, 15, 5, 3)), (16, "xla", (4, 16, 5, 3))],
)
def test_numbers_of_records_are_apart_in_vectors_of_items(n, execute, shape, x64):
    bridged = pb.bridge(lambda *args: lorenz(*args)[None], execute=execute)
    of = jax.vmap(jax.grad(lambda *args: bridged(*args)[0]), (0, 1, 0))
    forward, _ = programs_in(jax.make_jaxpr(of)(*items(n)).jaxpr)
    assert shape in [t.shape for t in forward.output_types]


# Loops over so many items run block by block, which threads share.
_PARTICLES = 3001


def pendulums(angles, speeds, length, trips=120):
    """Pendulums (angle and speed of each, a length for all) -> the mean energy along the path of each."""

    def trip(state, t):
        angle, speed = state
        speed = speed - 0.01 * jnp.sin(angle) / length * (1 + 0.1 * t / trips)
        angle = angle + 0.01 * speed
        return (angle, speed), 0.5 * speed**2 - jnp.cos(angle) / length

    (angle, speed), energies = lax.scan(trip, (angles, speeds), jnp.arange(trips))
    return energies.mean(0), angle, speed


def energy(f):
    return lambda *args: sum(jnp.sum(r * r) for r in f(*args))


OF_PENDULUMS = {
    "value": lambda f: f,
    "whole": lambda f: jax.value_and_grad(energy(f), (0, 1, 2)),
    "apart": lambda f: jax.vmap(jax.grad(energy(f), (0, 1, 2)), (0, 0, None)),
}


@pytest.mark.parametrize(("way", "dtype"), covering(OF_PENDULUMS, ["float64", "float32"], least=1))
def test_blocks_of_items_on_threads(way, dtype, x64):
    random = np.random.default_rng(3)
    angles, speeds = (random.normal(size=_PARTICLES).astype(dtype) for _ in range(2))
    args = angles, speeds, jnp.asarray(1.3, dtype)
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    of = OF_PENDULUMS[way]
    ours, wanted = jax.jit(of(pb.bridge(pendulums, execute="julia"))), jax.jit(of(pendulums))(*args)
    for _ in range(3):  # threads take the blocks in another order each time
        assert_agree(ours(*args), wanted, way, tolerance)


def simulated(rates, start, days=40):
    """An SIR model that writes its path: (2 rates, 2 fractions at the start) -> its misfit."""

    def day(t, path):
        s, i = path[t - 1]
        new = rates[0] * s * i
        return path.at[t].set(jnp.stack([s - new, i + new - rates[1] * i]))

    path = lax.fori_loop(1, days, day, jnp.zeros((days, 2)).at[0].set(start))
    return jnp.sum(path[:, 1] ** 2)


def blocks_in(program):
    """The numbers of trips of the loops that carry nothing."""
    return [eq.attrs["length"] for eq in program.equations if eq.op == "scan" and not eq.attrs["carry"]]


NUMBERS = 4096, 1999
OF_LOOPS = covering(NUMBERS, ["both", "one of them", "HVPs"], least=1)


@pytest.mark.parametrize("n", NUMBERS)
def test_gradients_of_many_loops_in_blocks(n, x64):
    """Of items that do not fill the last block, too, and on threads, which take the blocks in any order."""
    rng = np.random.default_rng(n)
    rates, starts = rng.uniform(0.1, 0.3, (n, 2)), rng.uniform(0.01, 1, (n, 2))
    ways = {
        "both": (lambda f: jax.vmap(jax.value_and_grad(f, (0, 1))), (rates, starts)),
        "one of them": (lambda f: jax.vmap(jax.grad(f, (0, 1)), (0, None)), (rates, starts[0])),
        "HVPs": (lambda f: jax.vmap(lambda *x: jax.jvp(jax.grad(f, (0, 1)), x, x)[1]), (rates, starts)),
    }
    assert_all_agree(simulated, {way: ways[way] for size, way in OF_LOOPS if size == n}, 1e-10, runs=2)
    for execute in EXECUTES:
        of = jax.vmap(jax.grad(pb.bridge(simulated, execute=execute)))
        blocks = [k for p in programs_in(jax.make_jaxpr(of)(rates, starts).jaxpr) for k in blocks_in(p)]
        assert not blocks if execute == "xla" else 4 <= blocks[0] <= n // 16


def test_few_items_and_large_ones_are_in_no_blocks(x64):
    of = jax.vmap(jax.grad(pb.bridge(simulated, execute="julia")))
    few = np.full((100, 2), 0.2)
    (program,) = programs_in(jax.make_jaxpr(of)(few, few).jaxpr)
    assert not blocks_in(program)
    long = jax.vmap(jax.grad(pb.bridge(lambda r, s: simulated(r, s, 4000), execute="julia")))
    many = np.full((1000, 2), 0.2)
    (program,) = programs_in(jax.make_jaxpr(long)(many, many).jaxpr)
    assert not blocks_in(program)


def test_results_that_all_items_share_come_once_from_blocks(x64):
    def f(x, y):
        total, path = lax.scan(lambda s, k: (s + x * k, jnp.sin(s) * x), x, jnp.linspace(0.0, 1.0, 300))
        return total * jnp.sum(path), jnp.cos(y), jnp.arange(3)

    x, y = np.random.default_rng(0).uniform(size=2000), np.float64(0.3)
    g = jax.vmap(pb.bridge(f, execute="julia"), (0, None), (0, None, None))
    assert_agree(g(x, y), jax.vmap(f, (0, None), (0, None, None))(x, y), "value", 1e-12)
