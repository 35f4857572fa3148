"""One run, twice, in this process: `python -m zoo.runs.worker NAME ours|jax`. Says a line of JSON.

The seconds are wall-clock and processor's, the first from before `import jax`.
"""

from __future__ import annotations

import json
import sys
import time


def main(name: str, side: str) -> None:
    start, processor = time.perf_counter(), time.process_time()
    import jax
    import numpy as np

    from .table import RUNS, Wrap

    jax.config.update("jax_enable_x64", True)
    wrap: Wrap = lambda f: f  # noqa: E731 - of either side
    if side == "ours":
        import pybridge as pb

        wrap = pb.bridge
    run = next(r for r in RUNS if r.name == name)
    times = []
    for _ in range(2):
        numbers = np.asarray(jax.block_until_ready(run.function(wrap)))
        times.append((time.perf_counter() - start, time.process_time() - processor))
        start, processor = time.perf_counter(), time.process_time()
    print(json.dumps({"numbers": numbers.ravel().tolist(), "first": times[0], "again": times[1]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
