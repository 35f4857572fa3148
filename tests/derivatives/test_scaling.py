"""Long straight-line Programs: the time to a derivative grows with the length, not with its square."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pybridge import transforms
from pybridge.program import Equation, Literal, Program, TensorType, Var

SCALAR = TensorType("f64")
LENGTHS = 10_000, 20_000
CHECKOUT = str(Path(__file__).parents[2])


def chain(n: int) -> Program:
    """n equations in which every value is used again a few steps later: sines, products and sums."""
    x = Var(0, SCALAR)
    values = [x]
    equations = []
    for k in range(n):
        out = Var(k + 1, SCALAR)
        a, b = values[-1], values[max(0, len(values) - 4)]
        op, operands = [("sin", (a,)), ("mul", (a, b)), ("add", (b, a)), ("mul", (a, Literal(0.9, "f64")))][
            k % 4
        ]
        equations.append(Equation(op, operands, (out,), {}, f"loop.py:{k} (f)"))
        values.append(out)
    return Program("chain", (x,), tuple(equations), (values[-1],))


def seconds(n: int) -> float:
    """Processor time of the optimised VJP of n equations, by a Julia that is warm."""
    p = chain(n)
    transforms._vjp.cache_clear()
    start = time.process_time()
    transforms.vjp(p, optimize=True)
    return time.process_time() - start


def measure() -> None:
    """Prints the times as JSON; the best of three runs each: a collection more is a fifth of the time."""
    seconds(200)
    print(json.dumps([min(seconds(n) for _ in range(3)) for n in LENGTHS]))


def test_a_vjp_takes_time_in_proportion_to_the_length(capsys):
    """In a process of its own: Julia's collector would look through what all other tests have left."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [CHECKOUT, os.environ.get("PYTHONPATH")])),
    }
    done = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    short, long = json.loads(done.stdout)
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


if __name__ == "__main__":
    measure()
