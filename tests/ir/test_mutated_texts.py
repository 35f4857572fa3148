"""Texts of Programs with random mistakes: errors that have a name, from both languages, or right answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from covering import FULL

SCRIPT = Path(__file__).parents[1] / "mutated_texts.py"
COUNT = int(os.environ.get("PYBRIDGE_MUTATED_TEXTS", "500" if FULL else "200"))


@pytest.mark.parametrize("seed", [0])
def test_mutated_texts_are_refused_by_name_or_answered(seed, tmp_path):
    file = tmp_path / "text.txt"
    done = subprocess.run(
        [sys.executable, SCRIPT, str(seed), str(COUNT), file],
        capture_output=True,
        text=True,
        timeout=300 + COUNT / 5,
        check=False,
    )
    last = file.read_text(encoding="utf-8", errors="surrogatepass") if done.returncode < 0 else ""
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}\n{last}"
