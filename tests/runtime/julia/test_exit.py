"""Every way out ends with the status that the program meant."""

from __future__ import annotations

import os
import time

from covering import FULL

from .processes import Python, ended

EXITS = int(os.environ.get("PYBRIDGE_TEST_EXITS", "20" if FULL else "4"))
IN_FLIGHT = """
    import sys, threading, time
    from pybridge.runtime.julia import request
    request("echo")
    # a daemon thread's request is running when the main thread leaves
    threading.Thread(target=request, args=("loop",), kwargs={"arguments": ["60"]}, daemon=True).start()
    time.sleep(float(sys.argv[1]))
    print("leaving")
"""


def test_many_exits_with_a_request_in_flight(python: Python) -> None:
    begun = time.monotonic()
    for first in range(0, EXITS, 4):
        waits = [str((first + k) % 7 * 0.02) for k in range(4)]
        for process in [python.start(IN_FLIGHT, wait) for wait in waits]:
            said = ended(process)
            assert said.fine() == "leaving\n"
            assert said.err == ""
    assert time.monotonic() - begun < 6 * EXITS, "exits waited for requests that nobody will hear of"


def test_an_exit_while_julia_is_starting(python: Python) -> None:
    python.run("""
        import threading, time
        from pybridge.runtime.julia import request
        threading.Thread(target=request, args=("echo",), daemon=True).start()
        time.sleep(0.6)
    """).fine()


def test_a_status_and_buffered_output_survive(python: Python) -> None:
    said = python.run("""
        import sys
        from pybridge.runtime.julia import request
        request("echo")
        print("x" * 100_000)
        sys.exit(5)
    """)
    assert (said.code, len(said.out), said.err) == (5, 100_001, "")


def test_an_uncaught_exception_is_told(python: Python) -> None:
    said = python.run("""
        from pybridge.runtime.julia import request
        request("echo")
        raise LookupError("told")
    """)
    assert said.code == 1 and "LookupError: told" in said.err


def test_requests_after_the_exit_hook_are_refused(python: Python) -> None:
    said = python.run("""
        import atexit
        import pybridge.errors as e
        from pybridge.runtime.julia import request
        def late():
            try:
                request("echo")
            except e.JuliaError as problem:
                print(problem.kind)
        atexit.register(late)  # hooks run in reverse order: this one after the runtime's
        request("echo")
    """)
    assert said.fine() == "Exiting\n"


def test_julias_own_exit_hooks_run(python: Python, tmp_path) -> None:
    mark = tmp_path / "mark"
    python.run(
        """
        import sys
        from pybridge.runtime.julia import request
        request("atexit", sys.argv[1])
        """,
        str(mark),
    ).fine()
    assert mark.read_text(encoding="utf-8") == "Julia ended"
