"""Times and sizes as text for people, with three digits and a unit."""

from __future__ import annotations

MISSING = "-"


def seconds(value: float | None) -> str:
    """Of a time in seconds; `MISSING` for None."""
    if value is None:
        return MISSING
    unit, scale = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if value >= s), ("µs", 1e-6))
    return f"{value / scale:.3g} {unit}"


def size(count: int | None) -> str:
    """Of memory in bytes, in powers of 1000; `MISSING` for None."""
    if count is None:
        return MISSING
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} B"
