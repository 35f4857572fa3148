"""`python -m benchmarks.worker THREADS [ROW] [--quick]` and what is to be measured; prints JSON.

--right FILE writes the result that is right into FILE, and --side SIDE measures a side, whose result is
compared with that FILE, by answers to the lines of standard input. --cold SIDE gives the result of a side of
a row of new processes, --limit the time by hand.

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
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from pybridge.child_process import end_with_parent


def limit_threads(count: int) -> None:
    """To the first `count` of the cores that are allowed: before jax is imported."""
    os.environ["NPROC"] = str(count)  # what XLA reads first, and where a process has no set of cores
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def answer(options: argparse.Namespace) -> dict[str, Any]:
    """What is asked for on the command line."""
    import jax

    from . import limits, measure
    from .suites import named

    if options.row is None:
        return {"julia_start": measure.start_julia(), "machine": measure.machine()}
    case = named(options.row)
    if options.cold:
        result = measure.cold(case, options.cold, options.quick)
        return {"done": time.time(), "result": result}
    if options.limit:
        return asdict(limits.measure(case, options.quick))
    with jax.enable_x64(case.x64):
        measure.right(case, options.quick).save(options.right)
    return {}


def converse(options: argparse.Namespace, answers: TextIO) -> None:
    """Measures a side for who asks for it: `first` result, a `sample`, and the `error` of the result."""
    import jax

    from . import measure
    from .suites import named

    case = named(options.row)
    with jax.enable_x64(case.x64):
        one = measure.prepared(case, options.side, options.quick)
        questions: dict[str, Callable[[], Any]] = {
            "first": lambda: asdict(one.side),
            "sample": one.sample,
            "error": lambda: one.error(measure.load_right(options.right).result),
        }
        for question in sys.stdin:
            print(json.dumps(questions[question.strip()]()), file=answers, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("threads", type=int)
    parser.add_argument("row", nargs="?")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cold", metavar="SIDE")
    parser.add_argument("--limit", action="store_true")
    parser.add_argument("--right", metavar="FILE", type=Path)
    parser.add_argument("--side")
    options = parser.parse_args()
    limit_threads(options.threads)
    end_with_parent()
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        if options.side:
            converse(options, answers)
        else:
            print(json.dumps(answer(options)), file=answers)


if __name__ == "__main__":
    main()
