"""The Hessian's products with vectors, by the nestings of forward and reverse mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax

Nesting = Literal["forward over reverse", "reverse over forward", "reverse over reverse"]
NESTINGS: tuple[Nesting, ...] = ("forward over reverse", "reverse over forward", "reverse over reverse")


def hessian_product(nesting: Nesting, flat: Callable[..., tuple]) -> Callable[..., tuple]:
    """Hv, with H the Hessian of <u, f>, as a function of (point, others, cotangents u, tangents v).

    flat: f, as a function of the active leaves and the others.
    """

    def gradient(xs: tuple, rest: Any, us: tuple) -> tuple:
        return jax.vjp(lambda *active: flat(active, rest), *xs)[1](us)

    def forward_over_reverse(xs: tuple, rest: Any, us: tuple, vs: tuple) -> tuple:
        return jax.jvp(lambda *active: gradient(active, rest, us), xs, vs)[1]

    def reverse_over_forward(xs: tuple, rest: Any, us: tuple, vs: tuple) -> tuple:
        def pushed(*active: Any) -> tuple:
            return jax.jvp(lambda *given: flat(given, rest), active, vs)[1]

        return jax.vjp(pushed, *xs)[1](us)

    def reverse_over_reverse(xs: tuple, rest: Any, us: tuple, vs: tuple) -> tuple:
        return jax.vjp(lambda *active: gradient(active, rest, us), *xs)[1](vs)

    made: dict[Nesting, Callable[..., tuple]] = {
        "forward over reverse": forward_over_reverse,
        "reverse over forward": reverse_over_forward,
        "reverse over reverse": reverse_over_reverse,
    }
    return made[nesting]
