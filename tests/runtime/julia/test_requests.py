"""Requests: text in, text out, errors, threads, streams."""

from __future__ import annotations

from .processes import Python


def test_bodies_and_arguments_arrive_whole(python: Python) -> None:
    python.run("""
        from pybridge.runtime.julia import request
        body = "naïve ∂f/∂x \\x01\\n\\nlast line without newline"
        assert request("echo", body) == body
        assert request("echo") == ""
        assert len(request("echo", "x" * 20_000_000)) == 20_000_000
        assert request("arguments", arguments=["a", "b=1"]) == "a,b=1"
    """).fine()


def test_status_before_and_after(python: Python) -> None:
    python.run("""
        from pybridge.runtime.julia import find, request, status
        assert not status().started and status().how is None
        version = request("version")
        assert status().started and status().julia == find().julia
        assert status().julia.version == version
        assert status().how in ("embedded", "juliacall")
        assert status().package.name == "Echo.jl"
    """).fine()


def test_a_request_that_throws_a_thousand_times(python: Python) -> None:
    python.run("""
        import pybridge.errors as e
        from pybridge.runtime.julia import request
        for count in range(1000):
            try:
                request("throw", f"number {count}\\nsecond line")
            except e.JuliaError as problem:
                assert problem.kind == "ArgumentError", problem.kind
                assert str(problem) == f"ArgumentError: number {count}\\nsecond line", str(problem)
                assert "Echo.jl" in problem.stacktrace
            else:
                raise SystemExit("did not throw")
        assert request("echo", "still here") == "still here"
    """).fine()


def test_runaway_recursion_is_an_error(python: Python) -> None:
    python.run("""
        import pybridge.errors as e
        from pybridge.runtime.julia import request
        for _ in range(3):
            try:
                request("overflow")
            except e.JuliaError as problem:
                assert problem.kind == "StackOverflowError", problem.kind
            else:
                raise SystemExit("did not overflow")
        assert request("echo", "still here") == "still here"
    """).fine()


def test_a_traceback_does_not_grow_when_one_error_reaches_many_threads(python: Python) -> None:
    python.with_(PYBRIDGE_JULIA="/nonexistent/julia").run("""
        import traceback, pybridge.errors as e
        from pybridge.runtime.julia import request
        lengths = []
        for _ in range(5):
            try:
                request("echo")
            except e.JuliaUnusable as problem:
                lengths.append(len(traceback.extract_tb(problem.__traceback__)))
        assert len(lengths) == 5 and len(set(lengths)) == 1, lengths
    """).fine()


def test_many_threads_at_once_from_the_first_request_on(python: Python) -> None:
    python.run("""
        from concurrent.futures import ThreadPoolExecutor
        from pybridge.runtime.julia import request
        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(lambda n: request("echo", str(n)), range(400)))
        assert said == [str(n) for n in range(400)]
    """).fine()


def test_a_bad_first_line_is_refused_before_julia_starts(python: Python) -> None:
    python.run("""
        from pybridge.runtime.julia import request, status
        for words in (["two words"], ["line\\nbreak"], [""]):
            try:
                request("echo", arguments=words)
            except ValueError:
                continue
            raise SystemExit(f"took {words}")
        assert not status().started
    """).fine()


def test_nothing_of_ours_is_on_stdout_and_nothing_at_all_on_stderr(python: Python, tmp_path) -> None:
    said = python.with_(JULIA_DEPOT_PATH=f"{tmp_path}:").run("""
        from pybridge.runtime.julia import request
        print(request("echo", "only this"))
    """)
    assert said.fine() == "only this\n"
    assert said.err == ""


def test_pythons_own_streams_stay_blocking(python: Python) -> None:
    """A megabyte to a pipe nobody reads for a while: a non-blocking stream would raise or lose some."""
    said = python.run("""
        import os, sys
        from pybridge.runtime.julia import request
        request("echo")
        assert os.get_blocking(1) and os.get_blocking(2)
        print("y" * 1_000_000)
    """)
    assert len(said.fine()) == 1_000_001
