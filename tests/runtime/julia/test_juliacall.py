"""juliacall and pybridge share one Julia, whichever comes first."""

from __future__ import annotations

import json
import os

import pytest

from .processes import Python

WHERE = """
    import json
    from pybridge.runtime.julia import find
    found = find()
    julia = found.require()
    print(json.dumps([found.host, str(julia.executable), str(julia.project), julia.version]))
"""


@pytest.fixture
def shared(python: Python) -> Python:
    """With juliacall's settings for a Julia that has PythonCall; skips where there is none."""
    host, executable, project, version = json.loads(python.run(WHERE).fine())
    if host != "juliacall":
        pytest.skip(f"needs PythonCall, which Julia {version} at {executable} does not have")
    return python.with_(
        PYTHON_JULIACALL_EXE=executable,
        PYTHON_JULIACALL_PROJECT=project,
        PYTHON_JULIACALL_HANDLE_SIGNALS="yes",
    )


@pytest.mark.pythoncall
def test_juliacall_first(shared: Python) -> None:
    said = shared.run("""
        import signal, threading, time
        before = signal.getsignal(signal.SIGINT)
        import juliacall
        julia = juliacall.newmodule("Test")
        assert julia.seval("1 + 1") == 2
        from pybridge.runtime.julia import find, request, status
        assert request("echo", "text") == "text"
        assert status().how == "attached" and find().host == "attached"
        for _ in range(5):
            assert request("collect") == "1000000"  # the main thread, parked in Python, holds nothing up
            assert julia.seval("(GC.gc(); sum(1:100))") == 5050
        busy = threading.Thread(target=lambda: [request("collect") for _ in range(20)])
        busy.start()
        while busy.is_alive():
            assert julia.seval("sum(length(rand(100)) for _ in 1:1000)") == 100_000
        assert request("loop", arguments=["0.2"]) == "ended by itself"  # sleeps, and so needs the event loop
        assert signal.getsignal(signal.SIGINT) is before
        print("fine")
    """)
    assert said.fine() == "fine\n"


@pytest.mark.pythoncall
@pytest.mark.parametrize("first", ["juliacall", "pybridge"])
def test_a_process_ends_whose_kernels_ran_on_threads_of_xlas(shared: Python, first: str) -> None:
    """At Julia 1.12's end other threads are suspended, and XLA waits for the end of its own."""
    depot = {name: os.environ[name] for name in ["JULIA_DEPOT_PATH"] if name in os.environ}
    users = shared.importing_all.without("PYBRIDGE_JAXPRAD", "JULIA_DEPOT_PATH")
    said = users.with_(**depot, PYBRIDGE_CACHE="off").run(f"""
        import {first}
        import jax, jax.numpy as jnp
        import pybridge as pb
        def f(x):
            return jnp.sum(jnp.tanh(x @ x.T) @ jnp.ones((40, 300)) @ jnp.ones((300, 40)))
        x = jnp.linspace(-1, 1, 1600).reshape(40, 40)
        slope = jax.jit(jax.grad(pb.bridge(f, execute="julia")))(x)
        print(bool(jnp.allclose(slope, jax.grad(f)(x), rtol=1e-3, atol=1e-1)))
    """)
    assert said.fine() == "True\n"


@pytest.mark.pythoncall
def test_pybridge_first(shared: Python) -> None:
    said = shared.run("""
        import threading
        from pybridge.runtime.julia import request, status
        assert request("echo", "text") == "text"
        assert status().how == "juliacall"
        import juliacall
        julia = juliacall.newmodule("Test")
        assert julia.seval("1 + 1") == 2
        echo = julia.seval("Base.root_module(Base.identify_package(\\"Echo\\"))")
        assert str(echo.serve("echo\\ntheirs")) == "ok\\ntheirs"
        busy = threading.Thread(target=lambda: [request("collect") for _ in range(20)])
        busy.start()
        while busy.is_alive():
            assert julia.seval("sum(length(rand(100)) for _ in 1:1000)") == 100_000
        assert julia.seval("(sleep(0.05); 3)") == 3
        print("fine")
    """)
    assert said.fine() == "fine\n"


@pytest.mark.pythoncall
def test_ctrl_c_with_juliacall_first(shared: Python) -> None:
    shared.run("""
        import juliacall, os, signal, threading, time
        from pybridge.runtime.julia import request
        request("echo")
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begun = time.monotonic()
        try:
            request("loop", arguments=["30"])
        except KeyboardInterrupt:
            assert time.monotonic() - begun < 5
            assert request("echo", "next") == "next"
        else:
            raise SystemExit("was not interrupted")
    """).fine()


@pytest.mark.pythoncall
def test_a_juliacall_without_signal_handlers_is_refused(shared: Python) -> None:
    shared.with_(PYTHON_JULIACALL_HANDLE_SIGNALS="no").run("""
        import juliacall
        import pybridge.errors as e
        from pybridge.runtime.julia import request
        try:
            request("echo")
        except e.JuliaUnusable as problem:
            assert "PYTHON_JULIACALL_HANDLE_SIGNALS=yes" in str(problem)
        else:
            raise SystemExit("joined a Julia that will crash")
        assert juliacall.newmodule("Test").seval("1 + 1") == 2
    """).fine()


@pytest.mark.pythoncall
def test_the_first_use_comes_from_another_thread_than_juliacalls(shared: Python) -> None:
    shared.run("""
        import juliacall, threading
        import pybridge.errors as e
        from pybridge.runtime.julia import request
        said = []
        def use():
            try:
                request("echo")
            except e.JuliaUnusable as problem:
                said.append(str(problem))
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert len(said) == 1 and "thread that imported juliacall" in said[0], said
        assert request("echo", "from the right one") == "from the right one"
        thread = threading.Thread(target=lambda: said.append(request("echo", "then from any")))
        thread.start()
        thread.join()
        assert said[1] == "then from any"
    """).fine()


def test_juliacall_after_a_julia_without_pythoncall_is_a_clear_error(python: Python) -> None:
    python.without("PYTHON_JULIACALL_EXE", "PYTHON_JULIACALL_PROJECT").with_(
        JULIA_LOAD_PATH="@:@stdlib"
    ).run("""
        import importlib.util
        from pybridge.runtime.julia import find, request, status
        request("echo")
        assert status().how == "embedded"
        try:
            import juliacall
        except ImportError as problem:
            assert str(find().julia.executable) in str(problem) and "PythonCall" in str(problem)
        else:
            raise SystemExit("imported juliacall")
        assert importlib.util.find_spec("juliacall") is not None
        assert request("echo", "next") == "next"
    """).fine()
