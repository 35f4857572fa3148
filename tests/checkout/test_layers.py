"""The layers of docs/architecture.md hold, and the check of them sees what breaks them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint(folder: Path) -> subprocess.CompletedProcess:
    """import-linter on the package in that folder, by the contracts of pyproject.toml."""
    code = "import sys; from importlinter.cli import lint_imports_command; lint_imports_command(sys.argv[1:])"
    words = [sys.executable, "-c", code, "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=200, check=False)


def test_no_layer_imports_what_it_must_not():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("ir/printer.py", "import jax", "Programs know no JAX"),
        ("frontend/lowering.py", "from ..runtime import julia", "a layer imports those below it alone"),
        ("frontend/adapter/jaxprs.py", "from ...ir.program import Program", "the adapter of JAX knows no"),
        ("runtime/julia/probe.py", "from ...ir import types", "Julia's runtime knows neither"),
        ("runtime/dump.py", "from . import transforms", "import each other in a circle"),
        ("frontend/keys.py", "from . import lowering", "the frontend, from tracing down"),
    ],
)
def test_an_import_that_breaks_a_layer_is_found(tmp_path, module, line, contract):
    package = tmp_path / "pybridge"
    shutil.copytree(ROOT / "pybridge", package, ignore=shutil.ignore_patterns("__pycache__", "_jaxprad"))
    with (package / module).open("a") as file:
        file.write(f"\n\ndef _planted():\n    {line}\n")
    done = lint(tmp_path)
    broken = [text for text in done.stdout.splitlines() if text.endswith("BROKEN")]
    assert done.returncode == 1 and any(contract in text for text in broken), done.stdout + done.stderr


def test_a_program_is_read_printed_and_pickled_without_jax():
    code = """
import pickle, sys
import pybridge as pb

program = pb.parse(sys.stdin.read())
assert pickle.loads(pickle.dumps(program)) == program
print(program, end="")
loaded = {"jax", "jaxlib", "juliacall"} & set(sys.modules)
assert not loaded, loaded
"""
    text = (
        "pybridge 1\nprogram f(%0: f64[3]) {\n  %1: f64[3] = sin %0\n"
        "  %2: f64[] = reduce_sum %1 {axes=[0]}\n  return %2\n}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0 and done.stdout == text, done.stdout + done.stderr


def test_each_module_can_be_the_first_to_be_imported():
    """None uses a part of JAX, or of pybridge, that another one happens to have imported.

    Importing a module imports its package first: one that its package has imported by then was tried with it.
    """
    code = """
import importlib, os, pathlib, sys
import jax

failed, imported = [], {}
for file in sorted(pathlib.Path(sys.argv[1], "pybridge").rglob("*.py")):
    name = ".".join(file.relative_to(sys.argv[1]).with_suffix("").parts).removesuffix(".__init__")
    if "_jaxprad" in name or file.name == "__main__.py":
        continue
    if name in imported.get(name.rpartition(".")[0], ()):
        continue
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except Exception as e:
            print(f"{name}: {e!r}", flush=True)
            os._exit(1)
        with open(theirs, "w") as loaded:
            print(*(each for each in sys.modules if each.startswith("pybridge")), file=loaded)
        os._exit(0)
    os.close(theirs)
    with open(ours) as loaded:
        imported[name] = loaded.read().split()
    failed += [name] if os.waitpid(child, 0)[1] else []
sys.exit(bool(failed))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(ROOT)], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
