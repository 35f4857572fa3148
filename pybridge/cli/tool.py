"""`pybridge gradbench` as a process: its processors, and what is written to stdout."""

from __future__ import annotations

import os
import sys


def run(engine: str, execute: str, multithreaded: bool) -> None:
    """Answers messages until stdin is closed. What else is printed goes to stderr: stdout has JSON alone."""
    if not multithreaded:
        _stay_on_one_processor()
    from ..gradbench import Tool, serve

    tool = Tool(engine, execute)
    sys.stdout.flush()
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        serve(tool, sys.stdin, out)


def _stay_on_one_processor() -> None:
    """Before JAX and Julia start their threads, which then are as many as there are processors."""
    if hasattr(os, "sched_setaffinity"):  # not on macOS
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
