"""How a sparse derivative is computed: made once for a function and the shapes of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import DensePattern
from ._colouring import Colouring, coloured_columns, coloured_symmetric, fewest_colours
from ._pattern import SparsityPattern

Flat = Callable[[Any], Any]
"""From the elements of the argument, (n,), to those of the result, (m,)."""

BATCH_BYTES = 1 << 28
"""Of compressed products that are computed together; more are computed in turn."""


@dataclass(frozen=True, eq=False, repr=False)
class SparsePlan:
    """pattern: of the derivative. mode: "jvp" (columns are compressed) or "vjp" (rows).

    colours: how many products with the derivative one evaluation takes.
    constant_entries: how many entries of the pattern do not depend on the argument, and were computed once.
    seconds: what detection and colouring took.
    """

    pattern: SparsityPattern
    mode: str
    seconds: float
    _colouring: Colouring
    _varying: SparsityPattern
    _constant: np.ndarray | None

    def __repr__(self) -> str:
        m, n = self.pattern.shape
        constant = f", {self.constant_entries} of them constant" if self.constant_entries else ""
        return (
            f"<SparsePlan {m} x {n}, {self.pattern.entries} entries{constant}, {self.colours} "
            f"{self.mode.upper()}{'s' * (self.colours != 1)}, made in {self.seconds:.2f} s>"
        )

    @property
    def colours(self) -> int:
        return self._colouring.count

    @property
    def constant_entries(self) -> int:
        return 0 if self._constant is None else self.pattern.entries - self._varying.entries

    def data(self, f: Flat, x: Any) -> Any:
        """The values of the entries of the pattern. `f`: the function, or its part that is not constant."""
        if not self._varying.entries:
            constant = np.zeros(self.pattern.entries) if self._constant is None else self._constant
            return jnp.asarray(constant, x.dtype)
        compressed = products(f, x, self._colouring.colours, self.colours, self.mode).reshape(-1)
        source = self._colouring.source
        if self._constant is None:
            return compressed.at[_index(source, compressed.size)].get(mode="promise_in_bounds")
        places = np.full(self.pattern.entries, compressed.size, np.int64)
        places[self.pattern.places_of(self._varying)] = source
        padded = jnp.concatenate([compressed, jnp.zeros(1, compressed.dtype)])
        varying = padded.at[_index(places, padded.size)].get(mode="promise_in_bounds")
        return jnp.asarray(self._constant, varying.dtype) + varying


def _index(places: np.ndarray, size: int) -> Any:
    return jnp.asarray(places.astype(np.int32 if size < 2**31 else np.int64))


def products(f: Flat, x: Any, colours: np.ndarray, count: int, mode: str) -> Any:
    """The derivative times the sum of the unit vectors of each colour: (count, m), by VJPs (count, n)."""
    if mode == "jvp":
        seed_type, size = x.dtype, jax.eval_shape(f, x).size

        def product(seed: Any) -> Any:
            return jax.jvp(f, (x,), (seed,))[1]
    else:
        y, pullback = jax.vjp(f, x)
        seed_type, size = y.dtype, x.size

        def product(seed: Any) -> Any:
            return pullback(seed)[0]

    together = max(1, BATCH_BYTES // ((size + len(colours)) * np.dtype(seed_type).itemsize + 1))
    if count <= together:
        seeds = colours[None, :] == np.arange(count)[:, None]
        return jax.vmap(product)(jnp.asarray(seeds, seed_type))

    def of_colour(colour: Any) -> Any:
        return product((jnp.asarray(colours) == colour).astype(seed_type))

    return jax.lax.map(of_colour, jnp.arange(count, dtype=np.int32), batch_size=together)


_VJP_COST = 1.5
"""Of a VJP, in JVPs."""


def chosen(pattern: SparsityPattern, mode: str, symmetric: bool, reverse_only: bool) -> tuple[str, Colouring]:
    """The mode, and the colouring of the pattern's columns or, for "vjp", of its rows.

    "auto" takes the mode with fewer colours, of which those of VJPs cost more. Raises DensePattern.
    """
    if symmetric:
        return "jvp", coloured_symmetric(pattern)
    if reverse_only or mode == "vjp":
        return "vjp", _coloured_rows(pattern)
    if mode == "jvp":
        return "jvp", coloured_columns(pattern)
    fewest = {"jvp": fewest_colours(pattern), "vjp": _VJP_COST * fewest_colours(pattern.transposed)}
    first, second = sorted(fewest, key=lambda mode: fewest[mode])
    try:
        found = chosen(pattern, first, False, False)
    except DensePattern:
        return chosen(pattern, second, False, False)
    if _cost(*found) <= fewest[second]:
        return found
    try:
        return min(found, chosen(pattern, second, False, False), key=lambda each: _cost(*each))
    except DensePattern:
        return found


def _cost(mode: str, colouring: Colouring) -> float:
    return colouring.count * (_VJP_COST if mode == "vjp" else 1.0)


def _coloured_rows(pattern: SparsityPattern) -> Colouring:
    """That of the columns of the transpose, with the sources of the pattern's own entries."""
    transposed = pattern.transposed
    found = coloured_columns(transposed)
    order = np.argsort(transposed.columns, kind="stable")  # by the rows of the pattern, then by its columns
    return Colouring(found.colours, found.count, found.source[order])
