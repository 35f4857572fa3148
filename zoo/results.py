"""What is known of a problem on one version of JAX, and its file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Derivative:
    """A value, a gradient or an HVP, of the bridged loss and of the loss by itself.

    refused: why the package has none. failure, jax_failure: what was raised. error: relative, against JAX.
    first: seconds of the first call, with tracing and compilation. seconds: the least of later calls.
    """

    refused: str = ""
    failure: str = ""
    jax_failure: str = ""
    error: float | None = None
    agrees: bool | None = None
    first: float | None = None
    jax_first: float | None = None
    seconds: float | None = None
    jax_seconds: float | None = None

    @property
    def times_as_fast(self) -> float | None:
        return self.jax_seconds / self.seconds if self.seconds and self.jax_seconds else None


@dataclass(frozen=True)
class Result:
    """derivatives: by name, as far as the process came. end: how it ended, if not well."""

    name: str
    version: str
    jax: str
    derivatives: dict[str, Derivative] = field(default_factory=dict)
    end: str = ""

    def with_derivative(self, name: str, derivative: Derivative) -> Result:
        return replace(self, derivatives={**self.derivatives, name: derivative})


def read(told: dict[str, Any]) -> Result:
    derivatives = {name: Derivative(**d) for name, d in told["derivatives"].items()}
    return Result(**{**told, "derivatives": derivatives})
