"""The command: runs pytest with the plugin, in a process whose environment says what JAX is to be."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALONE = "failures of JAX alone"
"""In the results: of tests that fail with nothing bridged too, as where the module is of another version."""


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
    with tempfile.TemporaryDirectory() as folder:
        bridged, plain = (Path(folder, name) for name in ("bridged.json", "plain.json"))
        code = _run(options, [*more, "--execute", options.execute], bridged)
        if not bridged.exists():
            return code
        record = json.loads(bridged.read_text())
        failures = list(record["failures"])
        if failures:
            _run(options, [*more, "--plain"], plain, failures)
            alone = json.loads(plain.read_text())["failures"]
            record[ALONE] = {name: record["failures"].pop(name) for name in failures if name in alone}
    _show(record)
    if options.results:
        options.results.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if record["failures"] else 0 if failures else code


def _show(record: dict) -> None:
    for name in record.get(ALONE, ()):
        print(f"fails with JAX alone too: {name}")
    for name, why in record["failures"].items():
        print(f"FAILS: {name}: {why.splitlines()[0]}")


def _run(options, more: list[str], results: Path, tests: Sequence[str] = ()) -> int:
    """pytest's exit status; of all tests of the module, or of those named."""
    source = options.source.resolve()
    # A process of its own even for one worker: a crash is then a failure among others.
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-n", str(options.workers)]
    command += ["-p", "tests.jax_suite.plugin", "--timeout=600", "--results", str(results)]
    command += ["-c", os.devnull, "--rootdir", str(source.parent), "-p", "no:cacheprovider"]
    command += ["-k", options.select] if options.select else []
    command += [*more, *([f"{source}::{test}" for test in tests] or [str(source)])]
    return subprocess.run(command, env=_environment(options), check=False).returncode


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
