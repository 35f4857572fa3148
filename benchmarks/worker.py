"""A row, measured: `python -m benchmarks.worker THREADS [ROW] [--quick] [--cold SIDE | --limit]` prints JSON.

In a process of its own, because the number of threads is decided before XLA's first use, and because a
process that dies takes nothing else along. XLA makes as many threads as there are cores that the process
may run on; Julia's kernels and its BLAS run on those, and so do the processes that measure limits. Without a
ROW, Julia is started and no more.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from dataclasses import asdict
from typing import Any


def limit_threads(count: int) -> None:
    """To the first `count` of the cores that are allowed: before jax is imported."""
    os.environ["NPROC"] = str(count)  # what XLA reads first, and where a process has no set of cores
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def answer(row: str | None, threads: int, quick: bool, cold: str | None, limit: bool) -> dict[str, Any]:
    from . import limits, measure
    from .suites import named

    if row is None:
        return {"julia_start": measure.start_julia(), "machine": measure.machine()}
    if cold:
        result = measure.cold(named(row), cold, quick)
        return {"done": time.time(), "result": result}
    if limit:
        return asdict(limits.measure(named(row), quick))
    return asdict(measure.measure(named(row), threads, quick))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("threads", type=int)
    parser.add_argument("row", nargs="?")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cold", metavar="SIDE")
    parser.add_argument("--limit", action="store_true")
    options = parser.parse_args()
    limit_threads(options.threads)
    with contextlib.redirect_stdout(sys.stderr):
        told = answer(options.row, options.threads, options.quick, options.cold, options.limit)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
