"""`first_disagreement`: the right equation, in few compilations, with the numbers there, and as a file."""

from __future__ import annotations

import dataclasses
import math
import random
import runpy
import sys

import jax
import jax.numpy as jnp
import numpy as np
import processes
import pytest

import pybridge as pb
from pybridge.comparison._case import Case
from pybridge.engines import ENGINES

X = np.random.default_rng(0).uniform(0.2, 1.2, (3, 4)).astype(np.float32)


def against(f, *args, engine, **options):
    result = pb.compare(f, *args, engines=[engine], repeats=0, isolate=False, **options)
    return result, result.first_disagreement(engine)


def grown(seed):
    """A function of random operations on random earlier values, whose scales differ; one of them is tanh."""
    rng = random.Random(seed)
    steps = [rng.choice(["sin", "mul", "add", "large", "small", "exp"]) for _ in range(rng.randint(3, 12))]
    steps.insert(rng.randint(0, len(steps)), "tanh")
    choices = [(step, rng.random(), rng.random()) for step in steps]

    def f(x):
        values = [x, x + 1]
        for step, i, j in choices:
            a, b = values[int(i * len(values))], values[int(j * len(values))]
            make = {
                "sin": lambda a, _: jnp.sin(a),
                "mul": lambda a, b: a * b,
                "add": lambda a, b: a + b,
                "large": lambda a, _: 1e2 * a,
                "small": lambda a, _: 1e-2 * a,
                "exp": lambda a, _: jnp.exp(-a * a),
                "tanh": lambda a, _: jnp.tanh(jnp.sin(a) + x),
            }[step]
            values.append(make(a, b))
            if step == "tanh":
                values = [*values[-2:], values[-1]]
        return values[-1], sum(values)

    return f


@pytest.mark.parametrize("seed", range(6))
def test_the_one_equation_is_found_whatever_is_around_it(engines, seed, x64):
    result, found = against(grown(seed), X.astype(np.float64), engine="wrong-backwards")
    assert not result.agrees() and found.mode == "vjp" and "= tanh " in found.equation
    numbers = found.numbers
    assert list(numbers.expected) == list(numbers.found) == [f"cotangent of {found.equation.split()[-1]}"]
    for name, expected in numbers.expected.items():
        np.testing.assert_allclose(numbers.found[name], 1.1 * expected, rtol=1e-12)


def test_compilations_grow_as_the_logarithm(engines, monkeypatch):
    made = []
    engine = ENGINES["wrong-backwards"]

    def counted(program, arrays, options):
        made.append(program)
        return engine.apply(program, arrays, options)

    monkeypatch.setitem(ENGINES, engine.name, dataclasses.replace(engine, apply=counted))

    def long(x):
        for k in range(100):
            x = jnp.tanh(x) if k == 61 else x + 0.01 * jnp.sin(x)
        return x

    result = pb.compare(long, X, engines=[engine.name], repeats=0)
    made.clear()
    found = result.first_disagreement()
    count = len(pb.trace(long)(X).equations)
    assert found.index == 3 * 61 and "= tanh " in found.equation
    assert count == 298 and len(made) <= math.ceil(math.log2(count)) + 3  # and the equation by itself


def test_a_mode_that_fails_is_located(engines):
    def f(x):
        return jnp.exp(jnp.cos(jnp.sin(x)) * x)

    result, found = against(f, X, engine="not-backwards")
    assert result["not-backwards"].failed and result["not-backwards"].jvp.relative < 1e-5
    assert (found.mode, found.error) == ("vjp", None) and "= cos " in found.equation
    assert "RuntimeError: no way back" in found.reason
    assert not found.numbers.found and list(found.numbers.expected) == ["cotangent of %1"]


def test_a_value_that_is_wrong_is_located(engines):
    _, found = against(lambda x: jnp.sin(x) * x, X, engine="shifted")
    assert (found.mode, found.index) == ("value", 0)
    np.testing.assert_allclose(found.numbers.found["%1"], np.sin(X) + 1e-2, rtol=1e-6)


def test_integers_branches_loops_and_several_arguments(engines):
    def f(tree, n, key):
        noise = jax.random.normal(key, tree["a"].shape)
        ordered = tree["a"][jnp.argsort(tree["a"][:, 0])] + noise

        def body(c, b):
            return jnp.tanh(c) * b + 1, c.sum()

        last, sums = jax.lax.scan(body, ordered[0], tree["b"])
        return {"picked": jnp.take(last, n), "sums": sums, "count": n + 1}

    args = {"a": X, "b": X[::-1]}, np.array([1, 2], np.int32), jax.random.key(0)
    for name in ("wrong-backwards", "tripled-sine"):
        result = pb.compare(f, *args, engines=[name], repeats=0)
        assert result.agrees() and result.first_disagreement(name) is None  # they see no bodies
    engine = ENGINES["wrong-backwards"]
    whole = dataclasses.replace(engine, apply=_wrong_loops)
    ENGINES["wrong-backwards"] = whole
    _, found = against(f, *args, engine="wrong-backwards")
    assert found.mode == "jvp" and "= scan " in found.equation and "test_locating.py" in found.source


def _wrong_loops(program, arrays, options):
    """Where a Program has a loop, its derivative is twice what it should be."""
    results = program.to_jax()(*arrays)
    loops = any(eq.op == "scan" for eq in program.equations)
    return [_doubled(y) if loops and jnp.issubdtype(y.dtype, jnp.inexact) else y for y in results]


@jax.custom_jvp
def _doubled(x):
    return x


_doubled.defjvp(lambda primals, tangents: (primals[0], 2 * tangents[0]))


def test_what_is_printed(engines):
    _, found = against(lambda x: jnp.sin(x) * x, X, engine="tripled-sine")
    lines = str(found).splitlines()
    assert lines[0] == found.summary and [line.split("  ")[1] for line in lines[1:]] == [
        "%0",
        "tangent of %0",
        "tangent of %1 by jax",
        "tangent of %1 by tripled-sine",
        "",
    ]
    assert lines[1].endswith(f"{X[0, 0]:.6g} {X[0, 1]:.6g} … (12) {X[2, 2]:.6g} {X[2, 3]:.6g}")
    index = np.unravel_index(
        np.argmax(abs(found.numbers.expected["tangent of %1"])), X.shape
    )  # off by twice the number
    assert f"most at [{index[0]}, {index[1]}]: " in lines[-1]


def run(path):
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(path), run_name="__main__")
    return int(end.value.code)


@pytest.mark.parametrize(
    ("engine", "op", "x64"),
    [("tripled-sine", "sin", False), ("wrong-backwards", "tanh", True), ("not-backwards", "cos", False)],
)
def test_the_file_has_the_equation_alone_and_fails_until_the_engine_is_right(
    engines, tmp_path, monkeypatch, capsys, engine, op, x64
):
    def f(x):
        return 1e6 * jnp.exp(jnp.cos(jnp.tanh(jnp.sin(1e-6 * x))))

    with jax.enable_x64(x64):
        _, found = against(f, X.astype(np.float64) if x64 else X, engine=engine)
        case = found.smallest_case()
        assert max(np.max(abs(x)) for x in (*case.tangents, *case.cotangents)) > 0.5  # not near rounding
        assert [eq.op for eq in case.program.equations] == [op]
        found.save(tmp_path / "case.py")
    assert run(tmp_path / "case.py") == 1
    shown = capsys.readouterr().out
    assert f"= {op} " in shown and f"{engine} {'failed' if op == 'cos' else 'disagrees'}" in shown
    assert found.summary in (tmp_path / "case.py").read_text()
    monkeypatch.setitem(ENGINES, engine, ENGINES["jax"])
    assert run(tmp_path / "case.py") == 0


def test_equations_that_are_wrong_together_are_saved_together(engines, tmp_path):
    def f(x):
        return jnp.sqrt(jnp.sin(x) + jnp.exp(x) * x) + 1

    _, found = against(f, X, engine="in-company")
    assert "= sqrt " in found.equation
    assert [eq.op for eq in found.smallest_case().program.equations] == ["exp", "mul", "add", "sqrt"]
    found.save(tmp_path / "case.py")
    assert run(tmp_path / "case.py") == 1


def test_a_file_runs_in_a_process_of_its_own(tmp_path):
    """Rules of the user's own, large constants and NaN are in it."""

    @jax.custom_jvp
    def root(x):
        return jnp.sqrt(x)

    root.defjvp(lambda primals, tangents: (root(primals[0]), tangents[0] / (2 * root(primals[0]))))
    table = jnp.linspace(0.1, 0.9, 80).reshape(20, 4)
    program = pb.trace(lambda x: root(x) @ table.T)(X)
    x = X.copy()
    x[1, 2] = np.nan
    case = Case("jax", program, (x,), (X,), (np.ones((3, 20), np.float32),), 1e-3)
    case.write(tmp_path / "case.py", "why")
    command = [sys.executable, str(tmp_path / "case.py")]
    shown = processes.fine(processes.start_command(command))
    assert shown.endswith("jax agrees\n") and "nan" in shown


def test_what_is_rounding_is_nobodys_equation(engines):
    """A tolerance below JAX's own error."""
    result, found = against(jnp.cos, X, engine="tripled-sine", rtol=1e-12)
    assert result["tripled-sine"].state == "disagrees" and found is None


def test_a_candidate_has_no_program():
    result = pb.compare(jnp.sin, X, engines=["jax"], candidates={"c": jnp.tanh}, repeats=0)
    with pytest.raises(pb.ArgumentError, match="no Program to save"):
        result.first_disagreement("c").save("case.py")
