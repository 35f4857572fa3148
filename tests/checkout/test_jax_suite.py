"""The runner of JAX's own tests bridges what they differentiate, and sees what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MODULE = """
import jax
import jax.numpy as jnp
from absl.testing import parameterized
from jax import grad
from jax._src import test_util as jtu
from jax.test_util import check_grads

jax.config.parse_flags_with_absl()


@jax.custom_jvp
def sine(x):
    return jnp.sin(x)


@sine.defjvp
def sine_rule(primals, tangents):
    return sine(*primals), 3 * jnp.cos(primals[0]) * tangents[0]


class Derivatives(jtu.JaxTestCase):
    @jtu.sample_product(shape=[(), (3,), (2, 3)])
    def test_sine(self, shape):
        check_grads(jnp.sin, (jtu.rand_default(self.rng())(shape, jnp.float32),), 2)

    def test_names(self):
        self.assertAllClose(grad(jnp.sin)(0.0), jnp.ones(()), check_dtypes=False)
        self.assertAllClose(jax.grad(grad(jnp.sin))(0.0), jnp.zeros(()), check_dtypes=False)

    def test_operations_are_shown(self):
        out, pullback = jax.vjp(lambda x: jnp.dot(x, x, precision="highest"), jnp.ones((2, 2)))
        self.assertIn("Precision.HIGHEST", str(jax.make_jaxpr(pullback)(out)))
        self.assertNotIn("julia_call", str(jax.make_jaxpr(pullback)(out)))

    def test_branch(self):
        def sine(x):
            return jnp.sin(x) if x > 0 else 0 * x

        self.assertAllClose(jax.grad(sine)(1.0), jax.grad(jnp.sin)(1.0))
        with self.assertRaisesRegex(TypeError, "dot_general requires contracting"):
            jax.grad(lambda x: jnp.dot(x, jnp.ones(3)))(jnp.ones(2))

    def test_wrong_rule(self):
        jtu.check_grads(sine, (0.5,), 1)

    def test_not_bridged(self):
        self.assertTrue(callable(jax.grad(jnp.sin)))

    @jtu.sample_product(of=["sin", "cos"])
    def test_of_one(self, of):
        if of == "sin":
            check_grads(jnp.sin, (0.5,), 1)

    def test_of_something_else(self):
        self.assertEqual(jnp.sin(0.0), 0.0)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jax_suite")
    (folder / "sine_test.py").write_text(MODULE)

    def run(execute: str) -> dict:
        results = folder / f"{execute}.json"
        command = [sys.executable, "-m", "tests.jax_suite", str(folder / "sine_test.py"), "--cases", "2"]
        command += ["--execute", execute, "--workers", "0", "--results", str(results)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
        assert done.returncode == 1, done.stdout + done.stderr
        return json.loads(results.read_text())

    return run


@pytest.mark.parametrize("execute", ["xla", "julia"])
def test_what_is_wrong_fails_and_the_rest_passes(run, execute):
    results = run(execute)
    assert (results["passed"], results["failed"], results["skipped"]) == (6, 2, 1), results
    # The rule is wrong without pybridge, too.
    ours, alone = (_named(results[kind]) for kind in ("failures", "failures of JAX alone"))
    assert set(ours) == {"test_not_bridged"} and set(alone) == {"test_wrong_rule"}
    assert results["reasons of skips"] == {"with these parameters it differentiates nothing": 1}
    assert results["Programs"] > 20 and results["unbridged"] == 1
    assert (results.get("kernels", 0) > 5) == (execute == "julia")
    assert "no bridged function was called" in ours["test_not_bridged"]
    assert "Not equal to tolerance" in alone["test_wrong_rule"]


def _named(failures: dict[str, str]) -> dict[str, str]:
    return {name.removeprefix("Derivatives::"): why for name, why in failures.items()}
