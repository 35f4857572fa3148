"""How many primitives have a transpose rule beside their JVP rule, here and in JAX."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from . import compat, julia

PAPER = 0.40  # "about 40 %", says the paper on JAX's decomposition of reverse mode


@dataclass(frozen=True)
class Count:
    """Of one table of rules. `both` counts the primitives that have a JVP rule and a transpose rule."""

    name: str
    jvp: int
    transpose: int
    both: int

    @property
    def share(self) -> float:
        """Transpose rules over JVP rules."""
        return self.transpose / self.jvp if self.jvp else 0.0


def count_rules() -> tuple[Count, Count]:
    """Those of JaxprAD, as Julia tells them, and of the JAX that is installed. Starts Julia."""
    rules = [line.split() for line in julia.request("rules").splitlines() if line.strip()]
    jvp = {name for name, has_jvp, _ in rules if has_jvp == "1"}
    transpose = {name for name, _, has_transpose in rules if has_transpose == "1"}
    ours = _count("JaxprAD", jvp, transpose)
    return ours, _count(f"JAX {jax.__version__}", *compat.rules())


def _count(name: str, jvp: set, transpose: set) -> Count:
    return Count(name, len(jvp), len(transpose), len(jvp & transpose))
