"""The process that runs the families which it reads from its input, a line each; a crash ends it alone."""

from __future__ import annotations

import dataclasses
import gc
import json
import sys
import warnings
from collections.abc import Iterable
from typing import Any

import jax

from .outcomes import EXECUTES, findings
from .variants import FOREIGN, basic, extended, families, variant

_EVERY = 10  # families between two times that JAX forgets what it has compiled


def swept(name: str, dtypes: Iterable[str], executes: Iterable[str]) -> list[Any]:
    """The findings of a family at these dtypes, and "ok" for each comparison without one."""
    members = families()[name]
    chosen = []
    for dtype in dtypes:
        case = variant(name, members, dtype)
        if case is not None:
            chosen += [case] if dtype in FOREIGN else extended(case)
    with jax.enable_x64(True):
        return list(findings(chosen, executes))


def main() -> None:
    """Answers each request with a line of JSON."""
    warnings.simplefilter("ignore")
    for n, line in enumerate(sys.stdin):
        request = json.loads(line)
        if "pattern" in request:
            names = basic(request["pattern"]) if request["basic"] else list(families(request["pattern"]))
            answer: Any = names
        else:
            executes = request.get("executes") or EXECUTES
            found = swept(request["family"], request["dtypes"], executes)
            texts = [dataclasses.asdict(f) for f in found if not isinstance(f, str)]
            answer = {"ok": sum(isinstance(f, str) for f in found), "findings": texts}
        print(json.dumps(answer), flush=True)
        if n % _EVERY == _EVERY - 1:
            jax.clear_caches()
            gc.collect()


if __name__ == "__main__":
    main()
