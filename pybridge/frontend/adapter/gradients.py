"""A real number as a function of arrays, with its derivative: what the primitives `gradient_product` and
`scaled_gradient` (runtime/gradient_products.py) do, in operations of JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax


class Differentiated(Protocol):
    """A number as a function of arrays x..., with its derivative by some of them. Compared by content."""

    @property
    def active(self) -> tuple[int, ...]:
        """Which x the derivative is by."""

    @property
    def dtype(self) -> Any:
        """Of the number."""

    def along(self, xs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """The derivative along tangents of the active x."""

    def of_multiple(self, xs: Sequence[Any], c: Any) -> Sequence[Any]:
        """The gradient of c times the number."""


Levels = tuple[tuple[bool, ...], ...]
"""For each batch, the outer ones first, which x have an axis for it in front."""


def parts(number: Differentiated, args: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """Of the operands of `gradient_product`: gradients, x..., tangents."""
    count = len(number.active)
    return args[:count], args[count : len(args) - count], args[len(args) - count :]


def along(*args: Any, number: Differentiated, levels: Levels) -> Any:
    """`gradient_product`, of which nothing has been transposed: gradients are of no use, since what is finite
    along a short tangent may have an infinite gradient."""
    _, xs, tangents = parts(number, args)
    return in_batches(number.along, levels)(list(xs), list(tangents))


def in_batches(f: Callable[[list[Any], Any], Any], levels: Levels) -> Callable[[list[Any], Any], Any]:
    """f(x..., y), of each in the batches; y has their axes in front, if it is a list in each array."""
    for mapped in reversed(levels):
        f = jax.vmap(f, in_axes=([0 if flag else None for flag in mapped], 0))
    return f


def operands(number: Differentiated, args: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Any]:
    """Of the operands of `scaled_gradient`: gradients, x..., the cotangent."""
    count = len(number.active)
    return args[:count], args[count:-1], args[-1]


def anew(number: Differentiated, levels: Levels, xs: Sequence[Any], c: Any) -> list[Any]:
    """The gradient with the cotangent c in its backward pass, of each in the batches."""
    return in_batches(lambda xs, c: list(number.of_multiple(xs, c)), levels)(list(xs), c)


def scaled_anew(*args: Any, number: Differentiated, levels: Levels) -> list[Any]:
    """`scaled_gradient`, without the gradient that it may scale."""
    _, xs, c = operands(number, args)
    return anew(number, levels, xs, c)
