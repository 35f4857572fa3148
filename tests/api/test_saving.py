"""`pb.save` and `pb.load`: what was traced runs after it as before."""

from __future__ import annotations

import collections
from dataclasses import dataclass

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb

WEIGHTS = np.random.default_rng(0).normal(size=(6, 20)).astype(np.float32)


@pytest.fixture
def saved(tmp_path):
    return lambda program: (pb.save(tmp_path / "f.pybridge", program), pb.load(tmp_path / "f.pybridge"))[1]


def model(p, x, *, scale=1.0):
    """A scan, a cond, a while loop and a rule of the user's, with arrays of theirs and of the function's."""
    hidden = jnp.tanh(x @ WEIGHTS + p["b"][0])
    last, sums = jax.lax.scan(lambda c, _: (jnp.sin(c) + WEIGHTS[0] * c, c.sum()), hidden, length=3)
    chosen = jax.lax.cond(x[0] > 0, lambda y: WEIGHTS @ y, lambda y: y[:6] + WEIGHTS[:, 1], last)
    _, grown = jax.lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 0.9 + WEIGHTS[1]), (0, last)
    )
    return {"y": (chosen * scale, None), "sums": [sums, squares(grown)]}


@jax.custom_jvp
def squares(x):
    return (x**2 * WEIGHTS[2]).sum()


squares.defjvp(lambda x, t: (squares(*x), (3 * x[0] * WEIGHTS[2] * t[0]).sum()))  # of its own: 3, not 2

ARGUMENTS = ({"b": (np.full(20, 0.1, np.float32),)}, np.linspace(0.1, 1, 6, dtype=np.float32))


def total(y):
    return sum(part.sum() for part in jax.tree.leaves(y))


def test_a_traced_function_runs_as_before(saved):
    program = pb.trace(model)(*ARGUMENTS, scale=np.float32(2))
    again = saved(program)
    assert again == program and again.structure == program.structure and str(again) == str(program)
    expected = model(*ARGUMENTS, scale=np.float32(2))
    for run in (again.call, again.to_jax(), jax.jit(again.to_jax())):
        found = run(*ARGUMENTS, scale=np.float32(2))
        assert jax.tree.structure(found) == jax.tree.structure(expected)
        for y, z in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(y, z, rtol=2e-5, atol=1e-6)


def test_its_derivatives_are_those_of_before_with_the_users_rules(saved):
    forward = pb.trace(lambda x: total(model(ARGUMENTS[0], x)["sums"]))(ARGUMENTS[1])
    again = saved(forward)
    tangent = np.ones(6, np.float32)
    for made, original in ((again.jvp(), forward.jvp()), (again.jvp().jvp(), forward.jvp().jvp())):
        assert made == original
    _, slope = again.jvp().call(ARGUMENTS[1], tangent)
    _, expected = jax.jvp(lambda x: total(model(ARGUMENTS[0], x)["sums"]), (ARGUMENTS[1],), (tangent,))
    np.testing.assert_allclose(slope, expected, rtol=1e-4)


def test_derivatives_are_saved_too(saved):
    f = lambda x: jnp.sum(jnp.sin(x @ WEIGHTS))  # noqa: E731
    gradient = saved(pb.trace(f)(ARGUMENTS[1]).vjp().optimize())
    assert str(gradient) == str(pb.trace(f)(ARGUMENTS[1]).vjp().optimize())
    (found,) = gradient.call(ARGUMENTS[1], np.float32(1))
    np.testing.assert_allclose(found, jax.grad(f)(ARGUMENTS[1]), rtol=1e-5)


def test_derivatives_keep_names_and_groups(saved):
    scale = np.float32(2)
    program = pb.trace(model)(*ARGUMENTS, scale=scale).jvp(active=["p", "scale"])
    again = saved(program)
    assert again == program and again.structure == program.structure and str(again) == str(program)
    dots = {"b": (np.ones(20, np.float32),)}, np.float32(1)
    (y, y_dot), expected = (
        again.call(*ARGUMENTS, dots[0], scale=scale, scale_dot=dots[1]),
        jax.jvp(lambda p, scale: model(p, ARGUMENTS[1], scale=scale), (ARGUMENTS[0], scale), dots),
    )
    assert jax.tree.structure((y, y_dot)) == jax.tree.structure(expected)
    for found, right in zip(jax.tree.leaves((y, y_dot)), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(found, right, rtol=2e-4, atol=1e-5)
    assert saved(again.jvp(active="p_dot['b']")).input_names[-1] == "p_dot_dot['b'][0]"


def test_sizes_that_are_open_stay_open(saved):
    (b,) = jax.export.symbolic_shape("b")
    program = pb.trace(lambda x: jnp.tanh(x @ WEIGHTS).sum(0))(jax.ShapeDtypeStruct((b, 6), np.float32))
    again = saved(program)
    for n in (1, 5):
        x = np.full((n, 6), 0.1, np.float32)
        np.testing.assert_allclose(again.to_jax()(x), np.tanh(x @ WEIGHTS).sum(0), rtol=1e-5)


def test_exports(saved):
    again = saved(pb.trace(lambda x: x @ WEIGHTS)(ARGUMENTS[1]))
    np.testing.assert_allclose(
        pb.export(again, ["cpu"])().call(ARGUMENTS[1])[0], ARGUMENTS[1] @ WEIGHTS, rtol=1e-5
    )


Point = collections.namedtuple("Point", "x y")
jax.export.register_namedtuple_serialization(Point, serialized_name="pybridge.tests.Point")


@jax.tree_util.register_dataclass
@dataclass
class Unnamed:
    x: jax.Array


@dataclass
class Rate:
    value: jax.Array
    unit: str


jax.tree_util.register_pytree_node(
    Rate, lambda r: ((r.value,), r.unit), lambda unit, parts: Rate(*parts, unit)
)
jax.export.register_pytree_node_serialization(
    Rate,
    serialized_name="pybridge.tests.Rate",
    serialize_auxdata=str.encode,
    deserialize_auxdata=lambda b: bytes(b).decode(),
)


def test_classes_with_a_name_in_files(saved):
    again = saved(pb.trace(lambda p, r: (Point(p.y, [p.x]), r))(Point(1.0, 2.0), Rate(np.float32(3), "1/s")))
    point, rate = again.call(Point(1.0, 2.0), Rate(np.float32(3), "1/s"))
    assert isinstance(point, Point) and point.x == 2 and rate.unit == "1/s" and rate.value == 3
    with pytest.raises(pb.ArgumentError, match="structure"):
        again.call(Point(1.0, 2.0), Rate(np.float32(3), "m"))


def test_classes_without_one_are_refused(tmp_path):
    program = pb.trace(lambda u: u.x)(Unnamed(jnp.ones(2)))
    with pytest.raises(
        pb.ArchiveError, match=r"f\.pybridge: Unnamed is a class .*register_pytree_node_serialization"
    ):
        pb.save(tmp_path / "f.pybridge", program)
    assert not list(tmp_path.iterdir())


def test_names_that_no_class_has_here(tmp_path, monkeypatch):
    from pybridge.frontend.adapter import internals

    pb.save(tmp_path / "f.pybridge", pb.trace(lambda p: p.x)(Point(1.0, 2.0)))
    monkeypatch.delitem(internals.node_readers, "pybridge.tests.Point")
    with pytest.raises(pb.ArchiveError, match=r"f\.pybridge: .*'pybridge\.tests\.Point'.* register"):
        pb.load(tmp_path / "f.pybridge")


@pytest.mark.parametrize("keys", [["a", "ß", "😀", "key with spaces"], [3, -1, 2], []])
def test_keys_of_dicts(keys, saved):
    xs = {key: np.float32(i) for i, key in enumerate(keys)}
    again = saved(pb.trace(lambda d: {key: 2 * v for key, v in d.items()})(xs))
    assert again.call(xs) == {key: 2 * v for key, v in xs.items()}


def test_keys_of_other_kinds_are_refused(tmp_path):
    program = pb.trace(lambda d: d[(1, 2)])({(1, 2): 1.0})
    with pytest.raises(pb.ArchiveError, match=r"words for keys, or numbers: not \(1, 2\)"):
        pb.save(tmp_path / "f.pybridge", program)


def test_what_is_no_program(tmp_path):
    with pytest.raises(pb.ArgumentError, match="save writes a Program"):
        pb.save(tmp_path / "f.pybridge", jnp.sin)


def test_types_are_checked(tmp_path):
    from pybridge.ir import archive, parser

    wrong = parser.parse("pybridge 1\nprogram f(%0: f32[2]) {\n  %1: f32[3] = sin %0\n  return %1\n}\n")
    archive.write(tmp_path / "f.pybridge", wrong, None)
    with pytest.raises(pb.ArchiveError, match=r"f\.pybridge: .*declares f32\[3\]"):
        pb.load(tmp_path / "f.pybridge")


def test_structures_that_nest_too_deep(saved, tmp_path):
    x = np.float32(2)
    for _ in range(99):
        x = [x]
    assert saved(pb.trace(lambda x: x)(x)).call(x) == x
    with pytest.raises(pb.ArchiveError, match=r"f\.pybridge: .*100 deep"):
        pb.save(tmp_path / "f.pybridge", pb.trace(lambda x: x)([x]))
