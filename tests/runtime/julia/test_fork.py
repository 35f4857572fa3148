"""A forked child cannot use its parent's Julia; a spawned one starts its own."""

from __future__ import annotations

import pytest

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


def test_a_fork_while_another_thread_starts_julia(python: Python) -> None:
    """The lock that the other thread holds must not hang the child."""
    python.run("""
        import os, sys, threading, time, warnings
        warnings.simplefilter("ignore")
        import pybridge.errors as e
        from pybridge.runtime.julia import request
        other = threading.Thread(target=request, args=("echo",))
        other.start()
        time.sleep(0.05)
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
    """).fine()


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
