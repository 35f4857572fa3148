"""One row's gradient in this process, from `import jax` on: `python -m benchmarks.first_worker ROW SIDE`.

Prints JSON: the seconds, those of them in which Julia started, and whether libjulia is mapped at the end.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

_BEGIN = time.perf_counter()


def main(row: str, side: str, *options: str) -> None:
    import jax

    import pybridge as pb

    start = _started() if "started" in options else 0.0

    if side == "jax":
        # What is never called need not be loaded: a user of plain JAX has no pybridge.
        pb.bridge = lambda f, **_: f
    from .suites import named

    case = named(row)
    assert case.make is not None
    with jax.enable_x64(case.x64):
        problem = case.make(False)
        f = problem.ours if side == "pybridge" else problem.reference
        jax.block_until_ready(jax.jit(f)(*problem.args))
    maps = Path("/proc/self/maps")
    mapped = maps.is_file() and "libjulia" in maps.read_text(encoding="utf-8", errors="replace")
    print(json.dumps({"seconds": time.perf_counter() - _BEGIN, "start": start, "libjulia": mapped}))


def _started() -> float:
    """The seconds that the start of Julia takes."""
    from pybridge.runtime import julia

    begun = time.perf_counter()
    julia.start()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main(*sys.argv[1:])
