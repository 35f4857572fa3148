"""The process in which an engine runs, which may die or hang. Samples come in, and results go out one by one.

`python -m pybridge.fuzz.child CONTENDER FILE_DESCRIPTOR`; the contender `reference` is what all are held
against.
"""

from __future__ import annotations

import gc
import sys
from multiprocessing.connection import Connection

import jax

from ..child_process import end_with_parent
from ..ir.parser import parse
from . import contenders, reference, stages
from .making import at_random

REFERENCE = "reference"
READY = "ready"
_EVERY = 25


def main(contender: str, descriptor: int) -> None:
    end_with_parent()
    jax.config.update("jax_enable_x64", True)
    with Connection(descriptor) as connection:
        _warm_up(contender)
        connection.send(READY)
        taken = 0
        while True:
            try:
                sample = connection.recv()
            except EOFError:
                return
            if contender == REFERENCE:
                connection.send(reference.expected(sample))
            else:
                f = contenders.function(contender, sample.program)
                stages.run(sample, f, lambda stage, found: connection.send((stage, found)))
            taken += 1
            if taken % _EVERY == 0:  # what was compiled takes memory, and this takes time
                jax.clear_caches()
                gc.collect()


def _warm_up(contender: str) -> None:
    """Starts Julia, if the engine needs it, before the time of any sample is taken."""
    if contender == REFERENCE:
        return
    product = "pybridge 1 program f(%0: f32[3]) { %1: f32[3] = mul %0 %0 return %1 }"
    sample = at_random(parse(product), 0)
    stages.run(sample, contenders.function(contender, sample.program), lambda *_: None)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
