"""Long straight-line Programs: the time to a derivative grows with the length, not with its square."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import processes
import pytest
from chains import chain


def test_a_vjp_takes_time_in_proportion_to_the_length(capsys):
    """In a process of its own: Julia's collector would look through what all other tests have left."""
    code = "import sys; sys.path.append(sys.argv[1]); import chains; chains.measure()"
    short, long = json.loads(processes.run(code, str(Path(__file__).parent)))
    with capsys.disabled():
        print(f"\noptimised vjp: {short:.2f} s for 10 000 equations, {long:.2f} s for 20 000")
    assert short < 2
    assert long < min(4, 2.5 * short + 0.3)


def test_the_derivative_of_a_long_chain_is_right():
    p = chain(2000)
    x, h = np.float64(0.7), 1e-6
    (slope,) = p.vjp().call(x, np.float64(1))
    numeric = (p.call(x + h)[0] - p.call(x - h)[0]) / (2 * h)
    assert slope == pytest.approx(numeric, rel=1e-5)
