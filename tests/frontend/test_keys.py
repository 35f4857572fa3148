"""Random numbers drawn inside bridged functions: JAX's own, whichever way the key comes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import pybridge as pb
from pybridge.frontend.adapter import registry

X = jnp.linspace(0.5, 2.0, 4)
KEY = jax.random.key(11)


def noisy(key, x):
    return (x * jax.random.normal(key, x.shape)).sum()


@pytest.mark.parametrize("key", [KEY, jax.random.PRNGKey(11)], ids=["typed", "raw"])
@pytest.mark.parametrize("of", [lambda f: f, jax.jit, lambda f: jax.grad(f, 1)], ids=["value", "jit", "grad"])
def test_keys_as_arguments(key, of):
    np.testing.assert_allclose(of(pb.bridge(noisy))(key, X), of(noisy)(key, X), rtol=1e-6)


def test_typed_and_raw_keys_are_traced_apart():
    bridged = pb.bridge(lambda key: jax.random.key_data(jnp.asarray(key)) if key.ndim == 0 else key + 1)
    np.testing.assert_array_equal(bridged(KEY), jax.random.key_data(KEY))
    np.testing.assert_array_equal(bridged(jax.random.key_data(KEY)), jax.random.key_data(KEY) + 1)


def test_keys_come_out_as_keys_and_are_mapped_over():
    def step(key, x):
        key, now = jax.random.split(key)
        return key, x + jax.random.uniform(now)

    key, x = pb.bridge(step)(KEY, 1.0)
    expected, y = step(KEY, 1.0)
    assert key.dtype == KEY.dtype and key == expected and np.isclose(x, y)
    keys = jax.random.split(KEY, 3)
    found, expected = (jax.vmap(f, (0, None))(keys, 1.0) for f in (pb.bridge(step), step))
    assert (found[0] == expected[0]).all()
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)
    assert lax.scan(lambda c, _: (pb.bridge(step)(*c), None), (KEY, 1.0), length=3)[0][0].dtype == KEY.dtype


def test_a_key_of_the_closure():
    np.testing.assert_allclose(pb.bridge(lambda x: noisy(KEY, x))(X), noisy(KEY, X), rtol=1e-6)


@pytest.mark.parametrize(
    "draw",
    [
        lambda k: jax.random.permutation(k, 9),
        lambda k: jax.random.choice(k, 9, (3,), replace=False),
        lambda k: jax.random.bernoulli(k, 0.3, (9,)),
        lambda k: jax.random.randint(k, (9,), -5, 50),
        lambda k: jax.random.categorical(k, jnp.log(X)),
        lambda k: jax.random.bits(k, (5,), "uint8"),
        lambda k: jax.random.poisson(k, 3.0, (4,)),
        lambda k: jax.random.truncated_normal(k, -1.0, 1.0, (5,)),
        lambda k: jax.random.dirichlet(k, X),
    ],
    ids=[
        "permutation",
        "choice",
        "bernoulli",
        "randint",
        "categorical",
        "bits",
        "poisson",
        "truncated",
        "dirichlet",
    ],
)
def test_distributions(draw):
    np.testing.assert_allclose(pb.bridge(draw)(KEY), draw(KEY), rtol=2e-5)


@pytest.mark.parametrize("implementation", ["philox2x32", "philox4x32", "threefry4x32"])
def test_other_generators(implementation):
    if implementation not in registry.primitives():
        pytest.skip(f"JAX {jax.__version__} has no {implementation}")
    key = jax.random.key(3, impl=implementation)
    np.testing.assert_array_equal(
        pb.bridge(lambda k: jax.random.bits(k, (7,)))(key), jax.random.bits(key, (7,))
    )
