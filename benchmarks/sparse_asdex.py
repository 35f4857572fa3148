"""What asdex takes for `sparse_problems`, a line of JSON a problem. An interpreter that has asdex runs it."""

from __future__ import annotations

import json
import time
from importlib.metadata import version

import asdex
import jax
from sparse_problems import PROBLEMS, measured


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    for problem in PROBLEMS:
        x, kind = problem.x, "hessian" if problem.hessian else "jacobian"
        start = time.perf_counter()
        coloring = getattr(asdex, f"{kind}_coloring")(problem.f, x)
        plan = time.perf_counter() - start
        derivative = jax.jit(getattr(asdex, f"{kind}_from_coloring")(problem.f, coloring))
        row = measured(lambda x, derivative=derivative: derivative(x).data, x)
        data = derivative(x).data
        versions = {"jax": jax.__version__, "asdex": version("asdex")}
        row |= {"plan": plan, "colours": coloring.num_colors, "sum": float(abs(data).sum()), **versions}
        print(json.dumps({"problem": problem.name, **row}), flush=True)


if __name__ == "__main__":
    main()
