"""A process that computes without end is gone soon after its parent was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

_CHILD = """
import os
from pybridge.child_process import end_with_parent
end_with_parent()
print(os.getpid(), flush=True)
while True: pass
"""
_PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_CHILD!r}])"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="a process is looked up in /proc")
def test_killed_parent():
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert _runs(child)
        parent.kill()
    deadline = time.monotonic() + 30
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.1)
    ended = not _runs(child)
    if not ended:
        os.kill(child, 9)
    assert ended


def _runs(process: int) -> bool:
    """A zombie, which nobody waits for, runs no more."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
