"""`python -m benchmarks.sweep.worker THREADS`: answers each problem's name with its Measurement, as JSON.

In a process of its own, so that what takes too long to compile can be ended, and because the number of
threads is decided before JAX is imported.
"""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import asdict

from benchmarks.worker import limit_threads


def main() -> None:
    limit_threads(int(sys.argv[1]))
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        from .families import problems
        from .measuring import measure

        known = {problem.name: problem for problem in problems()}
        for line in sys.stdin:
            print(json.dumps(asdict(measure(known[line.strip()]))), file=answers, flush=True)


if __name__ == "__main__":
    main()
