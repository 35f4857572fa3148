"""equinox: modules are pytrees that hold their own static parts; an LSTM scanned over a sequence; rules that
are told what is differentiated, and the loops that have such rules."""

from __future__ import annotations

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed
from jax import lax
from sameness import assert_same_gradient, both_executes

import pybridge as pb

RNG = np.random.default_rng(6)


class TransformerBlock(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    norms: list[eqx.nn.LayerNorm]
    mlp: eqx.nn.MLP

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(2, 8, key=first)
        self.norms = [eqx.nn.LayerNorm(8), eqx.nn.LayerNorm(8)]
        self.mlp = eqx.nn.MLP(8, 8, 16, depth=1, activation=jax.nn.gelu, key=second)

    def __call__(self, x):
        y = jax.vmap(self.norms[0])(x)
        x = x + self.attention(y, y, y, mask=jnp.tril(jnp.ones((len(x), len(x)), bool)))
        return x + jax.vmap(self.mlp)(jax.vmap(self.norms[1])(x))


@both_executes
def test_transformer_block_over_a_batch(execute):
    params, static = eqx.partition(TransformerBlock(jax.random.key(0)), eqx.is_inexact_array)
    x = jnp.asarray(RNG.standard_normal((3, 5, 8)), jnp.float32)

    def loss(params, x):
        return jnp.mean(jax.vmap(eqx.combine(params, static))(x) ** 2)

    assert_same_gradient(loss, params, x, execute=execute, argnums=(0, 1))


class Recurrent(eqx.Module):
    cell: eqx.nn.LSTMCell
    last: eqx.nn.Linear

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.cell = eqx.nn.LSTMCell(3, 6, key=first)
        self.last = eqx.nn.Linear(6, 2, key=second)

    def __call__(self, xs):
        start = (jnp.zeros(6), jnp.zeros(6))
        (hidden, _), _ = lax.scan(lambda carry, x: (self.cell(x, carry), None), start, xs)
        return self.last(hidden)


@both_executes
def test_lstm(execute):
    params, static = eqx.partition(Recurrent(jax.random.key(1)), eqx.is_inexact_array)
    xs = jnp.asarray(RNG.standard_normal((4, 9, 3)), jnp.float32)

    def loss(params, xs):
        return jnp.mean(jax.nn.log_softmax(jax.vmap(eqx.combine(params, static))(xs))[:, 0])

    assert_same_gradient(loss, params, xs, execute=execute)


# Rules, which are told what is differentiated and refuse the rest


@eqx.filter_custom_vjp
def pulled(xy, n, *, scale):
    x, y = xy
    return jnp.sin(x) * y * n * scale


@pulled.def_fwd
def _pulled_fwd(perturbed, xy, n, *, scale):
    assert perturbed == (True, False)
    return pulled(xy, n, scale=scale), jnp.cos(xy[0])


@pulled.def_bwd
def _pulled_bwd(cosine, ct, perturbed, xy, n, *, scale):
    assert perturbed == (True, False)
    return 3 * cosine * xy[1] * ct * n * scale, None


@eqx.filter_custom_jvp
def pushed(x, y, *, fn):
    return fn(x, y)


@pushed.def_jvp
def _pushed_jvp(primals, tangents, *, fn):
    (x, y), (dx, dy) = primals, tangents
    assert dy is None
    return pushed(x, y, fn=fn), 3 * dx * y


def step(carry):
    k, x = carry
    return k + 1, jnp.sin(x) * 1.5


def loop(kind):
    def run(x):
        until = lambda carry: carry[0] < 5  # noqa: E731
        return eqxi.while_loop(until, step, (0, x), max_steps=8, kind=kind)[1]

    return run


def saved(x):
    """With a buffer that is written to in place."""

    def body(carry):
        k, x, seen = carry
        return k + 1, jnp.tanh(x * 1.2), seen.at[k].set(x)

    start = (0, x, jnp.zeros((4, *x.shape)))
    loop = eqxi.while_loop(
        lambda c: c[0] < 4, body, start, max_steps=4, kind="checkpointed", buffers=lambda c: c[2]
    )
    return loop[1] + loop[2].sum(0)


RULES = {
    "filter_custom_vjp": lambda x: pulled((x, 2.0), jnp.round(x), scale=2.0),
    "filter_custom_jvp": lambda x: pushed(x, jnp.floor(x), fn=lambda x, y: x * y) ** 2,
    "nondifferentiable": lambda x: eqxi.nondifferentiable(jnp.round(x)) * x,
    "checked": lambda x: eqx.error_if(x, x > 1e3, "too large") ** 2,
    "checkpointed loop": loop("checkpointed"),
    "bounded loop": loop("bounded"),
    "checkpointed loop with a buffer": saved,
}


@pytest.mark.parametrize("name", RULES)
def test_rules_and_loops(name, x64):
    f, x, xs = RULES[name], np.array(1.3), np.array([1.3, 0.4, -2.7])
    g = pb.bridge(f)
    mapped = lambda f: lambda xs: jnp.sum(jax.vmap(f)(xs))  # noqa: E731
    derivatives = {
        "grad": (jax.grad, x),
        "vmap of grad": (lambda f: jax.vmap(jax.grad(f)), xs),
        "grad of vmap": (lambda f: jax.grad(mapped(f)), xs),
    }
    if "checkpointed" not in name:  # those have no second derivative
        derivatives["second order"] = (lambda f: jax.grad(jax.grad(f)), x)
    asked = [(derive(h), (at,)) for h in (g, f) for derive, at in derivatives.values()]
    results = computed(*zip(*asked, strict=True))
    for what, found, expected in zip(derivatives, results, results[len(derivatives) :], strict=False):
        assert_agree(found, expected, what)
    assert_agree(jax.grad(mapped(g))(xs), results[2], "grad of vmap, eager")


def test_refusals_are_equinox_own(x64):
    refused = {
        "`filter_custom_vjp`": lambda x: pulled((1.0, 2.0), x, scale=1.0),
        "Something cannot": lambda x: eqxi.nondifferentiable(x, name="Something"),
    }
    for words, f in refused.items():
        bridged = pb.bridge(f)
        assert_agree(bridged(1.3), f(1.3), "value")
        with pytest.raises(RuntimeError, match=words):
            jax.grad(bridged)(1.3)
