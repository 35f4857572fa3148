"""What functions leave in a process when they are dropped: the bounds that docs/cache.md states."""

from __future__ import annotations

import sys

import pytest
from covering import FULL

from benchmarks.many import measure
from pybridge.runtime import linker

pytestmark = [
    pytest.mark.skipif(linker.linker() is None, reason="there is no linker, so no kernels in files"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc"),
]


def test_functions_that_are_dropped_leave_a_bounded_part_of_memory(tmp_path) -> None:
    count = 100 if FULL else 25
    assert measure(count, "compiled", str(tmp_path)) < 1.5
    assert measure(count, "loaded", str(tmp_path)) < 0.25
