"""Ctrl-C ends the call, not the process, and Julia is usable afterwards."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from covering import FULL

from .processes import Python

TRIES = 3
# Seconds from the request that starts Julia.
MOMENTS = [0.02, 0.08, 0.09, 0.1, 0.11, 0.12, 0.2] if FULL else [0.02, 0.09, 0.11, 0.2]

INTERRUPTED = """
    import os, signal, threading, time
    from pybridge.runtime.julia import request

    took = []  # seconds from SIGINT to KeyboardInterrupt

    def interrupted(call, after=0.3):
        "Makes the call on the main thread, and interrupts it."
        sent = []
        def send():
            time.sleep(after)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        try:
            threading.Thread(target=send).start()
            call()
        except KeyboardInterrupt:
            took.append(time.monotonic() - sent[0])
            return
        raise SystemExit("was not interrupted")
"""


def heard_promptly(tries: Iterable[Python], code: str) -> None:
    """The code runs well, and in one of the tries each interrupt is heard within half a second.

    A busy machine may stall for longer once.
    """
    latest = (float(python.run(f"{INTERRUPTED}{code}\n    print(max(took))").fine()) for python in tries)
    assert any(seconds < 0.5 for seconds in latest)


def test_a_running_request_ends_within_half_a_second(python: Python) -> None:
    heard_promptly(
        [python] * TRIES,
        """
    request("echo")
    for _ in range(3):
        interrupted(lambda: request("loop", arguments=["30"]))
        begun = time.monotonic()
        assert request("echo", "next") == "next"
        assert time.monotonic() - begun < 5, "the interrupted request went on"
    """,
    )


def test_a_request_that_had_not_begun_to_look_is_cancelled_too(python: Python) -> None:
    """`serve` clears the flag when it starts: a Ctrl-C before that, while it compiles, must not get lost."""
    heard_promptly(
        [python] * TRIES,
        """
    request("echo")
    for wait in (0.001, 0.002, 0.003, 0.005, 0.01) * 4:
        interrupted(lambda: request("loop", arguments=["30"]), wait)
        begun = time.monotonic()
        request("echo")
        assert time.monotonic() - begun < 5
    """,
    )


def test_an_interrupt_as_julia_is_about_to_start(python: Python) -> None:
    """It is not forgotten that it starts."""
    python.run(
        """
    import os, signal, time
    from pybridge.runtime.julia import request
    from pybridge.runtime.julia.control import Control

    start = Control.start
    def interrupted(control):
        start(control)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
    Control.start = interrupted
    try:
        request("echo")
    except KeyboardInterrupt:
        Control.start = start
        assert request("echo", "next") == "next"
    else:
        raise SystemExit("was not interrupted")
    """
    ).fine()


@pytest.mark.parametrize("after", MOMENTS)
def test_the_first_start_can_be_interrupted(python: Python, tmp_path, after) -> None:
    """At any time: some of these are while Julia has the signals to itself."""
    heard_promptly(
        (python.with_(JULIA_DEPOT_PATH=f"{tmp_path / str(k)}:") for k in range(TRIES)),
        f"""
    from pybridge.runtime.julia import find
    find()  # so that the probing of Julia is over
    interrupted(lambda: request("echo"), {after})
    assert request("echo", "next") == "next"
    """,
    )


def test_somebody_elses_request_goes_on(python: Python) -> None:
    heard_promptly(
        [python] * TRIES,
        """
    request("echo")
    said = []
    other = threading.Thread(target=lambda: said.append(request("loop", arguments=["1.5"])))
    other.start()
    time.sleep(0.2)
    interrupted(lambda: request("loop", arguments=["30"]))  # still waiting for its turn
    other.join()
    assert said == ["ended by itself"], said
    assert request("echo", "next") == "next"
    """,
    )


def test_an_interrupt_that_comes_between_requests_is_pythons(python: Python) -> None:
    heard_promptly(
        [python] * TRIES,
        """
    request("echo")
    interrupted(lambda: time.sleep(30))
    assert request("echo", "next") == "next"
    """,
    )


def test_code_that_never_looks_refuses_the_next_request_at_once(python: Python) -> None:
    heard_promptly(
        [python] * TRIES,
        """
    import weakref
    from pybridge.errors import JuliaBusy
    class Buffer: pass
    def spin(seconds):
        buffer = Buffer()
        used.append(weakref.ref(buffer))
        request("spin", arguments=[str(seconds)], doing="running the function slow", users=True,
                quiet=True, memory=[buffer])
    used = []
    request("echo")
    for _ in range(2):
        begun = time.monotonic()
        interrupted(lambda: spin(3))
        called = time.monotonic()
        try:
            raise SystemExit(request("echo"))
        except JuliaBusy as busy:
            assert time.monotonic() - called < 1.5
            assert "still running the function slow, since " in str(busy) and "check_cancelled" in str(busy)
        assert used[-1]() is not None, "the memory that the function uses is gone"
        while time.monotonic() - begun < 3.2:
            time.sleep(0.1)
        assert request("echo", "next") == "next"
        assert used[-1]() is None
    """,
    )
