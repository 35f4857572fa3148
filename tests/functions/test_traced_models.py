"""Whole models in Julia under engine="transpose", against the same models written in JAX."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import processes
import pytest
from casekit import QUICK, computed
from covering import covering
from jax.flatten_util import ravel_pytree

import pybridge as pb

SOURCE = Path(__file__).parent / "models.jl"


def mixture(logits, means, logscales, x):
    z = (x[:, None] - means) / jnp.exp(logscales)
    terms = jax.nn.log_softmax(logits) - logscales.sum(1) - 0.5 * (z**2).sum(2)
    return jax.nn.logsumexp(terms, axis=1).sum() - 0.5 * x.size * jnp.log(2 * jnp.pi)


def misfit(p, start, observed):
    def force(u):
        return jnp.stack([u[1], p["mu"] * (1 - u[0] ** 2) * u[1] - p["stiffness"] * jnp.sin(u[0])])

    def step(u, _):
        h = p["step"]
        k1 = force(u)
        k2 = force(u + h / 2 * k1)
        k3 = force(u + h / 2 * k2)
        k4 = force(u + h * k3)
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return u, u

    _, path = jax.lax.scan(step, start, None, length=observed.shape[0])
    return jnp.mean((path - observed) ** 2)


def network(p, x, targets):
    hidden = jnp.tanh(x @ p["first"]["weights"] + p["first"]["bias"])
    scores = hidden @ p["second"]["weights"] + p["second"]["bias"]
    return -(targets * jax.nn.log_softmax(scores)).sum(1).mean()


@dataclass(frozen=True)
class Model:
    """name: of the function in both languages. arguments: from a generator of random numbers."""

    name: str
    arguments: Any

    @property
    def julia(self):
        return pb.julia_function(self.name, source=SOURCE, engine="transpose")

    @property
    def jax(self):
        return globals()[self.name]

    def generated(self, seed: int):
        return jax.tree.map(jnp.asarray, self.arguments(np.random.default_rng([seed, len(self.name)])))


def _layer(rng, inputs, outputs):
    return {"weights": rng.normal(size=(inputs, outputs)), "bias": rng.normal(size=outputs)}


MODELS = [
    Model(
        "mixture",
        lambda r: (
            r.normal(size=3),
            r.normal(size=(3, 2)),
            0.3 * r.normal(size=(3, 2)),
            r.normal(size=(15, 2)),
        ),
    ),
    Model(
        "misfit",
        lambda r: (
            {"mu": r.uniform(0.5, 2), "stiffness": r.uniform(0.5, 2), "step": r.uniform(0.02, 0.1)},
            r.normal(size=2),
            r.normal(size=(40, 2)),
        ),
    ),
    Model(
        "network",
        lambda r: (
            {"first": _layer(r, 4, 8), "second": _layer(r, 8, 3)},
            r.normal(size=(20, 4)),
            r.dirichlet(np.ones(3), size=20),
        ),
    ),
]


def assert_near(given, wanted, rtol=1e-9):
    given, wanted = ravel_pytree(given)[0], ravel_pytree(wanted)[0]
    np.testing.assert_allclose(given, wanted, rtol=rtol, atol=rtol * float(jnp.abs(wanted).max()))


def along(x, seed=5):
    flat, unravel = ravel_pytree(x)
    return unravel(np.random.default_rng(seed).normal(size=flat.shape))


def derivatives(f, x, v):
    """The value of a function of one tree, and its derivatives along v."""

    def slope(x):
        return jnp.vdot(ravel_pytree(jax.grad(f)(x))[0], ravel_pytree(v)[0])

    return {
        "value": f(x),
        "gradient": jax.grad(f)(x),
        "JVP": jax.jvp(f, (x,), (v,))[1],
        "HVP": jax.jvp(jax.grad(f), (x,), (v,))[1],
        "reverse over reverse": jax.grad(slope)(x),
    }


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_value_gradient_and_second_derivative(model):
    ours, theirs = (
        jax.jit(lambda x, v, f=f: derivatives(lambda x: f(*x), x, v), compiler_options=QUICK)
        for f in (model.julia, model.jax)
    )
    for seed in range(3):
        x = model.generated(seed)
        found, wanted = ours(x, along(x)), theirs(x, along(x))
        for name in wanted:
            assert_near(found[name], wanted[name])


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_single_precision(model):
    x = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), model.generated(7))
    with jax.enable_x64(False):
        (value, gradient), wanted = (
            jax.jit(jax.value_and_grad(lambda x, f=f: f(*x)), compiler_options=QUICK)(x)
            for f in (model.julia, model.jax)
        )
    assert {y.dtype for y in jax.tree.leaves((value, gradient))} == {jnp.dtype(jnp.float32)}
    assert_near((value, gradient), wanted, rtol=3e-4)


def summed(f, rows):
    return jax.lax.scan(lambda s, row: (s + f(row), s), 0.0, rows)[0]


TRANSFORMS = {
    "vmap of grad": lambda f: lambda x, rows: jax.jit(jax.vmap(jax.grad(f)))(rows),
    "grad of vmap": lambda f: lambda x, rows: jax.grad(lambda rows: jax.vmap(f)(rows).sum())(rows),
    "checkpoint": lambda f: lambda x, rows: jax.grad(jax.checkpoint(f))(x),
    "map": lambda f: lambda x, rows: jax.lax.map(f, rows),
    "scan": lambda f: lambda x, rows: jax.grad(lambda x: summed(f, rows) * f(x))(x),
    "cond": lambda f: lambda x, rows: jax.grad(lambda x: jax.lax.cond(f(x) > -1e9, f, lambda x: 0.0, x))(x),
    "linearize": lambda f: lambda x, rows: jax.linearize(f, x)[1](along(x)),
}
COVERED = covering([model.name for model in MODELS], TRANSFORMS, least=1)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_batches_checkpoints_and_loops(model):
    x = model.generated(11)
    rows = jax.tree.map(lambda leaf: jnp.stack([leaf, 1.1 * leaf, 0.9 * leaf]), x)
    ours, theirs = (lambda x, f=f: f(*x) for f in (model.julia, model.jax))
    assert_near(jax.vmap(ours)(rows), jax.vmap(theirs)(rows))
    transforms = [TRANSFORMS[name] for of, name in COVERED if of == model.name]
    found, wanted = (
        computed([transform(f) for transform in transforms], [(x, rows)] * len(transforms))
        for f in (ours, theirs)
    )
    for y, z in zip(found, wanted, strict=True):
        assert_near(y, z)


def test_hessian_and_jacobians():
    x = MODELS[1].generated(2)
    transforms = (jax.hessian, lambda f: jax.jacfwd(jax.grad(f)), lambda f: jax.jacrev(jax.jacfwd(f)))
    found, wanted = (
        computed([transform(f) for transform in transforms], [x] * len(transforms))
        for f in (MODELS[1].julia, misfit)
    )
    for y, z in zip(found, wanted, strict=True):
        assert_near(y, z)


def test_bridged_it_runs_in_julias_kernels():
    """`bridge` takes what it has become like any code of JAX's."""
    x = MODELS[1].generated(3)
    native = pb.bridge(MODELS[1].julia, execute="julia")
    wanted = jax.jit(jax.value_and_grad(misfit), compiler_options=QUICK)(*x)
    assert_near(jax.jit(jax.value_and_grad(native))(*x), wanted)


AGAIN = """
import sys, json
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
import pybridge as pb
from pybridge.runtime import julia
f = pb.julia_function("misfit", source=sys.argv[1], engine="transpose")
p = {"mu": 1.0, "stiffness": 1.5, "step": 0.05}
both = jax.jit(jax.value_and_grad(f), compiler_options=json.loads(sys.argv[2]))
value, gradient = both(p, np.ones(2), np.zeros((40, 2)))
print(json.dumps([float(value), float(gradient["mu"]), julia.status().started]))
"""


def test_a_second_process_needs_no_julia(tmp_path):
    """As long as the source is self-contained; one that includes another file is read again."""

    def again(source):
        arguments = str(source), json.dumps(QUICK)
        return json.loads(processes.run_imported(AGAIN, *arguments, PYBRIDGE_CACHE=str(tmp_path / "cache")))

    first, second = again(SOURCE), again(SOURCE)
    assert first[:2] == second[:2] and first[2] and not second[2]
    (tmp_path / "inner.jl").write_text(SOURCE.read_text())
    outer = tmp_path / "outer.jl"
    outer.write_text('include("inner.jl")\n')
    assert again(outer)[:2] == first[:2]
    (tmp_path / "inner.jl").write_text(SOURCE.read_text().replace("sum(abs2, path", "2sum(abs2, path"))
    assert again(outer)[0] == pytest.approx(2 * first[0])
