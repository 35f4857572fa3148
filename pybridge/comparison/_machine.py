"""Where and when numbers were measured."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime

import jax

from ..runtime import julia


def machine() -> dict[str, str]:
    """Date, processor, platform and versions, as text."""
    status = julia.status()
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "jax": f"{jax.__version__} on {jax.default_backend()}",
        "python": platform.python_version(),
        "julia": status.julia.version if status.julia else "not started",
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()
