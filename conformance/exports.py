"""Which operations export, tried: the tests' cases of each, for each platform."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from pybridge.api.export import export
from pybridge.errors import UnsupportedPrimitive
from pybridge.frontend.tracing import trace
from pybridge.ir.program import Program

ROOT = Path(__file__).resolve().parent.parent
PLATFORMS = ("cpu", "cuda", "tpu")


def measured_exports() -> dict[str, dict[str, str]]:
    """For each operation that some platform refuses in every case of it: the platforms, with the reason.

    An operation in a Program that exports does export; in one that does not, the operation that the case is
    about is to blame.
    """
    good: dict[str, set[str]] = {platform: set() for platform in PLATFORMS}
    refused: dict[str, dict[str, str]] = {}
    for case in module_of_tests("cases").CASES:
        wanted = [p for p in PLATFORMS if case.op not in good[p]]
        if not wanted or case.op == "program":
            continue
        with case.context():
            program = trace(case.f)(*case.inputs())
            for platform in wanted:
                problem = _problem(program, platform)
                if problem is None:
                    good[platform] |= _operations(program)
                else:
                    refused.setdefault(case.op, {}).setdefault(platform, problem)
    remaining = {
        op: {p: problem for p, problem in why.items() if op not in good[p]} for op, why in refused.items()
    }
    return {op: why for op, why in remaining.items() if why}


def module_of_tests(name: str, folder: str = "") -> Any:
    """One of tests/, or of a folder there; the tests' modules import each other by name alone."""
    for path in (str(ROOT / "tests"), str(ROOT / "tests" / folder)):
        if path not in sys.path:
            sys.path.append(path)
    return importlib.import_module(name)


def _problem(program: Program, platform: str) -> str | None:
    try:
        export(program, [platform])()
    except UnsupportedPrimitive as e:
        return f"{platform}: {'no lowering' if 'JAX has no' in str(e) else f'`{e.primitive}`'}"
    return None


def _operations(program: Program) -> set[str]:
    nested = (_operations(body) for eq in program.equations for body in eq.bodies)
    return {eq.op for eq in program.equations}.union(*nested)
