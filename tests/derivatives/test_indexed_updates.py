"""Loops that update elements of arrays in place, and their derivatives, natively against JAX.

`PYBRIDGE_INDEXED_LOOPS` says how many random loops are tried, `PYBRIDGE_INDEXED_FIRST` the seed of the first,
and `PYBRIDGE_INDEXED_DRAWS` on how many arguments each: each is a case.
"""

from __future__ import annotations

import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import QUICK
from covering import FULL
from indexed_programs import arguments, loop

import pybridge as pb
from pybridge.runtime import native

_LOOPS = int(os.environ.get("PYBRIDGE_INDEXED_LOOPS", "12" if FULL else "5"))
_FIRST = int(os.environ.get("PYBRIDGE_INDEXED_FIRST", "0"))
_DRAWS = int(os.environ.get("PYBRIDGE_INDEXED_DRAWS", "20"))
_ITEMS = 40
"""So many that arrays are kept with the axis of the batch last."""

pytestmark = pytest.mark.usefixtures("x64")


def _measured(f, seed: int, args, tangents):
    """Value, gradient, and that of a batch or a Hessian-vector product: both where everything is tested.

    In one batch of two the items have the same integers.
    """
    *arrays, given = args
    gradient = jax.grad(f, argnums=(0, 1))
    found = {"value": f(*args), "gradient": gradient(*args)}
    if FULL or seed % 4 < 2:
        together = seed % 2 == 0
        batch = [jnp.multiply.outer(jnp.linspace(0.8, 1.0, _ITEMS), x) for x in arrays]
        integers = given if together else given + jnp.arange(_ITEMS)[:, None] % 3
        found["gradients of a batch"] = jax.vmap(gradient, (0, 0, None if together else 0))(*batch, integers)
    if FULL or seed % 4 >= 2:
        found["HVP"] = jax.jvp(lambda *arrays: gradient(*arrays, given), arrays, tangents)[1]
    return found


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _LOOPS))
def test_random_loops(seed):
    f = loop(seed)
    bridged = pb.bridge(f, execute="julia")

    @jax.jit(compiler_options=QUICK)
    def both(args, tangents):
        return [_measured(g, seed, args, tangents) for g in (bridged, f)]

    rng = np.random.default_rng(seed)
    for draw in range(_DRAWS):
        args = arguments(rng)
        tangents = [rng.standard_normal(x.shape) for x in args[:2]]
        ours, theirs = both(args, tangents)
        for name, y in theirs.items():
            assert_agree(ours[name], y, f"loop {seed}, draw {draw}: {name}")


@pytest.fixture(autouse=True, scope="module")
def compiled_code_is_dropped():
    yield
    jax.clear_caches()


def _path(trips):
    """A simulation that writes its states into an array, and reads it as it goes."""

    def f(x):
        def trip(k, carry):
            path, s = carry
            s = jnp.sin(s) * x[k] + 0.1 * path[k // 2]
            return path.at[k].set(s), s

        path, _ = jax.lax.fori_loop(0, trips, trip, (jnp.zeros_like(x), 1.0))
        return jnp.sum(path**2)

    return f


def _sweep(trips):
    """Gauss-Seidel: each trip writes an element and reads its neighbours."""

    def f(x):
        def trip(k, a):
            i = k % (x.shape[0] - 2) + 1
            return a.at[i].set((a[i - 1] + a[i] + a[i + 1]) / 3)

        return jnp.sum(jax.lax.fori_loop(0, trips, trip, x) ** 2)

    return f


@pytest.mark.parametrize("make", [_path, _sweep])
@pytest.mark.parametrize("derivative", [False, True], ids=["value", "gradient"])
def test_a_trip_takes_no_longer_for_a_longer_array(make, derivative):
    f = pb.bridge(make(1_500), execute="julia")
    run = jax.jit(jax.grad(f) if derivative else f)

    def seconds(n):
        x = jnp.linspace(0.1, 0.9, n)
        jax.block_until_ready(run(x))
        times = []
        for _ in range(7):
            begun = time.process_time()
            jax.block_until_ready(run(x))
            times.append(time.process_time() - begun)
        return min(times)

    # Passing the array in each trip would take 1 500 times what passing it once or twice takes.
    assert seconds(200_000) < seconds(2_000) + 0.05


def _cholesky(a):
    """A factorization a column at a time: the derivative of each trip needs the whole matrix before it."""
    at = np.arange(a.shape[0])

    def column(j, a):
        left = a[:, j] - a @ jnp.where(at < j, a[j], 0.0)
        return a.at[:, j].set(jnp.where(at >= j, left / jnp.sqrt(left[j]), a[:, j]))

    return jnp.tril(jax.lax.fori_loop(0, len(at), column, a))


@pytest.mark.parametrize("execute", ["julia", "xla"])
def test_trips_keep_what_they_overwrite(execute):
    n = 40
    rng = np.random.default_rng(3)
    a = rng.standard_normal((n, n))
    a = a @ a.T + n * np.eye(n)
    weights = rng.standard_normal((n, n))

    def loss(f):
        return lambda a: jnp.sum(weights * f(a))

    bridged = jax.grad(loss(pb.bridge(_cholesky, execute=execute)))
    expected = jax.grad(loss(_cholesky))
    compiled = jax.jit(bridged).lower(a).compile()
    # 40 matrices have 512 kB.
    assert jax.jit(expected).lower(a).compile().memory_analysis().temp_size_in_bytes > 500_000
    assert native.memory(compiled) - a.nbytes < 110_000
    assert_agree(compiled(a), jax.jit(expected)(a), "gradient")
    by_lapack = jax.grad(lambda a: jnp.sum(jnp.tril(weights) * jnp.linalg.cholesky(a)))(a)
    symmetric = jax.tree.map(lambda g: np.tril(g + g.T) - np.diag(np.diag(g)), (compiled(a), by_lapack))
    assert_agree(*symmetric, "gradient by the lower triangle")
    tangent = rng.standard_normal((n, n))
    assert_agree(
        jax.jvp(jax.jit(bridged), (a,), (tangent,))[1], jax.jvp(jax.jit(expected), (a,), (tangent,))[1], "HVP"
    )
