"""What the zoo asks of a package: a row of `zoo/table.py`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """A loss from a package's own field of use, which `zoo/problems/<module>.py` makes.

    function: there, makes `(loss, arguments)`; the first argument is differentiated, a tree of floats.
    title: what it computes, in a line.
    package: the distribution's name; the module's, unless said.
    no_gradient, no_hvp: why the package has no such derivative, which JAX by itself must confirm.
    hvp_of: the function of the module that makes the same loss by a rule of which JAX has the HVP, where this
        one's rule has none: ours is held against that.
    tolerance: of each leaf, relative to its largest element.
    """

    module: str
    function: str
    title: str
    package: str = ""
    no_gradient: str = ""
    no_hvp: str = ""
    hvp_of: str = ""
    x64: bool = True
    tolerance: float = 1e-8

    @property
    def name(self) -> str:
        return f"{self.module}.{self.function}"

    @property
    def distribution(self) -> str:
        return self.package or self.module.replace("_", "-")

    @property
    def absent(self) -> dict[str, str]:
        """The derivatives that the package lacks, with the reason."""
        reasons = {"gradient": self.no_gradient, "hvp": self.no_hvp or self.no_gradient}
        return {name: reason for name, reason in reasons.items() if reason}

    def make(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Imports the package. Raises whatever that raises."""
        return self._made(self.function)

    def make_other(self) -> Callable[..., Any]:
        """The loss of `hvp_of`, with the same arguments."""
        return self._made(self.hvp_of)[0]

    def _made(self, function: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return getattr(importlib.import_module(f"zoo.problems.{self.module}"), function)()
