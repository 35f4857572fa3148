"""`mixed`: the asked error is kept, at the example's arguments and around them, and what must stay stays."""

from __future__ import annotations

import json
import math
import time

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from cases import DIFFERENTIABLE
from jax import lax
from typer.testing import CliRunner

import pybridge as pb
from benchmarks.mixed import kalman
from benchmarks.rows.adbench import mixture
from pybridge.cli.app import app
from pybridge.comparison._mixed._narrowing import narrowed

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def in_64_bits(x64):
    pass


def error_of(made, right):
    """The largest, relative to the largest magnitude of the same leaf."""
    pairs = list(zip(jax.tree.leaves(made), jax.tree.leaves(right), strict=True))
    assert all(a.dtype == b.dtype and a.shape == b.shape for a, b in pairs)
    return max(float(np.max(abs(a - b)) / np.max(abs(b))) for a, b in pairs)


def around(args, scale=1e-3):
    return jax.tree.map(lambda x: x * (1 + scale * RNG.uniform(-1, 1, np.shape(x))), args)


def kept(made, f, args, error):
    """Under jit, at the arguments and near them."""
    run, right = jax.jit(made), jax.jit(f)
    return all(error_of(run(*xs), right(*xs)) <= error for xs in (args, around(args), around(args)))


# What is chosen


def cancelling(x):
    far = x + 1e6
    near = far - 1e6
    return near * jnp.sin(x) + jnp.exp(-x * x)


def test_what_cancels_stays_and_the_rest_does_not():
    made = pb.mixed(cancelling, error=1e-5)(0.3)
    assert [k.op for k in made.report.kept] == ["add", "sub"]
    assert [line.endswith("(cancelling)") for line in made.report.lines] == [True, True]
    assert made.report.narrow == made.report.total - 2
    assert kept(made, cancelling, (0.3,), 1e-5)
    for x in (0.3, 0.2997):
        exact = mpmath.mpf(x) * mpmath.sin(x) + mpmath.exp(-(mpmath.mpf(x) ** 2))
        assert abs(mpmath.mpf(float(made(x))) - exact) <= 1e-5 * exact


def test_a_smaller_error_keeps_more():
    x = RNG.uniform(0.5, 2, 20)

    def f(x):
        y = jnp.exp(jnp.sin(x) * 3)
        return jnp.sum(y) / jnp.sum(x * x) + 1e-6 * jnp.sum(jnp.tanh(x) * jnp.cos(3 * x))

    narrow = []
    for error in (1e-4, 1e-9, 1e-14):
        made = pb.mixed(f, error=error)(x)
        assert kept(made, f, (x,), error) and made.report.bound <= error
        narrow.append(made.report.narrow)
    assert narrow[0] > narrow[1] >= 1 and narrow[2] == 0, narrow


def test_float32s_range():
    made = pb.mixed(
        lambda x: jnp.log(jnp.exp(x * 100.0)) + jnp.exp(-x * 100.0) * jnp.exp(x * 90.0), error=1e-4
    )
    made = made(2.0)
    assert any("no such numbers" in k.reason for k in made.report.kept)
    assert abs(made(2.0) - 200) <= 2e-2


def test_masks_with_infinities_narrow():
    def f(x):
        return jax.nn.softmax(jnp.where(x > 0, x, -jnp.inf)) @ jnp.exp(jnp.sin(x))

    x = RNG.standard_normal(50)
    made = pb.mixed(f, error=1e-4)(x)
    assert made.report.narrow >= 5 and kept(made, f, (x,), 1e-4)


def test_absolute_errors():
    f = lambda x: jnp.sin(jnp.exp(x)) * 1e-9  # noqa: E731
    assert pb.mixed(f, error=1e-12)(0.4).report.narrow == 0
    assert pb.mixed(f, error=1e-12, absolute=1e-14)(0.4).report.narrow >= 2


# Loops, branches, rules


def test_a_loops_carry_has_one_precision():
    def f(x, a):
        def step(c, y):
            return (c[0] * 0.5 + jnp.sin(c[0] * y) @ a, c[1] + y), jnp.cos(c[0]).sum()

        (c, total), ys = lax.scan(step, (jnp.full(3, 0.1), 1e5 * x[0]), x)
        return c.sum() + ys.sum() + (total - 1e5 * x[0])

    args = RNG.uniform(0.5, 1, 50), 0.2 * RNG.standard_normal((3, 3))
    made = pb.mixed(f, error=1e-5)(*args)
    scan = next(eq for eq in made.program.equations if eq.op == "scan")
    carries = [scan.attrs["body"].inputs[scan.attrs["consts"] + i].type.dtype for i in range(2)]
    assert carries == ["f32", "f64"]
    assert kept(made, f, args, 1e-5)


def test_what_ends_a_while_loop_stays():
    def root(a, x):
        def step(s):
            new = (s[0] + a / s[0]) / 2
            return new, abs(new - s[0])

        found = lax.while_loop(lambda s: s[1] > 1e-13, step, (x, jnp.ones(())))[0]
        return jnp.sin(found) * jnp.exp(-found)

    made = pb.mixed(root, error=1e-5)(2.0, 1.0)
    assert {k.reason for k in made.report.kept if "step" in k.source} == {"it ends a loop"}
    assert made.report.narrow >= 3 and kept(made, root, (2.0, 1.0), 1e-5)


def test_while_loops_that_count():
    def power(a, x):
        return lax.while_loop(lambda s: s[1] < 30, lambda s: (jnp.cos(a @ s[0]), s[1] + 1), (x, 0))[0]

    args = 0.3 * RNG.standard_normal((4, 4)), RNG.standard_normal(4)
    made = pb.mixed(power, error=1e-3)(*args)
    assert made.report.narrow == 2 and kept(made, power, args, 1e-3)


def test_branches():
    def f(x, flag):
        y = lax.cond(flag > 0, lambda x: jnp.exp(jnp.sin(x)), lambda x: jnp.log(jnp.cos(x) + 2), x)
        return lax.cond(x.sum() > -1e3, lambda y: jnp.tanh(y) * 2, lambda y: y, y)

    x = RNG.standard_normal(30)
    made = pb.mixed(f, error=1e-4)(x, 1.0)
    assert {k.place[0] for k in made.report.kept if k.reason == "it did not run"} == {"branch 0"}
    assert made.report.narrow >= 3 and kept(lambda x: made(x, 1.0), lambda x: f(x, 1.0), (x,), 1e-4)
    assert error_of(made(x, -1.0), f(x, -1.0)) <= 1e-4


def test_what_only_decides_stays():
    def f(x, k):
        place = jnp.floor(x * 10).astype(int)
        return jnp.exp(jnp.sin(k))[place]

    k = RNG.standard_normal(20)
    made = pb.mixed(f, error=1e-4)(0.3 + 1e-12, k)
    assert {(e.op, e.reason) for e in made.report.kept} >= {("mul", "it decides"), ("floor", "it decides")}
    assert made(0.3 + 1e-12, k) == pytest.approx(float(f(0.3 + 1e-12, k)), rel=1e-4)


@jax.custom_vjp
def doubled(x):
    return jnp.sinh(x) * jnp.cos(x)


doubled.defvjp(lambda x: (doubled(x), x), lambda x, ct: (3.0 * ct * jnp.cos(x),))


@jax.custom_jvp
def soft(x):
    return jnp.log1p(jnp.exp(x))


soft.defjvp(lambda primals, tangents: (soft(*primals), 5.0 * tangents[0] * jax.nn.sigmoid(*primals)))


@pytest.mark.parametrize("rule", [doubled, soft])
def test_rules_of_ones_own_are_kept(rule):
    f = lambda x: jnp.sum(rule(jnp.sin(x)) * jnp.exp(x))  # noqa: E731
    x = RNG.standard_normal(40)
    made = pb.mixed(f, error=1e-4)(x)
    assert made.report.narrow == made.report.total and kept(made, f, (x,), 1e-4)
    assert error_of(jax.jit(jax.grad(made))(x), jax.grad(f)(x)) <= 1e-3


def test_vmap_inside():
    f = jax.vmap(lambda a, b: jnp.tanh(a @ b).sum())
    args = RNG.standard_normal((5, 3, 3)), RNG.standard_normal((5, 3))
    made = pb.mixed(f, error=1e-4)(*args)
    assert made.report.narrow > made.report.total / 2 and kept(made, f, args, 1e-4)


def test_vmap_outside_and_linear_solves():
    def f(a, b):
        return jnp.linalg.solve(a + 4 * jnp.eye(3), jnp.tanh(b)).sum()

    args = RNG.standard_normal((5, 3, 3)), RNG.standard_normal((5, 3))
    one = pb.mixed(f, error=1e-4)(args[0][0], args[1][0])
    assert any(
        eq.op == "custom_linear_solve" and eq.outputs[0].type.dtype == "f32" for eq in one.program.equations
    )
    assert error_of(jax.vmap(one)(*args), jax.vmap(f)(*args)) <= 1e-3


# Programs


def _everything(program):
    inputs = {v.id for v in program.inputs}
    return lambda path, var: bool(path) or var.id not in inputs


# Numbers made of bits have as many as their type.
OF_64_BITS = (
    "bitcast",
    "nextafter",
    "reduce_prec",
    "threefry",
    "program_unsafe_rbg",
    "program_rbg",
    "random",
)
NARROWABLE = [
    case
    for case in DIFFERENTIABLE
    if case.name.endswith(("/f64", "/c128")) and not case.name.startswith(OF_64_BITS)
]


@pytest.mark.parametrize("case", NARROWABLE[3::29], ids=str)
def test_every_primitive_narrows(case):
    with case.context():
        inputs = case.inputs()
        program = pb.trace(case.f)(*inputs)
        made = narrowed(program, _everything(program))
        assert made.input_types == program.input_types and made.output_types == program.output_types
        assert pb.parse(made.to_text()) == made
        for y, right in zip(made.to_jax()(*inputs), program.to_jax()(*inputs), strict=True):
            assert np.allclose(
                y, right, rtol=1e-4, atol=1e-4 * np.nanmax(abs(right), initial=0), equal_nan=True
            )


@pytest.mark.parametrize(("model", "error"), [(mixture, 1e-5), (kalman, 1e-5)])
def test_models(model, error):
    f, args = model(True)
    made = pb.mixed(f, error=error)(*args)
    assert made.report.bound <= error and kept(made, f, args, error)
    assert made.report.narrow > made.report.total / 2


def test_values_and_gradients():
    both = jax.value_and_grad(lambda w, x: jnp.sum(jnp.tanh(w @ x) ** 2))
    args = RNG.standard_normal((4, 4)), RNG.standard_normal(4)
    made = pb.mixed(both, error=1e-5)(*args)
    assert made.report.narrow > made.report.total / 2 and kept(made, both, args, 1e-5)


def test_ten_thousand_equations_in_seconds():
    def f(x):
        for i in range(2500):
            x = jnp.sin(x) * 0.9 + x * (0.1 + 1e-6 * i)
        return x.sum()

    stages: list[str] = []
    start = time.process_time()
    made = pb.mixed(f, error=1e-4, progress=stages.append)(np.linspace(0, 1, 4))
    assert made.report.total > 9_000 and made.report.narrow > 1000
    assert time.process_time() - start < 60 and len(stages) >= 5


# The function and its report


def test_it_is_a_function_like_any_other():
    def f(params, *, scale):
        return {"y": jnp.tanh(params["w"] @ params["x"]) * scale, "n": jnp.arange(3)}

    params = {"w": RNG.standard_normal((3, 3)), "x": RNG.standard_normal(3)}
    made = pb.mixed(f, error=1e-4)(params, scale=2.0)
    assert made.__name__ == "f" and jax.tree.structure(made(params, scale=2.0)) == jax.tree.structure(
        f(params, scale=2.0)
    )
    exported = jax.export.export(jax.jit(made))(params, scale=jnp.asarray(2.0))
    assert exported.call(params, scale=jnp.asarray(2.0))["y"].dtype == np.float64
    with pytest.raises(pb.ArgumentError):
        made({"w": params["w"]}, scale=2.0)
    assert "equations in 32 bits" in repr(made)


def test_bridged_functions_and_static_arguments():
    power = pb.bridge(lambda x, n: jnp.sin(x) ** n, static_argnums=1)
    made = pb.mixed(power, error=1e-4)(0.5, 3)
    assert made(0.5, 3) == pytest.approx(math.sin(0.5) ** 3, rel=1e-4)
    with pytest.raises(pb.ArgumentError, match="static"):
        made(0.5, 2)
    ours = pb.bridge(made, execute="julia")
    assert ours(0.5, 3) == pytest.approx(math.sin(0.5) ** 3, rel=1e-4)


def test_reports(tmp_path):
    report = pb.mixed(cancelling, error=1e-5)(0.3).report
    assert "stays in 64 bits" in str(report) and "cancelling" in report._repr_html_()
    assert json.loads(report.to_json())["narrow"] == report.narrow
    report.to_html(tmp_path / "a.html")
    report.save_json(tmp_path / "a.json")
    assert "<html" in (tmp_path / "a.html").read_text() and (tmp_path / "a.json").stat().st_size
    assert len(repr(report)) < 120


# Refusals


def test_what_64_bits_do_not_keep():
    with pytest.raises(pb.PrecisionUnreachable, match=r"even in 64 bits.*pb\.blame") as raised:
        pb.mixed(cancelling, error=1e-14)(0.3)
    assert 1e-12 < raised.value.bound < 1e-9 and raised.value.error == 1e-14


@pytest.mark.parametrize("argument", [np.float32(1.5), 3])
def test_nothing_in_64_bits(argument):
    with pytest.raises(pb.ArgumentError, match="nothing in 64 bits"):
        pb.mixed(lambda x: x * 2, error=1e-4)(argument)


@pytest.mark.parametrize(
    "options", [{"error": 0.0}, {"error": "1"}, {"error": 2}, {"error": 1e-3, "absolute": -1}]
)
def test_options(options):
    with pytest.raises(pb.UnknownOption):
        pb.mixed(jnp.sin, **options)


def test_command(tmp_path):
    file = tmp_path / "m.py"
    file.write_text("import jax.numpy as jnp\ndef f(x):\n    return jnp.sin(x) * jnp.exp(x)\n")
    archive, page = tmp_path / "f.pbz", tmp_path / "f.html"
    words = ["mixed", f"{file}:f", "f64[3]", "--error", "1e-4", "-o", str(archive), "--html", str(page)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0 and "equations in 32 bits" in result.output, result.output
    assert "f32" in str(pb.load(archive)) and page.stat().st_size
    refused = CliRunner().invoke(app, ["mixed", f"{file}:f", "f64[3]", "--error", "1e-17"])
    assert refused.exit_code == 1
