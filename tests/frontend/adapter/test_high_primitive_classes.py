"""Every primitive of JAX's that is an object is one that somebody has looked at."""

from __future__ import annotations

import re
from pathlib import Path

import jax

LOOKED_AT = {
    **dict.fromkeys(("RematTraced", "CheckpointName", "CheckpointNameFwd", "Scan3"), "has a counterpart"),
    **dict.fromkeys(("Einsum", "OptRemat", "_RootLinearMap"), "is what it expands to"),
    **dict.fromkeys(("Ldexp", "Frexp"), "has a rule for forward mode, and Ldexp a transpose"),
    **dict.fromkeys(("SearchSorted", "Nonzero"), "has integers for results"),
    **dict.fromkeys(("CustomJVPTraced", "CustomVJPTraced", "VmapOf", "CustomRoot"), "has rules"),
    **dict.fromkeys(("PrimalLeftTangentRight", "CustomRemat"), "has rules, used by checkpoints"),
    **dict.fromkeys(("Einshape", "Fusible"), "has rules, used by Pallas"),
}


def test_every_class_is_known():
    """By JAX's sources: to import all of them would register primitives that other tests do not expect."""
    defined = re.compile(r"^class (\w+)\((?:hijax\.)?(?:HiPrim|VJPHiPrimitive)\):", re.MULTILINE)
    sources = Path(jax.__file__).parent.joinpath("_src").rglob("*.py")
    found = {name for path in sources for name in defined.findall(path.read_text())}
    assert found and not found - set(LOOKED_AT), f"new in JAX {jax.__version__}: {found - set(LOOKED_AT)}"
