"""How Julia is started for its tests: `python -m tests.julia_tests -O1 --others` runs a half of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from pybridge.runtime.julia import find, image, processor, source


def julia(*options: str, compiled: bool = False) -> list[str]:
    """Julia with these options; `compiled`: with the checkout's JaxprAD compiled into it, if that was made.

    Raises JuliaNotFound or JuliaUnusable where there is no Julia that works.
    """
    found = find().require()
    if compiled:
        found = image.with_image(found, source.jaxprad())
    start = [str(found.executable), *processor.options(found), "--startup-file=no", *options]
    return [*start, f"--sysimage={found.image}"] if compiled else start


def command(arguments: Iterable[str], *options: str, compiled: bool = False) -> list[str]:
    """Runs what `julia/test/runtests.jl` takes, as files without their ending, from the checkout's root."""
    return [*julia(*options, compiled=compiled), "julia/test/runtests.jl", *arguments]


if __name__ == "__main__":
    given = sys.argv[1:]
    line = command(
        [a for a in given if not a.startswith("-O")],
        *[a for a in given if a.startswith("-O")],
        compiled=True,
    )
    os.execv(line[0], line)
