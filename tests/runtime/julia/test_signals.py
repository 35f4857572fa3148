"""SIGSEGV is Julia's, the others are Python's."""

from __future__ import annotations

import pytest

from .processes import Python


@pytest.mark.parametrize("thief", ["enabled after", "disabled after", "enabled and disabled after"])
def test_sigsegv_comes_back_from_faulthandler(thief: str, python: Python) -> None:
    python.run(
        """
        import faulthandler, signal, sys, time
        from pybridge.runtime.julia import request
        from pybridge.runtime.julia.signals import Action
        thief = sys.argv[1]
        if thief == "disabled after":
            faulthandler.enable()
        request("echo")
        julias = Action.current(signal.SIGSEGV)
        if thief != "disabled after":
            faulthandler.enable()
            assert Action.current(signal.SIGSEGV) != julias  # or the test tests nothing
        if thief != "enabled after":
            faulthandler.disable()
        request("echo")
        assert Action.current(signal.SIGSEGV) == julias
        faulthandler.enable()
        time.sleep(0.5)  # without any request, too: XLA's threads do not make one
        assert Action.current(signal.SIGSEGV) == julias
        """,
        thief,
    ).fine()


def test_pythons_handlers_work_after_julias_start(python: Python) -> None:
    python.run("""
        import os, signal, time
        names = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGALRM", "SIGCHLD"]
        seen = []
        for name in names:
            signal.signal(getattr(signal, name), lambda n, frame: seen.append(signal.Signals(n).name))
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        from pybridge.runtime.julia import request
        request("echo")
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
        seen.clear()  # Julia was probed by child processes, which end with SIGCHLD
        for name in names:
            os.kill(os.getpid(), getattr(signal, name))
            deadline = time.monotonic() + 5
            while seen[-1:] != [name] and time.monotonic() < deadline:
                time.sleep(0.01)
        assert seen == names, seen
        assert request("echo", "next") == "next"
    """).fine()


def test_sigterm_still_ends_the_process(python: Python) -> None:
    said = python.run("""
        import os, signal, time
        from pybridge.runtime.julia import request
        request("echo")
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)
    """)
    assert said.code == -15


def test_pytest_style_faulthandler_around_everything(python: Python) -> None:
    said = python.with_(PYTHONFAULTHANDLER="1").run("""
        from pybridge.runtime.julia import request
        for _ in range(20):
            request("collect")
    """)
    assert said.fine() == "" and said.err == ""
