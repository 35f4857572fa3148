"""What this JAX has that pybridge depends on is what it was when pybridge was tried on it."""

from __future__ import annotations

import warnings

import jax
import pytest
import snapshot

from pybridge.frontend.primitives import DECOMPOSITIONS, LOWERINGS

KNOWN = LOWERINGS.keys() | DECOMPOSITIONS.keys()


@pytest.fixture(scope="module")
def changes() -> list[str]:
    """Since the snapshot of this minor release, or the newest there is."""
    file = snapshot.path()
    before = snapshot.read(file if file.exists() else snapshot.newest())
    return snapshot.differences(before, snapshot.take_elsewhere())


def test_no_primitive_that_is_read_is_gone_or_has_other_parameters(changes):
    """A JAX that was not tried may have more; what pybridge reads must be as it was."""
    breaking = [
        line
        for line in changes
        if line.partition(":")[0] in KNOWN and ("parameters" in line or line.endswith("gone"))
    ]
    assert breaking == []


def test_what_else_has_changed_is_told(changes):
    if not snapshot.path().exists():
        told = "\n".join([f"JAX {jax.__version__} is newer than all snapshots:", *changes])
        warnings.warn(told, stacklevel=1)
    else:
        unexpected = [line for line in changes if line.endswith((": new", ": gone"))]
        assert unexpected == [], "run tests/frontend/adapter/snapshot.py, and see what the change asks for"


def test_differences_are_found():
    old = {
        "scan": {"params": ["jaxpr", "num_carry"], "jvp": "1", "transpose": "2"},
        "sin": {"params": [], "jvp": "3", "transpose": None},
        "tie": {"params": None, "jvp": None, "transpose": None},
    }
    new = {
        "scan": {"params": ["ft_in", "jaxpr"], "jvp": "1", "transpose": "4"},
        "sin": {"params": None, "jvp": "5", "transpose": None},
        "log2": {"params": [], "jvp": "6", "transpose": None},
    }
    assert snapshot.differences(old, old) == []
    assert snapshot.differences(old, new) == [
        "tie: gone",
        "log2: new",
        "scan: parameters jaxpr, num_carry -> ft_in, jaxpr",
        "scan: another transpose rule",
        "sin: another jvp rule",
    ]
