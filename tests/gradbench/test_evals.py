"""Each eval's outputs are those of its problem written once more, with complex steps for derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import naive
import numpy as np
import pytest

from pybridge.gradbench import NAMES, Tool
from pybridge.gradbench.evals import particle, saddle
from pybridge.gradbench.inputs import Input

TOOL = Tool()
ONCE = {"min_runs": 1, "min_seconds": 0}


def output(module: str, function: str, **fields: Any) -> Any:
    """What the tool sends for an input, whose arrays are lists in JSON."""
    plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in fields.items()}
    return TOOL.evaluate(module, function, Input(plain | ONCE))[0]


def close(actual: Any, expected: Any, rtol: float = 1e-9) -> None:
    expected = np.asarray(expected)
    assert np.shape(actual) == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * np.max(np.abs(expected), initial=0))


@pytest.fixture
def random(request) -> np.random.Generator:
    return np.random.default_rng(sum(map(ord, request.node.name)))


def test_every_eval_has_functions():
    for name in NAMES:
        assert [timing["name"] for timing in TOOL.define(name)] == ["load"]


def test_hello():
    for x in (0.0, -1.5, 3.0):
        assert TOOL.evaluate("hello", "square", Input(x))[0] == x * x
        assert TOOL.evaluate("hello", "double", Input(x))[0] == 2 * x


def test_llsq(random):
    x, n = random.random(7), 20
    close(output("llsq", "primal", x=x, n=n), naive.llsq(x, n))
    close(output("llsq", "gradient", x=x, n=n), naive.gradient(lambda x: naive.llsq(x, n), x))


def test_lse(random):
    x = random.normal(size=30)
    close(output("lse", "primal", x=x), naive.lse(x))
    close(output("lse", "gradient", x=x), naive.gradient(naive.lse, x))
    close(output("lse", "primal", x=x + 1e4), naive.lse(x) + 1e4)  # where its exponentials overflow
    close(output("lse", "gradient", x=x + 1e4), naive.gradient(naive.lse, x), 1e-8)


def test_ode(random):
    x, s = random.random(6), 9
    close(output("ode", "primal", x=x, s=s), naive.ode(x, s))
    close(output("ode", "gradient", x=x, s=s), naive.gradient(lambda x: naive.ode(x, s)[-1], x))


@pytest.mark.parametrize("size", [1, 4, 7])  # 7: above the size up to which all minors are one batch
def test_det(random, size):
    a = random.normal(size=(size, size))
    close(output("det", "primal", A=a.ravel(), ell=size), np.linalg.det(a))
    close(output("det", "gradient", A=a.ravel(), ell=size), naive.gradient(np.linalg.det, a).ravel())


def test_kmeans(random):
    points = random.random((40, 3))
    centroids = points[-5:]
    chosen = np.array(naive.nearest(points, centroids))
    close(
        output("kmeans", "cost", points=points, centroids=centroids),
        np.sum((points - centroids[chosen]) ** 2),
    )
    expected = [c - points[chosen == j].mean(axis=0) for j, c in enumerate(centroids)]
    close(output("kmeans", "dir", points=points, centroids=centroids), expected)


@pytest.mark.parametrize("m", [0, 2])
def test_gmm(random, m):
    d, k, n, gamma = 4, 2, 4, 1.3  # up to d = 3 elements by columns are in the order of those by rows
    parameters = {
        "alpha": random.normal(size=k),
        "mu": random.random((k, d)),
        "q": random.normal(size=(k, d)),
        "l": random.normal(size=(k, d * (d - 1) // 2)),
    }
    x = random.normal(size=(n, d))
    fields = {"d": d, "k": k, "n": n, "x": x, "m": m, "gamma": gamma, **parameters}
    close(output("gmm", "objective", **fields), naive.gmm(*parameters.values(), x, m, gamma))
    sent = output("gmm", "jacobian", **fields)
    assert sent.keys() == parameters.keys()
    for name, value in parameters.items():

        def of_one(value, name=name):
            return naive.gmm(*(parameters | {name: value}).values(), x, m, gamma)

        close(sent[name], naive.gradient(of_one, value))


def test_lstm(random):
    layers, bits, length = 2, 3, 5
    main, extra = random.random((2 * layers, 4 * bits)), random.random((3, bits))
    state, sequence = random.random((2 * layers, bits)), random.integers(0, 2, (length, bits)).astype(float)
    fields = {"main_params": main, "extra_params": extra, "state": state, "sequence": sequence}
    close(output("lstm", "objective", **fields), naive.lstm(main, extra, state, sequence))
    of_main = naive.gradient(lambda a: naive.lstm(a, extra, state, sequence), main)
    of_extra = naive.gradient(lambda a: naive.lstm(main, a, state, sequence), extra)
    close(output("lstm", "jacobian", **fields), np.concatenate([of_main.ravel(), of_extra.ravel()]))


@pytest.mark.parametrize("still", [False, True])
def test_ba(random, still):
    """The Jacobian that is sent is as a dense one: its first two rows, its last, and where rows begin."""
    n, m, p = 3, 5, 12
    camera, point, weight, feature = random.random(11), random.random(3), 0.7, random.random(2)
    camera[5] -= 5  # the point is before the camera
    camera[:3] *= not still
    fields = {"n": n, "m": m, "p": p, "cam": camera, "x": point, "w": weight, "feat": feature}
    sent = output("ba", "objective", **fields)
    close(sent["reproj_error"]["elements"], naive.reprojection(camera, point, weight, feature))
    close(sent["w_err"]["element"], 1 - weight**2)
    assert sent["reproj_error"]["repeated"] == sent["w_err"]["repeated"] == p

    def error(all_of_them):
        return naive.reprojection(all_of_them[:11], all_of_them[11:14], all_of_them[14], feature)

    blocks = naive.derivative(error, np.r_[camera, point, weight])
    sent = output("ba", "jacobian", **fields)
    close(sent["vals"], [*blocks.ravel(), -2 * weight])
    columns = [*range(11), *range(11 * n, 11 * n + 3), 11 * n + 3 * m]
    assert sent["cols"] == [*columns, *columns, 11 * n + 3 * m + p - 1]
    starts = [*range(0, 15 * 2 * p + 1, 15), *range(15 * 2 * p + 1, 15 * 2 * p + p + 1)]
    assert sent["rows"] == [*starts[:30], starts[-1]]


def hand_data(random, measured: int) -> dict[str, Any]:
    bones, vertices = 22, 6
    relatives = np.tile(np.eye(4), (bones, 1, 1))
    relatives[:, :3, :] += 0.3 * random.normal(size=(bones, 3, 4))
    model = {
        "bone_count": bones,
        "bone_names": [f"bone{k}" for k in range(bones)],
        "parents": [-1, 0, *(1 if k % 4 == 2 else k - 1 for k in range(2, bones))],
        "base_relatives": relatives.tolist(),
        "inverse_base_absolutes": random.normal(size=(bones, 4, 4)).tolist(),
        "base_positions": np.c_[random.normal(size=(vertices, 3)), np.ones(vertices)].tolist(),
        "weights": random.dirichlet(np.ones(bones), vertices).tolist(),
        "triangles": [[0, 1, 2], [3, 2, 1], [5, 0, 4]],
        "is_mirrored": True,
    }
    return {"model": model, "points": random.normal(size=(measured, 3)).tolist()}


@pytest.mark.parametrize("kind", ["vertices", "triangles", "still"])
def test_ht(random, kind):
    measured = 4
    theta = 0.5 * random.normal(size=26)
    theta[:3] *= kind != "still"
    us = random.random((measured, 2)) if kind == "triangles" else np.zeros((0, 2))
    data = hand_data(random, measured)
    bound = 3 if kind == "triangles" else 6
    data["correspondences"] = random.integers(0, bound, measured).tolist()
    fields = {"theta": theta, "us": us.tolist(), "data": data}
    close(output("ht", "objective", **fields), naive.hand(theta, us, data))
    expected = naive.derivative(lambda t: naive.hand(t, us, data), theta)
    if kind == "still":  # a rotation of less than 1e-4 is none, and has no derivative
        expected[:, :3] = 0
    if kind == "triangles":
        whole = naive.derivative(lambda u: naive.hand(theta, u, data), us)
        own = whole.reshape(measured, 3, measured, 2)[np.arange(measured), :, np.arange(measured)]
        expected = np.c_[own.reshape(-1, 2), expected]
    close(output("ht", "jacobian", **fields), expected)


@pytest.fixture(scope="module")
def control() -> float:
    (w,) = naive.descend(lambda w: naive.flight(w[0]), np.array([0.1]))
    assert naive.flight(w) < 1e-7  # the particle does come to the origin
    return w


@pytest.mark.parametrize("modes", ["ff", "fr", "rf", "rr"])
def test_particle(modes, control):
    close(output("particle", modes, w=0.1), control, 1e-8)


SADDLE_START = np.array([1.5, -0.7])


@pytest.fixture(scope="module")
def saddle_point() -> np.ndarray:
    def f(x, y):
        return x @ x - y @ y

    def highest(x):
        return naive.descend(lambda y: -f(x, y), SADDLE_START)

    x = naive.descend(lambda x: f(x, highest(x.real)), SADDLE_START)
    return np.concatenate([x, highest(x)])


@pytest.mark.parametrize("modes", ["ff", "fr", "rf", "rr"])
def test_saddle(modes, saddle_point):
    close(output("saddle", modes, start=SADDLE_START), saddle_point, 1e-8)


def reverse_only(f: Callable) -> Callable:
    """f, which JAX refuses to differentiate in forward mode."""

    @jax.custom_vjp
    def guarded(*x):
        return f(*x)

    guarded.defvjp(lambda *x: (f(*x), x), lambda x, _: tuple(map(jnp.zeros_like, x)))
    return guarded


@pytest.mark.parametrize("modes", ["ff", "fr", "rf", "rr"])
@pytest.mark.parametrize(
    ("module", "bridged", "letter"),
    [(particle, "potential", 1), (particle, "miss", 0), (saddle, "ridge", 0)],
    ids=["the force", "the descent to w", "the descent to x"],
)
def test_the_letters_of_a_name_are_modes(module, bridged, letter, modes):
    functions = module.functions(lambda f: reverse_only(f) if f.__name__ == bridged else f)
    lower = jax.jit(functions[modes].compute).lower
    start = jnp.ones(2) if module is saddle else jnp.ones(())
    if modes[letter] == "r":
        lower(start)
    else:
        with pytest.raises((TypeError, NotImplementedError), match=r"forward-mode|custom_lin"):
            lower(start)
