"""Julia functions in the life of a process, where Julia is embedded and where juliacall starts it."""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
from covering import FULL

from pybridge.runtime import julia
from pybridge.runtime.julia import juliacall_choice

from .test_processes import CHURN, run

EXITS = int(os.environ.get("PYBRIDGE_TEST_EXITS", "2"))
SLEEP = 10 if FULL else 3  # seconds
THROWS = 1000 if FULL else 200


@dataclass(frozen=True)
class Host:
    """A way of starting the Julia that was found, and the settings for it."""

    how: str
    variables: dict[str, str]

    def lives(self, code: str, **variables: str) -> None:
        code = self.first + PRELUDE + textwrap.dedent(code) + "\nprint(julia.status().how)\n"
        assert run(code, **self.variables, **variables) == f"{self.how}\n"

    @property
    def first(self) -> str:
        """Where PythonCall is, only by leaving out that look is Julia embedded."""
        return EMBEDDING if self.how == "embedded" else ""


EMBEDDING = """
from pybridge.runtime.julia import juliacall_choice
juliacall_choice.fits = lambda julia: False
"""


@pytest.fixture(params=["embedded", "juliacall"])
def host(request: pytest.FixtureRequest) -> Host:
    chosen = julia.find().require()
    settings = {"PYBRIDGE_JULIA": str(chosen.executable)}
    if request.param == "juliacall" and not juliacall_choice.fits(chosen):
        pytest.skip(f"needs PythonCall, which Julia {chosen.version} does not have")
    return Host(request.param, settings)


PRELUDE = f"""
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
import pybridge as pb
from pybridge.runtime import julia
CODE = {CHURN!r} + '''
collected(x) = (z = [x .+ k for k in 1:100]; GC.gc(false); sum(sum, z))
throws(x) = x[1] > 0 ? error("in the dark") : sum(x)
'''
SCALAR = jax.ShapeDtypeStruct((), jnp.float64)
function = lambda name: pb.julia_function(name, source=CODE, result=SCALAR)
x = jnp.linspace(0.1, 1.0, 8)
"""


def test_four_threads_allocate_and_collect_while_the_main_thread_sleeps(host: Host) -> None:
    """A thread of Julia's that sits idle outside of it must hold up no collection."""
    host.lives(
        f"""
        f = jax.jit(lambda x: function("collected")(x) + 0.0)
        expected, counts, wrong = float(f(x)), [0] * 4, []
        end = time.monotonic() + {SLEEP}
        def work(k):
            while time.monotonic() < end:
                float(f(x)) == expected or wrong.append(k)
                counts[k] += 1
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        [t.start() for t in threads]
        time.sleep({SLEEP})
        [t.join(20) for t in threads]
        assert not any(t.is_alive() for t in threads)
        assert not wrong and min(counts) > 5, (wrong, counts)
        """
    )


def test_a_call_that_throws_hundreds_of_times(host: Host) -> None:
    host.lives(
        f"""
        f = jax.jit(function("throws"))
        for k in range({THROWS}):
            try:
                f(x).block_until_ready()
            except Exception as problem:
                assert "in the dark" in str(problem)
            else:
                raise AssertionError("no error")
        assert f(-x) == -x.sum()
        """
    )


@pytest.mark.enzyme
@pytest.mark.parametrize("k", range(EXITS))
def test_exits_with_enzyme_gradients_in_flight(k: int, host: Host, enzyme: str) -> None:
    host.lives(
        f"""
        step = jax.grad(function("churn"))
        walk = jax.jit(lambda x: jax.lax.fori_loop(0, 1_000_000, lambda _, x: step(x), x))
        compiled = walk.lower(x).compile()
        threading.Thread(target=lambda: compiled(x).block_until_ready(), daemon=True).start()
        time.sleep({0.01 + k % 7 * 0.02})
        """
    )


@pytest.mark.enzyme
def test_no_derivative_is_compiled_while_it_runs(host: Host, enzyme: str, tmp_path: Path) -> None:
    """Nothing is, once each has run: `jl_dump_compiles` tells of all threads."""
    log = tmp_path / "compiled"
    host.lives(
        """
        import os
        def in_julia(code):
            live = julia._RUNTIME._live
            return live.control.call(lambda: live.hosted.library.text(code), lambda: "")
        bridged = pb.bridge(lambda x: jnp.sin(x).sum() ** 2, engine="enzyme")
        churn = function("churn")
        calls = [jax.grad(churn), jax.hessian(churn), jax.grad(bridged), jax.jacfwd(bridged)]
        compiled = [jax.jit(f).lower(x).compile() for f in calls]
        [f(x).block_until_ready() for f in compiled]
        in_julia('const LOG = open(ENV["COMPILED"], "w"); ""')
        in_julia('ccall(:jl_dump_compiles, Cvoid, (Ptr{Cvoid},), LOG.handle); ""')
        threads = [threading.Thread(target=lambda f=f: f(x).block_until_ready()) for f in compiled]
        [t.start() for t in threads]
        [t.join() for t in threads]
        in_julia('ccall(:jl_dump_compiles, Cvoid, (Ptr{Cvoid},), C_NULL); flush(LOG); ""')
        """,
        COMPILED=str(log),
    )
    lines = log.read_text().splitlines()
    assert not [line for line in lines if "JaxprAD" in line or "Enzyme" in line], lines
