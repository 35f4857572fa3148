"""Files of every version load: those in `tests/archives`, which Python and Julia have written."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from casekit import QUICK, computed

import pybridge as pb
from pybridge.frontend.adapter import internals
from pybridge.ir import archive

FOLDER = Path(__file__).parents[1] / "archives"
sys.path.insert(0, str(FOLDER))
import write_v1 as v1  # noqa: E402

FILES = sorted(path for path in FOLDER.glob("v*/*.pybridge"))


Oscillator = v1.collections.namedtuple("Oscillator", "rate damping")


@pytest.fixture(autouse=True)
def registered(x64):
    """The class that the files have of JAX's side, and one that stands for a struct of Julia's."""
    for kind, name in ((v1.Window, v1.WINDOW_NAME), (Oscillator, "Oscillator")):
        if name not in internals.node_readers:
            jax.export.register_namedtuple_serialization(kind, serialized_name=name)


def _version(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[8:12], "little")


def _loaded(name: str, version: int = 1) -> pb.Program:
    return pb.load(FOLDER / f"v{version}" / f"{name}.pybridge")


def test_there_are_files_of_every_version():
    assert {_version(path) for path in FILES} == set(range(1, archive.VERSION + 1)) and len(FILES) >= 11


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_file_is_written_as_it_was(path, tmp_path):
    before = archive.read(path)
    archive.write(tmp_path / "again", *before)
    again = tmp_path / "again"
    assert archive.read(again) == before
    assert _version(path) < archive.VERSION or again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_file_loads(path, tmp_path):
    program = pb.load(path)
    pb.save(tmp_path / "again", program)
    again = pb.load(tmp_path / "again")
    assert again == program and again.structure == program.structure


def _close(found, expected, rtol=1e-12):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for y, z in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(y, z, rtol=rtol, atol=1e-13)


def test_the_model_of_jax():
    (p, x), keywords = v1.model_arguments()
    expected = v1.model(p, x, **keywords)
    for version in (1, 2):
        program = _loaded("jax-model", version)
        _close(program.call(p, x, **keywords), expected)
        _close(jax.jit(program.to_jax())(p, x, **keywords), expected)
    reference = _loaded("jax-model-reference").call()
    _close(reference["value"], expected)


@functools.cache
def _loss_reference():
    return jax.jit(v1.loss_reference, compiler_options=QUICK)()


def test_derivatives_of_the_loss_of_jax():
    program, reference = _loaded("jax-loss"), _loaded("jax-loss-reference").call()
    _close(reference, _loss_reference())
    x, v, w = (reference[name] for name in "xvw")
    gradient = program.vjp().optimize()
    _close(gradient.call(x, np.float64(1))[0], reference["gradient"])
    _close(_loaded("jax-vjp").call(x, np.float64(1))[0], reference["gradient"])
    product = gradient.jvp(active={0})
    _close(product.call(x, np.float64(1), v)[1][0], reference["hvp"], 1e-11)
    third = product.jvp(active={0})
    _close(third.call(x, np.float64(1), v, w)[-1][-1][0], reference["third"], 1e-10)


def test_derivatives_have_their_names_and_groups():
    (p, x), keywords = v1.model_arguments()
    dots = np.cos(np.arange(6.0)).reshape(2, 3), np.float64(0.5)
    found = _loaded("jax-model-jvp", 2).call(p, x, dots[0], **keywords, scale_dot=dots[1])
    f = lambda x, scale: v1.model(p, x, scale=scale)  # noqa: E731
    (expected,) = computed([lambda *x: jax.jvp(f, x[:2], x[2:])], [(x, keywords["scale"], *dots)])
    _close(found, expected, 1e-11)
    reference, product = _loss_reference(), _loaded("jax-hvp", 2)
    (gradient,), (hvp,) = product.call(reference["x"], x_dot=reference["v"], ct=np.float64(1))
    _close((gradient, hvp), (reference["gradient"], reference["hvp"]), 1e-11)
    assert product.input_names == ("x", "ct", "x_dot")
    assert product.output_names == ("x_bar", "x_bar_dot")


def test_a_derivative_by_a_part_of_a_class_of_the_users():
    window, x = v1.Window(np.float64(-0.5), np.float64(0.5)), np.linspace(-1, 1, 4)
    vjp = _loaded("jax-windowed-vjp", 2)
    value, (bar, none) = vjp.call(window, x, v1.windowed(window, x))
    _close(value, v1.windowed(window, x))
    assert isinstance(bar, v1.Window) and bar.high is none is None
    pull = jax.vjp(lambda low: v1.windowed(v1.Window(low, window.high), x), window.low)[1]
    _close(bar.low, pull(jax.tree.map(jnp.asarray, v1.windowed(window, x)))[0])
    assert vjp.output_names[-1] == "w_bar.low"


def test_names_of_arguments_of_a_function_of_julias():
    slope = _loaded("julia-slope", 2)
    assert slope.input_names == ("o.rate", "o.damping", "x")
    o, x = Oscillator(1.5, 0.25), np.linspace(-1, 1, 10)
    expected = jax.grad(lambda o: _energy(*o, x)["energy"])(Oscillator(1.5, 0.25))
    _close(slope.call(x=x, o=o), expected, 1e-11)
    assert _loaded("julia-energy").input_names == ("x0.rate", "x0.damping", "x1")


def test_sizes_that_are_open():
    program = _loaded("jax-sizes")
    for n in (1, 2, 5):
        x = np.sin(np.arange(3.0 * n)).reshape(n, 3)
        _close(program.to_jax()(x), v1.sizes(x))


def test_a_class_of_the_users():
    window, x = v1.Window(np.float64(-0.5), np.float64(0.5)), np.linspace(-1, 1, 4)
    found = _loaded("jax-windowed").call(window, x)
    assert isinstance(found, v1.Window)
    _close(found, v1.windowed(window, x))


@pytest.mark.parametrize("name", ["jax-dtypes", "julia-dtypes"])
def test_every_bit_of_every_dtype(name):
    found = {str(y.dtype): y for y in jax.tree.leaves(_loaded(name).call())}
    assert len(found) == len(v1.DTYPES)
    for dtype in v1.DTYPES:
        expected = v1.patterned(dtype)
        y = found[str(expected.dtype)]
        assert y.shape == (7, 11) and y.tobytes() == expected.tobytes()


TABLE = np.sin(np.arange(1.0, 121.0)).reshape(10, 12)


def _energy(rate, damping, x):
    """That of `write_v1.jl`, in JAX: there arrays have the other order of indices."""
    for _ in range(3):
        x = x + 0.1 * (rate * x[::-1] - damping * x**3)
    z = x @ TABLE
    total, path = jax.lax.scan(lambda s, v: (s + jnp.sin(v) * s / 2, s), jnp.ones(()), z)
    return {"energy": (z**2).sum() + total, "note": None, "path": path, "steps": 3}


def test_what_julia_traced_and_its_derivatives():
    program, x = _loaded("julia-energy"), np.linspace(-1, 1, 10)
    found = program.call(Oscillator(1.5, 0.25), x)
    _close(found, _energy(1.5, 0.25, x))
    run = program.to_jax()
    for order in (jax.grad, lambda f: jax.grad(lambda x: (jax.grad(f)(x) ** 2).sum())):
        slopes = (
            order(lambda x: run(Oscillator(1.5, 0.25), x)["energy"]),
            order(lambda x: _energy(1.5, 0.25, x)["energy"]),
        )
        _close(*computed(slopes, [(x,)] * 2), 1e-11)
    ct = {"energy": np.float64(1), "note": None, "path": np.zeros(12), "steps": None}
    by_oscillator, by_x = program.vjp(active={0, 1, 2}).call(Oscillator(1.5, 0.25), x, ct)
    rate, damping = by_oscillator
    (expected,) = computed([jax.grad(lambda *a: _energy(*a)["energy"], (0, 1, 2))], [(1.5, 0.25, x)])
    _close((rate, damping, by_x), expected, 1e-11)
    exported = pb.export(program, ["cpu"])()
    _close(exported.call(1.5, 0.25, x)[0], found["energy"])


def test_trees_of_julias():
    tree, matrix = _loaded("julia-tree"), np.array([[4.0, 6.0], [5.0, 7.0]])
    first, (number, named) = tree.call({"a": (3.0, matrix), "b": np.array([1.0, 2.0])})
    np.testing.assert_array_equal(first, [1, 2])
    assert number == 3 and set(named) == {"c"}
    np.testing.assert_array_equal(named["c"], matrix)
