"""docs/primitives.md is what the tables say, and what is missing is explained."""

from __future__ import annotations

import subprocess
import sys

import jax
import pytest

import conformance
from conformance import notes
from conformance import table as module
from pybridge.frontend.adapter import registry
from pybridge.runtime.rule_table import Rules


def test_the_page_is_up_to_date():
    """In a process of its own: JAX's modules register primitives when they are imported."""
    if f"JAX {jax.__version__}." not in conformance.PAGE.read_text():
        pytest.skip(f"docs/primitives.md is of another JAX than {jax.__version__}")
    words = [sys.executable, "-m", "conformance", "--check"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr


RULES = {
    "sin": Rules(True, False, False, "fused"),
    "floor": Rules(False, False, True, "fused"),
    "neg": Rules(True, True, False, "fused"),
    "schur": Rules(False, False, False, "own"),
    "zeta": Rules(True, False, False, "none", (0,)),
}


def line(name: str, *theirs: bool, exports=None) -> conformance.Line:
    return module._line(name, registry.JaxRules(*theirs), RULES, exports or {})


def test_cells_say_what_the_tables_do():
    assert line("sin", True, False).cells == ("yes", "yes", "·", "fused", "yes")
    assert line("neg", True, True).cells == ("yes", "yes", "yes", "fused", "yes")
    assert line("floor", True, False).cells == ("yes", "zero", "·", "fused", "yes")
    assert line("jit", True, True).cells[1:] == (module.BODY,) * 4
    assert line("tie", True, True).cells == ("rewritten", "yes", "yes", "nothing to do", "yes")
    schur = line("schur", False, False, exports={"schur": {"cpu": "cpu: `lapack`"}})
    assert schur.cells == ("yes", "none in JAX", "·", "own", "not for cpu") and "lapack" in schur.note


def test_what_is_missing_is_explained():
    assert line("schur", True, True, exports={"schur": dict.fromkeys(module.PLATFORMS, "why")}).missing == [
        *("jvp", "transpose", "export"),
    ]
    assert line("rng_uniform", False, False).note == notes.WHY["rng_uniform"]
    zeta = line("zeta", True, False)
    assert zeta.missing == ["native kernel"] and "operand 1" in zeta.note
    for name, theirs in (("never_heard_of", (True, True)), ("sin", (True, True))):
        with pytest.raises(ValueError, match=f"{name} lacks"):
            line(name, *theirs)


def test_a_reason_that_is_no_longer_needed_is_refused(monkeypatch):
    monkeypatch.setattr(registry, "primitives", lambda: {"sin": registry.JaxRules(True, False)})
    monkeypatch.setattr(module, "WHY", {"sin": "too wavy"})
    with pytest.raises(ValueError, match="nothing is missing of sin"):
        conformance.lines(RULES, {})


def test_families_hold_only_what_is_not_traced():
    families = conformance.apart()
    assert set(families) == set(notes.APART)
    assert {"bcoo_todense", "io_callback"} <= {n for names in families.values() for n in names}
    assert not any(module._known(name) for names in families.values() for name in names)
