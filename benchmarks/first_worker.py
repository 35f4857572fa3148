"""One row's gradient in this process, from `import jax` on: `python -m benchmarks.first_worker ROW SIDE`.

Prints JSON: the seconds, and whether libjulia is mapped at the end.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

_BEGIN = time.perf_counter()


def main(row: str, side: str) -> None:
    import jax

    import pybridge as pb

    if side == "jax":
        # What is never called need not be loaded: a user of plain JAX has no pybridge.
        pb.bridge = lambda f, **_: f
    from .rows import named

    case = named(row)
    assert case.make is not None
    with jax.enable_x64(case.x64):
        problem = case.make(False)
        f = problem.ours if side == "pybridge" else problem.reference
        jax.block_until_ready(jax.jit(f)(*problem.args))
    maps = Path("/proc/self/maps")
    mapped = maps.is_file() and "libjulia" in maps.read_text(encoding="utf-8", errors="replace")
    print(json.dumps({"seconds": time.perf_counter() - _BEGIN, "libjulia": mapped}))


if __name__ == "__main__":
    main(*sys.argv[1:])
