"""The environment of the processes that are measured."""

from __future__ import annotations

import os
from pathlib import Path

from pybridge import cache

# With it XLA compiles a loop whole, whatever the bytes it touches: what users of plain JAX on CPU can set.
FLAG = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000000"

_OLDER = Path(__file__).resolve().parent.parent / ".venv-oldest/bin/python"


def older_python() -> str | None:
    """The interpreter with the oldest JAX that is supported (`make test-oldest`), where it is installed."""
    return str(_OLDER) if _OLDER.exists() else None


def variables(folder: str, flag: str = "") -> dict[str, str]:
    """What differs from this process's.

    folder: for the cache, new, so that first results are those of a first time; kernels are in files, as
        users have them.
    flag: of XLA's, in addition to those that are set.
    """
    flags = " ".join(filter(None, [os.environ.get("XLA_FLAGS", ""), flag]))
    return {cache.SETTING: folder, "XLA_FLAGS": flags}
