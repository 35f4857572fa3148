"""What is known of a problem on one version of JAX."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Derivative:
    """A value, a gradient or an HVP, of the bridged loss and of the loss by itself.

    failure, jax_failure: what was raised. error: relative, against JAX; where JAX refuses, against JAX on
    the same loss by another rule.
    first: seconds of the first call, with tracing and compilation. seconds: the least of later calls.
    """

    failure: str = ""
    jax_failure: str = ""
    error: float | None = None
    agrees: bool = False
    first: float | None = None
    jax_first: float | None = None
    seconds: float | None = None
    jax_seconds: float | None = None

    @property
    def times_as_fast(self) -> float | None:
        return self.jax_seconds / self.seconds if self.seconds and self.jax_seconds else None


@dataclass(frozen=True)
class Result:
    """derivatives: by name, as far as the process came. failure: why there is no problem, such as an
    import that fails. end: how the process ended, if not well. sources: a digest of pybridge's.
    """

    name: str
    version: str = ""
    jax: str = ""
    sources: str = ""
    machine: dict[str, str] = field(default_factory=dict)
    derivatives: dict[str, Derivative] = field(default_factory=dict)
    failure: str = ""
    end: str = ""

    def with_derivative(self, name: str, derivative: Derivative) -> Result:
        return replace(self, derivatives={**self.derivatives, name: derivative})

    def complaints(self, absent: dict[str, str]) -> tuple[str, ...]:
        """What is wrong; nothing for a row that works. absent: why the package lacks a derivative."""
        found = [text for text in (self.failure, self.end) if text]
        for name, got in self.derivatives.items():
            if name in absent and not got.jax_failure:
                found.append(f"{name}: JAX has it, though the table says not")
            elif name in absent and (got.failure or (got.error is not None and not got.agrees)):
                found.append(f"{name}, which JAX lacks: {got.failure or f'off by {got.error:.0e}'}")
            elif name not in absent and (got.failure or got.jax_failure or not got.agrees):
                found.append(f"{name}: {_complaint(got)}")
        return tuple(dict.fromkeys(found))


def _complaint(got: Derivative) -> str:
    if got.jax_failure:
        return f"JAX by itself: {got.jax_failure}"
    return got.failure or f"off by {got.error:.0e}"


def read(told: dict[str, Any]) -> Result:
    derivatives = {name: Derivative(**d) for name, d in told["derivatives"].items()}
    return Result(**{**told, "derivatives": derivatives})
