"""The examples with Julia functions do what they say."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(autouse=True)
def _x64_everywhere():
    """As in the examples: XLA's threads, on which Julia before 1.9 is called, know no `enable_x64`."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)  # reading it gives what holds in this test, not everywhere


def example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_fit(lotka_volterra, engine: str):
    found, first, last = lotka_volterra.fit(engine=engine)
    assert last < 1e-3 * first
    for name, value in lotka_volterra.TRUE.items():
        assert float(found[name]) == pytest.approx(value, rel=0.02)


@pytest.mark.enzyme
def test_a_simulator_fitted_by_optax(enzyme):
    check_fit(example("lotka_volterra"), "enzyme")


def test_a_traced_simulator_fitted_by_optax():
    check_fit(example("lotka_volterra"), "transpose")


def test_a_traced_simulator_runs_from_its_file_without_pybridge_and_julia(tmp_path):
    lotka_volterra = example("lotka_volterra")
    exported = lotka_volterra.exported(("cpu", "cuda", "tpu"))
    assert exported.platforms == ("cpu", "cuda", "tpu")
    assert "custom_call" not in exported.mlir_module()
    paths = [tmp_path / name for name in ("loss.stablehlo", "inputs.npz", "outputs.npz")]
    paths[0].write_bytes(exported.serialize())
    logarithms = np.random.default_rng(8).uniform(-1.2, 0.2, 4)
    np.savez(paths[1], *logarithms)
    env = {k: v for k, v in os.environ.items() if "JULIA" not in k and k != "PYTHONPATH"}
    reload = [sys.executable, str(EXAMPLES / "reload.py"), *map(str, paths)]
    done = subprocess.run(
        reload,
        env=env | {"PATH": "/nowhere", "JAX_ENABLE_X64": "1"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(paths[2]) as outputs:
        given = [outputs[name] for name in outputs.files]
    # by the simulator that Julia runs, and its central differences
    called = lotka_volterra.loss_of("enzyme")
    value = lambda v: called(dict(zip(lotka_volterra.TRUE, v, strict=True)))  # noqa: E731
    quotients = [(value(logarithms + h) - value(logarithms - h)) / 2e-5 for h in 1e-5 * np.eye(4)]
    np.testing.assert_allclose(given[0], value(logarithms), rtol=1e-10)
    np.testing.assert_allclose(given[1:], quotients, rtol=1e-5, atol=1e-7)


def checked_draws(rule: bool):
    nuts = example("nuts")
    draws = nuts.sample(300, rule=rule)
    for name, values in draws.items():
        kept = values[100:]
        assert float(kept.std()) > 0.01
        assert abs(float(kept.mean()) - nuts.TRUE[name]) < 4 * float(kept.std())


def test_a_log_density_with_a_rule_sampled_by_nuts():
    checked_draws(rule=True)


@pytest.mark.enzyme
def test_a_log_density_sampled_by_nuts(enzyme):
    checked_draws(rule=False)


@pytest.mark.enzyme
def test_the_log_densitys_rule_is_enzymes_gradient(enzyme):
    nuts = example("nuts")
    q = {"intercept": 0.3, "slope": -1.0, "log_scale": -0.2}
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10),
        jax.grad(nuts.density(rule=True))(q),
        jax.grad(nuts.density())(q),
    )


@pytest.mark.enzyme
def test_the_norm_leaves_the_loop_before_differentiation(enzyme):
    """Gradients of one loop: linear in n by Enzyme, quadratic where each trip differentiates the norm."""
    normalize = example("normalize")
    n = 128
    x, w = normalize.arguments(n)
    x = x[:3]
    gradients = [normalize.gradient(make(n))(x, w) for make in normalize.LOOPS.values()]
    for found in gradients[:-1]:
        np.testing.assert_allclose(found, gradients[-1], rtol=1e-8, atol=1e-12)

    sizes = (128, 512)
    enzymes, jaxs = (
        [normalize.microseconds(make(n), n, seconds=2) for n in sizes]
        for make in (normalize.by_tuple, normalize.by_jax)
    )
    assert normalize.order(enzymes, sizes) < 1.5 < normalize.order(jaxs, sizes)
    assert enzymes[-1] < jaxs[-1] / 3
