"""`verify=True`: wrong derivatives are found before anything is computed with them, right ones are not."""

from __future__ import annotations

import pickle
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb

X = jnp.array([0.3, -1.2, 2.0])


@jax.custom_jvp
def wave(x):
    return jnp.sin(x) * x


wave.defjvp(lambda p, t: (wave(*p), t[0] * jnp.cos(p[0])))  # without sin x


@jax.custom_vjp
def flipped(x):
    return jnp.exp(x)


flipped.defvjp(lambda x: (jnp.exp(x), x), lambda x, u: (-jnp.exp(x) * u,))

TRANSFORMATIONS = {
    "call": lambda f: f(X),
    "jit": lambda f: jax.jit(f)(X),
    "grad": lambda f: jax.grad(f)(X),
    "grad of jit": lambda f: jax.grad(jax.jit(f))(X),
    "jit of grad": lambda f: jax.jit(jax.grad(f))(X),
    "vmap": lambda f: jax.vmap(f)(jnp.stack([X, X])),
    "scan": lambda f: jax.lax.scan(lambda c, x: (c + f(x), None), 0.0, jnp.stack([X, X])),
}


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("rule", [wave, flipped])
def test_a_wrong_rule_is_found_wherever_the_function_is_called(rule, transformation):
    f = pb.bridge(lambda x: jnp.sum(rule(x)), verify=True)
    for _ in range(2):  # it is wrong the next time, too
        with pytest.raises(pb.WrongDerivative, match=r"the VJP of result 0 by args\[0\]"):
            TRANSFORMATIONS[transformation](f)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_right_ones_are_not(transformation):
    right = pb.bridge(lambda x: jnp.sum(jnp.sin(x) * x) + jnp.max(x), verify=True)
    plain = pb.bridge(lambda x: jnp.sum(jnp.sin(x) * x) + jnp.max(x))
    got, expected = (TRANSFORMATIONS[transformation](f) for f in (right, plain))
    jax.tree.map(np.testing.assert_array_equal, got, expected)


@pytest.mark.parametrize("engine", ["transpose", "jax"])
@pytest.mark.parametrize(
    "f, args",
    [
        (lambda x: jax.nn.relu(x), (jnp.array([-1.0, 0.0, 2.0]),)),
        (lambda x: jnp.round(x), (X,)),
        (lambda x: jnp.sqrt(x), (jnp.array([-1.0, 0.0, 2.0]),)),
        (lambda z: (z * z, jnp.abs(z)), (jnp.array([1 + 2j, -3j]),)),
        (lambda x, n: (x**n, n + 1), (X, 3)),
        (lambda x, mask: jnp.where(mask, x, 0), (X, X > 0)),
        (lambda d: {"y": d["a"] @ d["b"]}, ({"a": jnp.eye(3) + X, "b": X},)),
        (lambda x: jnp.exp(x), (X.astype(jnp.float32),)),
        (lambda x: jnp.exp(x), (X.astype(jnp.float16),)),
        (lambda x: 1e-8 * jnp.tanh(1e4 * x), (1e-4 * X,)),
        (lambda n: n + 1, (3,)),
        (lambda x: x[:0], (X,)),
        (lambda key, x: x + jax.random.normal(key, x.shape), (jax.random.key(1), X)),
    ],
)
def test_kinks_and_dtypes_of_all_kinds_pass(f, args, engine):
    pb.bridge(f, engine=engine, verify=True)(*args)


def test_each_array_is_verified_by_itself():
    f = pb.bridge(lambda x, y: (jnp.sum(x) * 1e6, jnp.sum(wave(y["b"]))), verify=True)
    with pytest.raises(pb.WrongDerivative, match=r"of result 1 by args\[1\]\['b'\]"):
        f(X, {"b": X})


def test_functions_of_random_keys_are_verified():
    f = pb.bridge(lambda key, x: wave(x) + jax.random.normal(key, x.shape), verify=True)
    with pytest.raises(pb.WrongDerivative, match=r"by args\[1\]"):
        f(jax.random.key(1), X)
    assert jax.jit(f)(jax.random.key(1), X).shape == X.shape  # which key is not known: docs/bridged.md


def test_derivatives_of_distributions_are_not_those_of_the_numbers_drawn():
    for key in (jax.random.key(3), jax.random.PRNGKey(3)):
        sample = pb.bridge(lambda a, key=key: jax.random.gamma(key, a), verify=True)
        assert jnp.isfinite(jax.grad(lambda a, f=sample: f(a).sum())(jnp.array([0.5, 3.0]))).all()


def test_rules_for_one_mode_alone():
    @jax.custom_vjp
    def right(x):
        return jnp.exp(x)

    right.defvjp(lambda x: (jnp.exp(x), x), lambda x, u: (jnp.exp(x) * u,))
    np.testing.assert_allclose(pb.bridge(right, verify=True)(X), jnp.exp(X), rtol=1e-6)


def test_what_the_error_says():
    f = pb.bridge(wave, engine="jax", verify=True)
    with pytest.raises(pb.WrongDerivative) as caught:
        f(X)
    number = r"-?\d\S*"
    assert re.fullmatch(
        rf"wave, engine='jax', execute='xla', verify=True: the VJP of result 0 by args\[0\] along a random "
        rf"direction is {number}, and difference quotients tend to {number}, at the arguments of this call\. "
        r"pybridge\.check and pybridge\.compare show more; another engine may have it right",
        str(caught.value),
    )
    with pytest.raises(pb.WrongDerivative, match="at random arrays"):
        jax.jit(f)(X)


def test_without_it_nothing_is_compared():
    np.testing.assert_allclose(jax.grad(pb.bridge(lambda x: wave(x).sum()))(X), jnp.cos(X), rtol=1e-6)


def test_a_signature_is_verified_once(monkeypatch):
    seen = []
    monkeypatch.setattr("pybridge.api.bridged.verify", lambda f, arrays, *rest: seen.append(arrays[0].shape))
    f = pb.bridge(lambda x: x * 2, verify=True)
    for x in (X, X, X[:2], X):
        f(x)
        jax.jit(f)(x)
    assert seen == [(3,), (2,)]


def test_closed_over_arrays_are_arguments_too():
    def loss(p):
        return pb.bridge(lambda x: jnp.sum(wave(p) * x), verify=True)(X)

    with pytest.raises(pb.WrongDerivative, match="by constant 0"):
        jax.grad(loss)(X)


def test_symbolic_shapes_are_not_run():
    f = pb.bridge(lambda x: jnp.sum(wave(x)), verify=True)
    (n,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jax.jit(f))(jax.ShapeDtypeStruct((n,), X.dtype))
    np.testing.assert_allclose(exported.call(X), jnp.sum(wave(X)), rtol=1e-6)


def test_a_copy_of_the_settings_verifies():
    f = pickle.loads(pickle.dumps(pb.bridge(wave, verify=True), protocol=4))
    assert "verify=True" in repr(f)


CODE = """
cube(x) = x^3
cube_jvp((x,), (dx,)) = 3x^2 * dx
cube_vjp((x,), ct) = (3x^2 * ct,)
tripled_vjp((x,), ct) = (9x^2 * ct,)
"""


def test_julia_functions():
    right = pb.julia_function("cube", source=CODE, jvp="cube_jvp", vjp="cube_vjp", verify=True)
    assert jax.grad(right)(2.0) == 12
    wrong = pb.julia_function("cube", source=CODE, jvp="cube_jvp", vjp="tripled_vjp", verify=True)
    for call in (wrong, jax.jit(wrong), jax.grad(wrong)):
        with pytest.raises(pb.WrongDerivative, match=r"cube, engine='enzyme': the VJP .* by arguments\[0\]"):
            call(2.0)
    traced = pb.julia_function("cube", source=CODE, engine="transpose", verify=True)
    assert jax.grad(traced)(2.0) == 12
    forward = pb.julia_function("cube", source=CODE, jvp="cube_jvp", verify=True)
    assert forward(2.0) == 8
    assert pickle.loads(pickle.dumps(wrong)).verify
