"""Programs of Polybench 4.2 and NPBench that have a gradient, in JAX as their users write it.

Written from their published descriptions. Measured is the gradient of the sum of a program's results by its
main input, at Polybench's (or NPBench's) small and medium sizes.
"""

from __future__ import annotations

from ..case import Case, Problem, against_grad, gradient
from . import learning, loops, products, stencils, weather
from .kernel import Kernel, sum_of_results

KERNELS: tuple[Kernel, ...] = (
    *loops.KERNELS,
    *stencils.KERNELS,
    *weather.KERNELS,
    *products.KERNELS,
    *learning.KERNELS,
)
_RATIO = 1.0  # none slower than JAX


def _problem(kernel: Kernel, sizes: tuple[int, ...]) -> Problem:
    program, args = kernel.make(*sizes)
    return gradient(sum_of_results(program), args)


def _case(kernel: Kernel, size: str, sizes: tuple[int, ...]) -> Case:
    def make(quick: bool) -> Problem:
        return _problem(kernel, kernel.quick if quick else sizes)

    title = f"{kernel.name}, {'×'.join(map(str, sizes))}"
    tolerance = 1e-9 if kernel.x64 else 1e-3
    return Case(f"{kernel.name}-{size}", title, against_grad(_RATIO), make, None, tolerance, kernel.x64)


MEASURED: tuple[tuple[Kernel, Case], ...] = tuple(
    (kernel, _case(kernel, name, sizes))
    for kernel in KERNELS
    for name, sizes in (("small", kernel.small), ("medium", kernel.medium))
    if sizes is not None
)
CASES = tuple(case for _, case in MEASURED)
