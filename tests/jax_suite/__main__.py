"""The command: runs pytest with the plugin, in a process whose environment says what JAX is to be."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.jax_suite", description=sys.modules["tests.jax_suite"].__doc__
    )
    parser.add_argument("source", type=Path, help="a test module of JAX's repository")
    parser.add_argument("--execute", choices=["xla", "julia"], required=True)
    parser.add_argument("-k", dest="select", default="", help="as for pytest")
    parser.add_argument("--cases", type=int, default=10, help="generated cases of each test; JAX's CI has 1")
    parser.add_argument("--x64", action="store_true", help="with 64-bit types, as in half of JAX's CI")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--results", type=Path, help="a JSON file for the counts")
    options, more = parser.parse_known_args()
    return subprocess.run(_command(options, more), env=_environment(options), check=False).returncode


def _command(options, more: list[str]) -> list[str]:
    source = options.source.resolve()
    # A process of its own even for one worker: a crash is then a failure among others.
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-n", str(options.workers)]
    command += ["-p", "tests.jax_suite.plugin", "--execute", options.execute, "--timeout=600"]
    command += ["-c", os.devnull, "--rootdir", str(source.parent), "-p", "no:cacheprovider"]
    command += ["-k", options.select] if options.select else []
    command += ["--results", str(options.results.resolve())] if options.results else []
    return [*command, *more, str(source)]


def _environment(options) -> dict[str, str]:
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH", "")) if p)
    return os.environ | {
        "JAX_ENABLE_COMPILATION_CACHE": "false",  # JAX's tests fail where one comes to be in use
        "PYTHONPATH": path,
        "JAX_NUM_GENERATED_CASES": str(options.cases),
        "JAX_ENABLE_X64": str(int(options.x64)),
        "JAX_ENABLE_CHECKS": "1",
    }


if __name__ == "__main__":
    sys.exit(main())
