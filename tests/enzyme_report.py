"""Runs the tests of Julia functions and of engine `enzyme`, and writes their dated result, docs/enzyme.md.

    python tests/enzyme_report.py [TESTS...]

It takes a Julia that has Enzyme.jl, and PythonCall for the tests of juliacall.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pybridge.runtime import julia

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "enzyme.md"
TESTS = ["tests/functions", "tests/engines"]


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0


def run(results: Path, tests: list[str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--timeout=900", f"--junitxml={results}"]
    subprocess.run([*command, *(tests or TESTS)], cwd=ROOT, check=False)


def counts(results: Path) -> tuple[dict[str, Count], list[str]]:
    """By file, and the reasons of what was skipped or failed."""
    files: dict[str, Count] = defaultdict(Count)
    remarks = []
    for case in ElementTree.parse(results).iter("testcase"):
        count = files[case.get("classname", "").removeprefix("tests.").replace(".", "/")]
        count.seconds += float(case.get("time", 0))
        skipped = case.find("skipped")
        failed = case.find("failure") is not None or case.find("error") is not None
        if skipped is not None:
            count.skipped += 1
            remarks.append(f"skipped: {case.get('name')}: {skipped.get('message', '').split(', which')[0]}")
        elif failed:
            count.failed += 1
            remarks.append(f"failed: {case.get('name')}")
        else:
            count.passed += 1
    return files, remarks


def page(files: dict[str, Count], remarks: list[str]) -> str:
    found = julia.find()
    installed = found.require()
    rows = [
        f"| {name} | {c.passed} | {c.failed} | {c.skipped} | {c.seconds:.0f} |" for name, c in files.items()
    ]
    total = Count(
        *(sum(getattr(c, f) for c in files.values()) for f in ("passed", "failed", "skipped", "seconds"))
    )
    machine = f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores"
    return (
        "\n".join(
            [
                "# Test results with Enzyme.jl",
                "",
                "The tests of Julia functions and of engine `enzyme`. Elsewhere those that need Enzyme.jl "
                "skip with that reason. `python tests/enzyme_report.py` runs them and writes this page.",
                "",
                f"**{datetime.date.today():%d %B %Y}**, {machine}: Julia {installed.version}, "
                f"Enzyme.jl {installed.enzyme}, PythonCall {installed.pythoncall or 'absent'} "
                f"(Julia started {'by juliacall' if found.host == 'juliacall' else 'embedded'}), "
                f"Python {platform.python_version()}, JAX {version('jax')}.",
                "",
                "| tests | passed | failed | skipped | seconds |",
                "|---|---|---|---|---|",
                *rows,
                f"| all | {total.passed} | {total.failed} | {total.skipped} | {total.seconds:.0f} |",
                "",
                "Seconds include Enzyme's compilation.",
                "",
                *(f"- {remark}" for remark in remarks),
            ]
        ).rstrip()
        + "\n"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        run(results, sys.argv[1:])
        PAGE.write_text(page(*counts(results)), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))
