"""Whatever an engine does, the others have their rows and it has one that says why."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def f(x):
    return jnp.sin(x) * x


def compare(*engines, **options):
    return pb.compare(f, X, engines=engines, repeats=0, **options)


def failed(result, engine):
    row = result[engine]
    assert row.state == "failed" and not row.ran
    assert result["jax"].state == "agrees"
    assert row.reasons[0] in " ".join(str(result).split())
    return " ".join(row.reasons)


def test_an_exception(engines):
    assert failed(compare("raising"), "raising") == "VJP, value, JVP: RuntimeError: out of luck"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("os._exit(7)", "exited with status 7"),
        ("os.abort()", "ended by SIGABRT"),
        ("raise ImportError('half installed')", "ImportError: half installed"),
    ],
)
def test_a_process_that_ends(stand_in, body, reason):
    stand_in(body)
    assert reason in failed(compare("enzyme-jax"), "enzyme-jax")


def test_a_process_that_hangs(stand_in):
    stand_in("time.sleep(1000)")
    assert "no answer within 6 s" in failed(compare("enzyme-jax", timeout=6), "enzyme-jax")


def test_what_came_before_the_end_is_kept(stand_in):
    """The second call of the engine ends the process: the VJP has been made by then."""
    stand_in(
        """
        calls = int(os.environ.get("CALLS", "0")) + 1
        os.environ["CALLS"] = str(calls)
        if calls > 2:  # the first warms up
            os._exit(3)
        return lambda g: g
        """
    )
    row = compare("enzyme-jax")["enzyme-jax"]
    assert row.vjp.relative < 1e-5 and row.value is None and row.first_gradient > 0
    assert row.state == "failed" and "value: the process exited with status 3" in row.reasons[0]


def test_an_engine_that_is_not_there(engines):
    result = compare("absent")
    row = result["absent"]
    assert row.state == "unavailable" and row.reasons == ("no such package; `pip install it`",)
    assert "absent unavailable: no such package" in str(result)
    assert not result.agrees()  # nothing was compared with jax


def test_any_engine_can_be_isolated():
    row = compare("transpose", isolate=True)["transpose"]
    assert row.state == "agrees" and row.isolated and row.first_gradient > 0


def test_closures_and_large_constants_travel_to_the_process(stand_in):
    stand_in("return lambda g: g")
    table = jnp.asarray(np.random.default_rng(1).standard_normal((50, 4)), jnp.bfloat16)
    result = pb.compare(lambda x: x @ table.T.astype(x.dtype), X, engines=["enzyme-jax"], repeats=2)
    assert result["enzyme-jax"].isolated and result.agrees()
    assert result["enzyme-jax"].times.vjp_ratio > 0


def test_what_cannot_be_isolated_says_so(stand_in):
    stand_in("return lambda g: g")

    def noisy(x):
        jax.debug.print("{}", x[0, 0])
        return jnp.sin(x)

    row = pb.compare(noisy, X, engines=["enzyme-jax"], repeats=0)["enzyme-jax"]
    assert row.state == "failed" and "cannot be isolated: SideEffectError" in row.reasons[0]
