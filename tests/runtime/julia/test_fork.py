"""A forked child cannot use its parent's Julia; a spawned one starts its own."""

from __future__ import annotations

import pytest
from covering import FULL

from .processes import Python


def test_a_forked_child_is_refused_by_name_and_ends_well(python: Python) -> None:
    python.run("""
        import os, sys, warnings
        warnings.simplefilter("ignore")  # Python 3.12 warns of forks with threads
        import pybridge.errors as e
        from pybridge.runtime.julia import request, status
        request("echo")
        child = os.fork()
        if child == 0:
            try:
                request("echo")
            except e.ForkedProcess as problem:
                assert "spawn" in str(problem) and str(os.getppid()) in str(problem)
                assert not status().started
                sys.exit(7)  # with all exit hooks
            sys.exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert request("echo", "parent goes on") == "parent goes on"
    """).fine()


@pytest.mark.parametrize(
    "seconds", [0, 0.02, 0.025, 0.03, 0.05, 0.1, 0.2, 0.4] if FULL else [0, 0.025, 0.05, 0.2]
)
def test_a_fork_while_another_thread_starts_julia(seconds: float, python: Python) -> None:
    """Wherever in the start the fork comes: the child works or is refused, and the parent goes on."""
    python.run(
        """
        import os, sys, threading, time, warnings
        warnings.simplefilter("ignore")
        import pybridge.errors as e
        from pybridge.runtime.julia import request
        other = threading.Thread(target=request, args=("echo",))
        other.start()
        time.sleep(float(sys.argv[1]))
        child = os.fork()
        if child == 0:
            try:
                request("echo")
            except e.ForkedProcess:
                os._exit(7)
            os._exit(8)
        other.join()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (7, 8), code
        assert request("echo", "parent goes on") == "parent goes on"
        """,
        str(seconds),
    ).fine()


def test_a_fork_does_not_wait_for_a_start_that_waits_for_it(python: Python) -> None:
    """filelock, which juliapkg imports, closes a gate for the time of a fork; here another hook does so."""
    python.run("""
        import os, threading, warnings
        warnings.simplefilter("ignore")
        import pybridge.errors as e
        from pybridge.runtime.julia import Runtime, find
        searching, forking, forked = (threading.Event() for _ in range(3))
        def search():
            searching.set()
            assert forking.wait(60) and forked.wait(60)
            return find()
        runtime = Runtime(search=search)
        os.register_at_fork(before=forking.set, after_in_parent=forked.set)
        other = threading.Thread(target=runtime.start)
        other.start()
        searching.wait()
        child = os.fork()
        if child == 0:
            try:
                runtime.start()
            except e.ForkedProcess as problem:
                os._exit(7 if "were in use" in str(problem) else 1)
            os._exit(2)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code == 7, code
        other.join()
        assert runtime.status().started
    """).fine()


def test_a_fork_after_a_search_that_failed_is_no_matter(python: Python) -> None:
    python.with_(PYBRIDGE_JULIA="/no/julia").run("""
        import os, warnings
        warnings.simplefilter("ignore")
        import pybridge.errors as e
        from pybridge.runtime.julia import request
        try:
            request("echo")
        except e.JuliaUnusable:
            del os.environ["PYBRIDGE_JULIA"]
        child = os.fork()
        if child == 0:
            os._exit(7 if request("echo", "child") == "child" else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert request("echo", "parent") == "parent"
    """).fine()


def test_children_that_stay_do_not_hold_up_the_search(python: Python, fake_julia) -> None:
    """Forked while Julia is asked what it is, they must not have the pipe that it answers by."""
    julia = fake_julia("echo julia version 1.4.0")
    python.run(
        """
        import os, pathlib, signal, sys, threading, time, warnings
        warnings.simplefilter("ignore")
        import pybridge.errors as e
        from pybridge.runtime.julia import probe
        longest, ended = 0.0, threading.Event()
        def ask():
            global longest
            while not ended.is_set():
                begin = time.monotonic()
                try:
                    probe.probe(pathlib.Path(sys.argv[1]), timeout=20)
                except e.JuliaUnusable as problem:
                    assert "1.4.0" in str(problem), problem
                finally:
                    longest = max(longest, time.monotonic() - begin)
        other = threading.Thread(target=ask)
        other.start()
        children = []
        for _ in range(100):
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
            time.sleep(0.01)
        ended.set()
        other.join(10)
        held_up = other.is_alive()
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert not held_up and longest < 10
        """,
        str(julia),
    ).fine()


def test_a_child_does_not_keep_the_lock_of_what_is_precompiled(python: Python, tmp_path) -> None:
    python.run(
        """
        import fcntl, os, signal, sys
        from pybridge.runtime.julia.hosted import _one_at_a_time
        with _one_at_a_time(sys.argv[1]):
            child = os.fork()
            if child == 0:
                signal.pause()
        try:
            with open(os.path.join(sys.argv[1], "pybridge.lock")) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.kill(child, signal.SIGKILL)
        """,
        str(tmp_path),
    ).fine()


def test_a_fork_before_the_first_use_is_no_matter(python: Python) -> None:
    python.run("""
        import os, sys
        from pybridge.runtime.julia import request
        child = os.fork()
        if child == 0:
            sys.exit(7 if request("echo", "child") == "child" else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert request("echo", "parent") == "parent"
    """).fine()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods_work(method: str, python: Python, tmp_path) -> None:
    script = tmp_path / "main.py"
    script.write_text(
        """
import multiprocessing, sys
from pybridge.runtime.julia import request

if __name__ == "__main__":
    request("echo")
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        assert pool.map(request, ["version", "version"]) == [request("version")] * 2
""",
        encoding="utf-8",
    )
    python.run(
        "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')",
        str(script),
        method,
    ).fine()
