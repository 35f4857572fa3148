"""Long straight-line Programs: the time to a derivative grows with the length, not with its square."""

from __future__ import annotations

import time

import numpy as np
import pytest

from pybridge import transforms
from pybridge.program import Equation, Literal, Program, TensorType, Var

SCALAR = TensorType("f64")


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


def seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def test_a_vjp_takes_time_in_proportion_to_the_length(capsys):
    """The better of two runs each: a collection more or less is a fifth of the time."""

    def run(n):
        p = chain(n)
        transforms._vjp.cache_clear()
        return seconds(lambda: transforms.vjp(p, optimize=True))

    run(200)
    short, long = (min(run(n) for _ in range(2)) for n in (10_000, 20_000))
    with capsys.disabled():
        print(f"\noptimised vjp: {short:.2f} s for 10 000 equations, {long:.2f} s for 20 000")
    assert short < 2
    assert long < 2.5 * short + 0.3


def test_the_derivative_of_a_long_chain_is_right():
    p = chain(2000)
    x, h = np.float64(0.7), 1e-6
    (slope,) = p.vjp().call(x, np.float64(1))
    numeric = (p.call(x + h)[0] - p.call(x - h)[0]) / (2 * h)
    assert slope == pytest.approx(numeric, rel=1e-5)
