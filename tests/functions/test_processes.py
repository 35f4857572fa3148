"""What needs a process of its own: juliacall with pybridge, and Julia's collector under many threads."""

from __future__ import annotations

import os
import textwrap

import processes
import pytest
from covering import FULL

from pybridge.runtime import julia

SECONDS = float(os.environ.get("PYBRIDGE_STRESS_SECONDS", "5" if FULL else "2"))

_IMPORTS = """
import threading, time
import numpy as np
"""


def run(code: str, timeout: float = 240, **variables: str) -> str:
    return processes.run_imported(_IMPORTS + textwrap.dedent(code), timeout=timeout, **variables)


@pytest.fixture
def shared() -> dict[str, str]:
    """juliacall's settings for a Julia with PythonCall; skips where there is none."""
    found = julia.find()
    if found.host == "embedded":
        pytest.skip(f"needs PythonCall, which Julia {found.require().version} does not have")
    return {
        "PYTHON_JULIACALL_EXE": str(found.require().executable),
        "PYTHON_JULIACALL_PROJECT": str(found.require().project),
        "PYTHON_JULIACALL_HANDLE_SIGNALS": "yes",
    }


OBJECTS = """
    {first}
    import jax
    jax.config.update("jax_enable_x64", True)
    import pybridge as pb
    {second}
    jl = juliacall.newmodule("Test")
    square = jl.seval("square(x) = sum(abs2, x)")
    scaled = jl.seval("let k = 3.0; x -> k .* x end")
    x = np.arange(3.0)
    f, g = pb.julia_function(square), pb.julia_function(scaled)
    assert f(x) == 5.0 and jax.jit(f)(x) == 5.0
    np.testing.assert_array_equal(g(x), 3 * x)
    jl.seval("shift(x) = x .+ 1")
    juliacall.Main.seval("shift(x) = x .+ 2")
    np.testing.assert_array_equal(pb.julia_function("shift")(x), x + 2)
    try:
        pb.julia_function(jl.seval("thrower(x) = error(\\"from juliacall\\")"), result=x)(x)
    except pb.JuliaError as problem:
        assert "from juliacall" in str(problem)
    if {derivatives}:
        np.testing.assert_allclose(jax.grad(f)(x), 2 * x)
        np.testing.assert_allclose(jax.jacrev(g)(x), 3 * np.eye(3))
    assert jl.seval("1 + 1") == 2
    print("fine")
"""


@pytest.mark.pythoncall
@pytest.mark.parametrize("order", ["juliacall first", "pybridge first"])
def test_julia_objects_of_juliacalls(shared, order):
    imports = ["import juliacall", "from pybridge.runtime import julia; julia.start(); import juliacall"]
    first, second = (imports[0], "") if order == "juliacall first" else ("", imports[1])
    derivatives = julia.find().require().enzyme is not None
    code = OBJECTS.format(first=first, second=second, derivatives=derivatives)
    assert run(code, **shared) == "fine\n"


CHURN = """
import Base.GC
function churn(x)          # allocates in every step
    y = x
    for k in 1:20
        y = sin.(y .+ k) .* x
    end
    sum(y)
end
"""

STRESS = """
    import os
    import jax, jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
    import pybridge as pb
    from pybridge.runtime import julia
    CODE = {churn!r} + '''
    function churn_vjp((x,), ct)
        h = 1e-6
        ([(churn([j == i ? x[j] + h : x[j] for j in 1:length(x)]) - churn(x)) / h * ct for i in 1:length(x)],)
    end
    collect_now(x) = (GC.gc(x > 1); x)
    '''
    rule = {rule!r}
    churn = pb.julia_function("churn", source=CODE, result=jax.ShapeDtypeStruct((), jnp.float64), vjp=rule)
    collect = pb.julia_function("collect_now", source=CODE, result=jax.ShapeDtypeStruct((), jnp.float64))
    gradient = jax.jit(jax.grad(lambda x: churn(jnp.tanh(x)) + jnp.sum(x)))
    batch = jax.jit(jax.vmap(jax.grad(churn)))
    x = jnp.linspace(0.1, 1.0, 8)
    expected, expected_batch = np.asarray(gradient(x)), np.asarray(batch(jnp.stack([x, 2 * x])))
    collect(1.0)
    end = time.monotonic() + {seconds}
    counts, wrong = [0] * 5, []
    def work(k):
        while time.monotonic() < end:
            if k == 4:
                collect(float(counts[k] % 3))
                julia.request("rules")
            elif k % 2:
                got = np.asarray(batch(jnp.stack([x, 2 * x])))
                np.array_equal(got, expected_batch) or wrong.append(got)
            else:
                got = np.asarray(gradient(x))
                np.array_equal(got, expected) or wrong.append(got)
            counts[k] += 1
    threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong, wrong[0]
    assert min(counts) > 0, counts
    print("fine", counts)
"""


def test_many_threads_while_julia_collects():
    said = run(STRESS.format(churn=CHURN, rule="churn_vjp", seconds=SECONDS), timeout=240 + SECONDS)
    assert said.startswith("fine")


@pytest.mark.enzyme
def test_many_threads_with_allocating_enzyme_gradients_while_julia_collects(enzyme):
    said = run(STRESS.format(churn=CHURN, rule=None, seconds=SECONDS), timeout=240 + SECONDS)
    assert said.startswith("fine")


@pytest.mark.enzyme
@pytest.mark.pythoncall
def test_the_same_in_a_julia_of_juliacalls(enzyme, shared):
    code = "    import juliacall\n" + STRESS.format(churn=CHURN, rule=None, seconds=SECONDS)
    assert run(code, timeout=240 + SECONDS, **shared).startswith("fine")
