"""Batches of which only tangents or cotangents differ: Enzyme takes several at a time.

The results are those of one by one, and JAX's.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree

import pybridge as pb
from pybridge.engines import ENGINES

MISSING = ENGINES["enzyme"].unavailable()
pytestmark = [
    pytest.mark.enzyme,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
    pytest.mark.usefixtures("x64"),
]

bridged = functools.partial(pb.bridge, engine="enzyme")

PASSES = """
module Counting
    const JaxprAD = only(m for (k, m) in Base.loaded_modules if k.name == "JaxprAD")
    passes(x) = x + JaxprAD.PASSES[]
end
"""


@pytest.fixture
def passes():
    """How often Enzyme's code runs while a function does."""
    count = pb.julia_function("Counting.passes", source=PASSES, result=jax.ShapeDtypeStruct((), jnp.int64))

    def during(f, *args):
        before = int(count(0))
        result = jax.block_until_ready(f(*args))
        return result, int(count(0)) - before

    return during


@jax.custom_jvp
def tripled(x):
    """Its rule is wrong by a factor of three, to be seen."""
    return jnp.sin(x)


tripled.defjvp(lambda primals, tangents: (tripled(*primals), 3 * jnp.cos(primals[0]) * tangents[0]))


def elementwise(x):
    return jnp.tanh(x) * jnp.exp(-(x**2)) + jnp.maximum(x, 0.3) * jnp.arctan2(x, 2.0)


def looped(x):
    def step(y, k):
        y = jnp.sin(y) * x + 0.1 * jnp.roll(y, 1) ** k
        return y, y.sum()

    return jax.lax.scan(step, x, jnp.arange(5))


def ruled(x):
    return jax.lax.fori_loop(0, 3, lambda _, y: tripled(y) * x[::-1], x)


def spectrum(x):
    return jnp.fft.rfft(x * x) * (1 + 2j)


def single(x):
    return jnp.cumsum(jnp.log1p(x**2))


def branching(x):
    return jax.lax.cond(x[0] > 0, lambda x: x[1:] * x[0], lambda x: jnp.sort(x)[1:], x)


def large(x):
    return jnp.sin(jnp.outer(jnp.arange(512.0), x)).sum(0)


X = np.array([0.3, -1.2, 0.7, 0.9])
FUNCTIONS = [elementwise, looped, ruled, spectrum, single, branching, large]
every_function = pytest.mark.parametrize(
    "f, x",
    [(f, X.astype(np.float32) if f is single else X) for f in FUNCTIONS],
    ids=lambda a: getattr(a, "__name__", ""),
)


def pull_all(f):
    """Cotangents of a batch, where x is shared."""
    return lambda x, cts: jax.vmap(jax.vjp(f, x)[1])(cts)


def push_all(f):
    return lambda x, dxs: jax.vmap(jax.linearize(f, x)[1])(dxs)


def draws(like, count):
    """So many arrays like this one, of another kind of number if it is complex."""
    random = np.random.default_rng(count)
    real = random.standard_normal((count, *like.shape))
    if jnp.issubdtype(like.dtype, jnp.complexfloating):
        real = real + 1j * random.standard_normal(real.shape)
    return jnp.asarray(real, like.dtype)


def of_item(tree, k):
    return jax.tree.map(lambda a: a[k], tree)


def stacked(items):
    return jax.tree.map(lambda *parts: jnp.stack(parts), *items)


@every_function
@pytest.mark.parametrize("count, needed", [(3, 1), (5, 2)], ids=["one pass", "two that overlap"])
def test_cotangents_together(f, x, count, needed, passes):
    cts = jax.tree.map(lambda y: draws(y, count), f(x))
    found, taken = passes(pull_all(bridged(f)), x, cts)
    assert taken == needed
    pull = jax.vjp(bridged(f), x)[1]
    assert_agree(found, stacked([pull(of_item(cts, k)) for k in range(count)]), "one by one")
    assert_agree(found, pull_all(f)(x, cts), "JAX")


@every_function
def test_tangents_together(f, x, passes):
    dxs = draws(x, 4)
    found, taken = passes(push_all(bridged(f)), x, dxs)
    assert taken == 1
    push = jax.linearize(bridged(f), x)[1]
    assert_agree(found, stacked([push(dx) for dx in dxs]), "one by one")
    assert_agree(found, push_all(f)(x, dxs), "JAX")


@pytest.mark.parametrize("jacobian", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_jacobians(jacobian, jitted, passes):
    def f(x, a):
        return elementwise(x) * a, x @ x

    whole = jacobian(bridged(f), (0, 1))
    found, taken = passes(jax.jit(whole) if jitted else whole, X, 2.0)
    assert taken == 2  # of five rows and columns
    assert_agree(found, jacobian(f, (0, 1))(X, 2.0), "jacobian")


def test_what_is_batched_as_a_whole_runs_one_by_one(passes):
    xs, cts = draws(X, 3), draws(X, 3)
    pull = lambda f: lambda x, ct: jax.vjp(f, x)[1](ct)  # noqa: E731
    found, taken = passes(jax.vmap(pull(bridged(ruled))), xs, cts)
    assert taken == 3
    assert_agree(found, jax.vmap(pull(ruled))(xs, cts), "vmap of both")


def test_jacobians_of_a_batch_take_a_pass_for_each_item(passes):
    """The batch's axes in both orders, and one that the cotangents share."""
    xs = draws(X, 3)
    found, taken = passes(jax.vmap(jax.jacrev(bridged(ruled))), xs)
    assert taken == 3
    assert_agree(found, jax.vmap(jax.jacrev(ruled))(xs), "jacobians")
    cts = draws(X, 4)

    def nest(f):
        return jax.vmap(lambda ct: jax.vmap(lambda x: jax.vjp(f, x)[1](ct))(xs), out_axes=2)

    found, taken = passes(nest(bridged(ruled)), cts)
    assert taken == 3
    assert_agree(found, nest(ruled)(cts), "cotangents outside")


def test_one_direction_and_none(passes):
    for count in (1, 0):
        found, taken = passes(pull_all(bridged(elementwise)), X, draws(X, count))
        assert taken == count
        assert_agree(found, pull_all(elementwise)(X, draws(X, count)), "batch")


def test_shared_tangents_with_batched_ones(passes):
    def push(f):
        return lambda x, das: jax.vmap(lambda da: jax.jvp(f, (x, 2.0), (x, da))[1])(das)

    f = lambda x, a: jnp.sin(x) * a  # noqa: E731
    found, taken = passes(push(bridged(f)), X, jnp.arange(4.0))
    assert taken == 1
    assert_agree(found, push(f)(X, jnp.arange(4.0)), "tangents")


def test_a_derivative_of_a_batch_of_directions():
    def total(f):
        return lambda x, cts: jnp.sum(jax.vmap(jax.vjp(f, x)[1])(cts)[0] ** 2)

    cts = draws(X, 3)
    for argnum in (0, 1):
        found = jax.grad(total(bridged(elementwise)), argnum)(X, cts)
        assert_agree(found, jax.grad(total(elementwise), argnum)(X, cts), "gradient")


def test_a_loop_of_unknown_length(passes):
    def halved(x):
        return jax.lax.while_loop(lambda y: y[0] > 1.0, lambda y: y * jnp.cos(x) / 2, x * x)

    x, trips = np.array([5.0, 0.3]), 0
    y = x * x
    while y[0] > 1:
        y, trips = y * np.cos(x) / 2, trips + 1
    assert trips > 1
    found, taken = passes(jax.jacrev(bridged(halved)), x)
    assert taken == 1
    assert_agree(found, jax.jacrev(lambda x: x * x * (jnp.cos(x) / 2) ** trips)(x), "jacobian")
