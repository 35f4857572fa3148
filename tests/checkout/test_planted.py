"""Planted faults fit the sources, and are found or not as the command says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.planted import fault, run
from tests.planted.__main__ import updated

FAULTS = fault.faults()


def test_there_are_forty_over_all_layers():
    assert len(FAULTS) >= 40 and len({f.name for f in FAULTS}) == len(FAULTS)
    changed = [Path(path) for f in FAULTS for path in f.changed]
    julia = {path.parts[2] for path in changed if path.parts[:2] == ("julia", "src")}
    python = {path.parts[1] for path in changed if path.parts[0] == "pybridge"}
    assert julia >= {"ad", "archive", "codegen", "ffi", "ir", "math", "passes", "rules", "serve", "tracing"}
    assert python >= {
        "api",
        "cache",
        "cli",
        "comparison",
        "engines",
        "frontend",
        "functions",
        "ir",
        "runtime",
    }


@pytest.mark.parametrize("planted", FAULTS, ids=lambda f: f.name)
def test_a_fault_fits_and_names_what_finds_it(planted):
    assert planted.apply(fault.ROOT, check=True) == ""
    assert planted.missing == []
    assert planted.changed and all((fault.ROOT / path).exists() for path in planted.changed)


@pytest.mark.parametrize(
    ("language", "output", "failed"),
    [
        ("python", "..F\nFAILED tests/a.py::test_b[x] - assert 1 == 2\n", "tests/a.py::test_b[x]"),
        ("python", "ERROR tests/a.py - ImportError\n", None),
        (
            "julia",
            "rows: Test Failed at /somewhere/julia/test/rules/dot.jl:12\n  Expression: x == y\n",
            "rows (rules/dot.jl:12)",
        ),
        ("julia", "ERROR: LoadError: UndefVarError: x not defined\n", None),
    ],
)
def test_a_test_that_fails_is_named(language, output, failed):
    planted = fault.Fault(Path("x.patch"), "a title", language, (), ())
    assert run.failures(planted, output) == ((failed,) if failed else ())


def test_the_page_keeps_the_rows_of_faults_that_did_not_run():
    ran, other = FAULTS[:2]
    row = f"| {other.name} | a title | `a/file` | `a test` |\n"
    text = (
        f"Before.\n<!-- planted -->\n{row}| gone | a title | `a/file` | `a test` |\n<!-- end of planted -->\n"
    )
    found = updated(text, [run.Outcome(ran, ("tests/a.py::test_b",), 1.0, "")])
    assert f"| {ran.name} | {ran.title} |" in found and "| `tests/a.py::test_b` |" in found
    assert row in found and "gone" not in found and found.startswith("Before.\n")


def test_a_patch_without_a_part_is_refused(tmp_path):
    file = tmp_path / "x.patch"
    file.write_text("A title.\n\ndiff --git a/x b/x\n")
    with pytest.raises(ValueError, match="no title, or has no line"):
        fault.read(file)


def test_a_fault_that_tests_find_and_one_that_they_do_not(tmp_path, monkeypatch):
    """In a checkout of two files, of which one is a test."""
    root = tmp_path / "root"
    (root / "tests").mkdir(parents=True)
    (root / "value.py").write_text("VALUE = 1\nOTHER = 1\n")
    (root / "tests/test_value.py").write_text(
        "import value\n\n\ndef test_value():\n    assert value.VALUE == 1\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    monkeypatch.setattr(run, "ROOT", root)
    for name, found in (("VALUE", ("tests/test_value.py::test_value",)), ("OTHER", ())):
        file = tmp_path / f"{name}.patch"
        lines = [f"{'-' if n == name else ' '}{n} = 1\n" for n in ("VALUE", "OTHER")]
        lines.insert(lines.index(f"-{name} = 1\n") + 1, f"+{name} = 2\n")
        head = "A wrong value.\n\nrun: python tests/test_value.py\n\ndiff --git a/value.py b/value.py\n"
        file.write_text(f"{head}--- a/value.py\n+++ b/value.py\n@@ -1,2 +1,2 @@\n{''.join(lines)}")
        assert run.outcome(fault.read(file)).found == found
