"""The two scripts of docs/export.md, each in a process of its own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import processes

PAGE = (Path(__file__).parents[2] / "docs" / "export.md").read_text()


def test_what_one_script_exports_the_other_reads(tmp_path):
    first, second = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    head = f"import os; os.chdir({str(tmp_path)!r})\n"
    processes.run(head + first)
    found = float(processes.run(head + second))
    x = np.linspace(0, 1, 5)
    step = 1e-5
    expected = (evidence(0.5 + step, x, np.sin(4 * x)) - evidence(0.5 - step, x, np.sin(4 * x))) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def evidence(scale, x, y):
    k = np.exp(-0.5 * (x[:, None] - x) ** 2 / scale**2) + 0.1 * np.eye(len(x))
    return 0.5 * y @ np.linalg.solve(k, y) + 0.5 * np.linalg.slogdet(k)[1]
