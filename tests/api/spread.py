"""A user's script whose functions, its own and bridged, are computed in worker processes.

`python spread.py WAY...`, each spawn, joblib or dask, compares what the workers give with what this process
gives.
"""

from __future__ import annotations

import functools
import multiprocessing
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pybridge as pb


@pb.bridge(static_argnames="n")
def tower(x, n):
    return x if n == 0 else jnp.sin(tower(x, n - 1))


class Model:
    def __init__(self, w):
        self.w = w

    @pb.bridge(static_argnums=0)
    def loss(self, x):
        return jnp.sum(self.w * x**2)


def cube(x):
    return x**3


def same_shape(x):
    return x


def gradient(f, x):
    return np.asarray(jax.grad(lambda x: f(x).sum())(x))


def pulled(program, x, ct):
    return np.asarray(program.call(x, ct)[0])


def refusal(x):
    return pb.bridge(cube, static_argnums=1)(x)


X = np.linspace(0.1, 1.0, 4, dtype=np.float32)


def anonymous() -> tuple:
    """What only cloudpickle sends, by value, with what it closes over."""
    x = X
    return gradient, pb.bridge(lambda y: x * y**2), x


def jobs() -> list[tuple]:
    x = X
    double = pb.julia_function(
        "double", source="double(x) = 2 .* x; back((x,), ct) = (2 .* ct,)", result=same_shape, vjp="back"
    )
    return [
        (gradient, functools.partial(tower, n=2), x),
        (gradient, Model(np.float32(3)).loss, x),
        (gradient, pb.bridge(cube), x),
        (gradient, double, x),
        (pulled, pb.trace(cube)(x).vjp(), x, x),
    ]


def by_spawning(jobs: Sequence[tuple]) -> list[Any]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            pool.apply(refusal, (1.0,))
        except pb.UnknownOption as error:
            assert "static_argnums" in str(error)
        else:
            raise AssertionError("a worker's error is lost")
        return [pool.apply(f, args) for f, *args in jobs]


def by_joblib(jobs: Sequence[tuple]) -> list[Any]:
    import joblib

    return joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(f)(*args) for f, *args in jobs)


def by_dask(jobs: Sequence[tuple]) -> list[Any]:
    import dask

    delayed = [dask.delayed(f, pure=False)(*args) for f, *args in jobs]
    return list(dask.compute(*delayed, scheduler="processes", num_workers=1))


WAYS = {"spawn": by_spawning, "joblib": by_joblib, "dask": by_dask}


def main(ways: Sequence[str]) -> None:
    work = [*jobs(), anonymous()]
    expected = [f(*args) for f, *args in work]
    for way in ways:
        sent = work[: -1 if way == "spawn" else None]
        try:
            for (_, *args), found, wanted in zip(sent, WAYS[way](sent), expected, strict=False):
                np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=repr(args[0]))
            print(f"{way}: fine")
        except Exception:
            print(traceback.format_exc())


if __name__ == "__main__":
    main(sys.argv[1:])
