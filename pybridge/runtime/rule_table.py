"""JaxprAD's rules, as Julia reports them, and how many are transposes and how many JVPs, here and in JAX."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from ..frontend.adapter import registry
from . import julia

PAPER = 0.40  # "about 40 %", says the paper on JAX's decomposition of reverse mode


@dataclass(frozen=True)
class Rules:
    """What JaxprAD has for one of its primitives.

    zero: its tangent is zero whatever the operands' are.
    native: what its native code is: `own`, `fused` into the loops around it, `inlined`, or `none`.
    lacking: the operands by which it has no derivative though it has by others.
    """

    jvp: bool
    transpose: bool
    zero: bool
    native: str
    lacking: tuple[int, ...] = ()


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


def jaxprad_rules() -> dict[str, Rules]:
    """The rules of each primitive of Programs. Starts Julia."""
    lines = [line.split() for line in julia.request("rules").splitlines() if line.strip()]
    return {name: _rules(*fields) for name, *fields in lines}


def _rules(jvp: str, transpose: str, zero: str, native: str, lacking: str) -> Rules:
    operands = () if lacking == "-" else tuple(map(int, lacking.split(",")))
    return Rules(jvp == "1", transpose == "1", zero == "1", native, operands)


def count_rules() -> tuple[Count, Count]:
    """Those of JaxprAD, and of the JAX that is installed. Starts Julia.

    That a tangent is zero is a rule too: JAX has such rules in its table of JVP rules.
    """
    rules = jaxprad_rules()
    jvp = {name for name, has in rules.items() if has.jvp or has.zero}
    transpose = {name for name, has in rules.items() if has.transpose}
    ours = _count("JaxprAD", jvp, transpose)
    return ours, _count(f"JAX {jax.__version__}", *registry.rules())


def _count(name: str, jvp: set, transpose: set) -> Count:
    return Count(name, len(jvp), len(transpose), len(jvp & transpose))
