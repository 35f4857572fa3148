"""Values of types that users define, which no Program can hold: JAX binds what makes and takes them."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import pytest
from agreement import assert_agree
from jax import lax
from jax.experimental import hijax
from test_own_primitives import Primitive

import pybridge as pb

X = jnp.asarray(0.3, jnp.float32)


@dataclass(frozen=True)
class Pair:
    first: jax.Array
    second: jax.Array


@dataclass(frozen=True)
class PairType(hijax.HiType):
    aval: jax.core.ShapedArray

    def lo_ty(self):
        return [self.aval, self.aval]

    def lower_val(self, pair):
        return [pair.first, pair.second]

    def raise_val(self, first, second):
        return Pair(first, second)

    def to_tangent_aval(self):
        return self

    def vspace_zero(self):
        zero = jnp.zeros(self.aval.shape, self.aval.dtype)
        return Pair(zero, zero)

    def vspace_add(self, x, y):
        return Added(jax.typeof(x))(x, y)

    def str_short(self, *_, **__):
        return f"Pair[{self.aval.str_short()}]"


hijax.register_hitype(Pair, lambda pair: PairType(jax.typeof(pair.first)))


class Linear(Primitive):
    """`matrix` is what it does to a pair or a number, `back` the class of its transpose."""

    def __init__(self, aval):
        self.in_avals = (aval,)
        self.out_aval = self.result(aval)
        self.params = {}
        super().__init__()

    def vjp_fwd(self, perturbed, x):
        return self(x), None

    def vjp_bwd_retval(self, _, cotangent):
        return (self.back()(jax.typeof(cotangent))(cotangent),)

    def jvp(self, primals, tangents):
        return self(*primals), self(*tangents)


class Made(Linear):
    """x to (x, 2 x)."""

    result = PairType

    def expand(self, x):
        return Pair(x, 2 * x)

    def back(self):
        return Taken


class Taken(Linear):
    """(a, b) to a + 2 b."""

    def result(self, aval):
        return aval.aval

    def expand(self, pair):
        return pair.first + 2 * pair.second

    def back(self):
        return Made


class Added(Primitive):
    def __init__(self, aval):
        self.in_avals = (aval, aval)
        self.out_aval = aval
        self.params = {}
        super().__init__()

    def expand(self, x, y):
        return Pair(x.first + y.first, x.second + y.second)

    def vjp_fwd(self, perturbed, x, y):
        return self(x, y), None

    def vjp_bwd_retval(self, _, cotangent):
        return cotangent, cotangent


def made(x):
    return Made(jax.typeof(x))(x)


def taken(pair):
    return Taken(jax.typeof(pair))(pair)


def plain(x):
    pair = made(jnp.tanh(x))
    return jnp.sin(taken(pair)) * taken(pair) * x


def in_a_loop(x):
    def step(c, k):
        return jnp.sin(taken(made(c))) * k, taken(made(c * k))

    last, ys = lax.scan(step, x, jnp.arange(1.0, 4.0))
    return last + ys.sum()


def carried(x):
    last, _ = lax.scan(lambda pair, k: (made(jnp.sin(taken(pair)) * k), None), made(x), jnp.arange(1.0, 4.0))
    return jnp.cos(taken(last))


def across_a_call(x):
    return taken(jax.jit(lambda pair: made(jnp.sin(taken(pair))))(made(x)))


@pytest.mark.parametrize("f", [plain, in_a_loop, carried, across_a_call])
def test_value_and_gradient(f):
    if f is carried and jax.__version_info__ < (0, 11):
        pytest.skip("until JAX 0.11 its scans carry arrays alone")
    g = pb.bridge(f)
    expected = jax.grad(f)(X)
    assert_agree(g(X), f(X), "value")
    assert_agree(jax.grad(g)(X), expected, "gradient")
    if f is not across_a_call or jax.__version_info__ >= (0, 11):  # until then JAX fails on zeros from a call
        assert_agree(jax.jit(jax.grad(g))(X), expected, "in jit")
    assert_agree(jax.grad(jax.grad(g))(X), jax.grad(jax.grad(f))(X), "second order")


def test_the_rest_is_in_programs():
    jaxpr = str(jax.make_jaxpr(pb.bridge(plain))(X))
    assert jaxpr.count("julia_call") == 2 and "sin" not in jaxpr.replace("%", "").split("program plain")[0]


def test_as_argument_or_in_a_program_they_are_refused():
    with pytest.raises(pb.PyBridgeError, match="Pair"):
        pb.bridge(taken)(made(X))
    with pytest.raises(pb.UnsupportedPrimitive, match=r"Made.*no array"):
        pb.trace(plain)(X)
