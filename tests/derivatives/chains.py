"""Long straight-line Programs, and the time that their VJPs take."""

from __future__ import annotations

import json
import time

from pybridge.ir.program import Equation, Program
from pybridge.ir.types import Literal, TensorType, Var
from pybridge.runtime import transforms

SCALAR = TensorType("f64")
LENGTHS = 10_000, 20_000


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
