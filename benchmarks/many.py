"""What many functions leave behind in a process: `python -m benchmarks.many [--count 1000]`.

Small functions, each of them different, are bridged, differentiated, jitted, called and dropped, in three
processes: one with an empty cache, whose kernels Julia compiles, one that finds them in files, and one of
plain JAX. JAX's caches are cleared after each fifth of them.
"""

from __future__ import annotations

import gc
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from .processes import ask

_WARM = 10
_BLOCKS = 5
_SIDES = {"compiled": "pybridge, an empty cache", "loaded": "pybridge, kernels in files", "jax": "JAX"}


def measure(count: int, side: str, cache: str) -> float:
    """The megabytes that a function adds to a new process, on average over `count`, a multiple of five.

    They are used in five blocks, of which the one that adds most is left out.
    """
    words = ("-m", "benchmarks.many", "--worker", side, "--count", str(count))
    return ask(*words, variables={"PYBRIDGE_CACHE": cache})


def _worker(side: str, count: int) -> float:
    import jax

    import pybridge as pb

    bridge: Callable[[Callable], Callable] = pb.bridge if side != "jax" else lambda f: f
    for k in range(_WARM):
        _use(jax, bridge, 1000 + k)
    _drop(jax)
    grown = []
    for block in range(_BLOCKS):
        before = _resident()
        for k in range(block, count, _BLOCKS):
            _use(jax, bridge, k)
        _drop(jax)
        grown.append(_resident() - before)
    # A collector makes tables of tens of megabytes once, at a function that chance decides.
    grown.remove(max(grown))
    return sum(grown) / (count * len(grown) / _BLOCKS)


def _use(jax: Any, bridge: Callable[[Callable], Callable], k: int) -> None:
    def f(x):
        return jax.numpy.sum(jax.numpy.sin(x * (1 + k / 7)) + k * x**2)

    jax.block_until_ready(jax.jit(jax.grad(bridge(f)))(jax.numpy.ones(8)))


def _drop(jax: Any) -> None:
    jax.clear_caches()
    gc.collect()


def _resident() -> float:
    """Megabytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main(count: int = 1000, worker: str = typer.Option("", hidden=True)) -> None:
    """Measure what a function leaves in a process."""
    if worker:
        print(json.dumps(_worker(worker, count)))
        return
    with tempfile.TemporaryDirectory(prefix="pybridge-many-") as folder:
        for side, name in _SIDES.items():
            print(f"{name}: {measure(count, side, folder):.3f} MB a function, over {count}", flush=True)


if __name__ == "__main__":
    typer.run(main)
