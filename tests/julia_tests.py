"""How Julia's tests are started."""

from __future__ import annotations

from collections.abc import Iterable

from pybridge.runtime.julia import find, processor


def command(files: Iterable[str]) -> list[str]:
    """Runs test files, paths in `julia/test` without their ending, in the checkout that is the folder.

    Raises JuliaNotFound or JuliaUnusable where there is no Julia that works.
    """
    julia = find().require()
    start = [str(julia.executable), *processor.options(julia), "--startup-file=no"]
    return [*start, "julia/test/runtests.jl", *files]
