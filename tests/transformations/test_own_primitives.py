"""Primitives that users define with `jax.experimental.hijax` keep their derivative rules.

The rules are wrong by a factor, so that one sees that they ran, and which of them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed
from jax import lax
from jax.experimental import hijax

import pybridge as pb

RNG = np.random.default_rng(67)
X = jnp.asarray(RNG.uniform(-1, 1, (3,)), jnp.float32)
V = jnp.asarray(RNG.uniform(-1, 1, (3,)), jnp.float32)
Primitive = getattr(hijax, "HiPrim", None) or hijax.VJPHiPrimitive  # the name until JAX 0.10


class Own(Primitive):
    """Of arrays of one type, elementwise."""

    def __init__(self, *avals):
        self.in_avals = avals
        self.out_aval = avals[0]
        self.params = {}
        super().__init__()

    def batch(self, axis_data, args, dims):
        moved = [
            jnp.broadcast_to(x, (axis_data.size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
            for x, d in zip(args, dims, strict=True)
        ]
        return type(self)(*map(jax.typeof, moved))(*moved), 0


def is_zero(tangent):
    return isinstance(tangent, hijax.Zero) if hasattr(hijax, "Zero") else type(tangent).__name__ == "Zero"


class Product(Own):
    """sin(x) y, with nothing but its value."""

    def expand(self, x, y):
        return jnp.sin(x) * y


class Forward(Product):
    def jvp(self, primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        terms = [] if is_zero(dx) else [3 * jnp.cos(x) * y * dx]
        terms += [] if is_zero(dy) else [2 * jnp.sin(x) * dy]
        return self(x, y), sum(terms)


class Linearized(Product):
    def lin(self, perturbed, x, y):
        return self(x, y), (x, y)

    def linearized(self, residuals, dx, dy):
        x, y = residuals
        terms = [] if is_zero(dx) else [3 * jnp.cos(x) * y * dx]
        terms += [] if is_zero(dy) else [2 * jnp.sin(x) * dy]
        return sum(terms)


class Reverse(Product):
    def vjp_fwd(self, perturbed, x, y):
        return self(x, y), (x, {"y": y})

    def vjp_bwd_retval(self, residuals, cotangent):
        x, y = residuals[0], residuals[1]["y"]
        return 5 * jnp.cos(x) * y * cotangent, 7 * jnp.sin(x) * cotangent


class Accumulating(Product):
    def vjp_fwd(self, perturbed, x, y):
        return self(x, y), (x, y)

    def vjp_bwd(self, residuals, cotangent, x_sum, y_sum):
        x, y = residuals
        x_sum.accum(5 * jnp.cos(x) * y * cotangent)
        y_sum.accum(7 * jnp.sin(x) * cotangent)


class Both(Forward, Reverse):
    """3 and 2 in forward mode, 5 and 7 in reverse mode."""


class Alike(Forward):
    """The same factors in both modes, as of a function with that derivative."""

    def vjp_fwd(self, perturbed, x, y):
        return self(x, y), (x, y)

    def vjp_bwd_retval(self, residuals, cotangent):
        x, y = residuals
        return 3 * jnp.cos(x) * y * cotangent, 2 * jnp.sin(x) * cotangent


class Scaled(Own):
    """x y, linear in either; the transpose in x is wrong by a factor of three."""

    def expand(self, x, y):
        return x * y

    def jvp(self, primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        terms = [] if is_zero(dx) else [self(dx, y)]
        terms += [] if is_zero(dy) else [self(x, dy)]
        return self(x, y), sum(terms)

    def transpose(self, cotangent, x, y):
        if hasattr(x, "accum"):
            x.accum(3 * cotangent * y)
        else:
            y.accum(cotangent * x)


class Times(Scaled):
    def vjp_fwd(self, perturbed, x, y):
        return self(x, y), (x, y)

    def vjp_bwd_retval(self, residuals, cotangent):
        x, y = residuals
        return 3 * cotangent * y, cotangent * x


class Unfinished(Reverse):
    def jvp(self, primals, tangents):
        raise NotImplementedError("forward mode")


class Valueless(Own):
    pass


class Keyed(Primitive):
    """A dictionary to a pair, one part of which is an integer."""

    def __init__(self, aval):
        self.in_avals = ({"a": aval, "n": jax.typeof(jnp.int32(0))},)
        self.out_aval = (aval, jax.typeof(jnp.int32(0)))
        self.params = {}
        super().__init__()

    def expand(self, given):
        return given["a"] * given["n"], given["n"] + 1

    def vjp_fwd(self, perturbed, given):
        assert not perturbed[0]["n"]
        return self(given), given["n"]

    def vjp_bwd(self, n, cotangents, sums):
        sums["a"].accum(3 * n * cotangents[0])


def everywhere(cls, checkpoint=jax.checkpoint):
    """The primitive in all that a function may be in."""

    def f(x, y):
        return cls(jax.typeof(x), jax.typeof(y))(x, y)

    def everything(x):
        scan = lax.scan(lambda c, k: (f(c, x) + k * c, jnp.sum(c)), x, jnp.arange(3.0, dtype=x.dtype))
        return {
            "plain": f(x, x * x),
            "scan": scan,
            "checkpoint": checkpoint(lambda x: jnp.sin(f(jnp.sin(x), x)))(x),
            "vmap": jax.vmap(f, in_axes=(0, None))(jnp.outer(x, x), x),
            "cond": lax.cond(x[0] > 0, lambda: f(x, 2 * x), lambda: f(2 * x, x)),
            "jit": jax.jit(f)(x, jnp.cos(x)),
        }

    return everything


def loss(f):
    return lambda x: sum(jnp.sum(jnp.tanh(y)) for y in jax.tree.leaves(f(x)))


def inlined(f):
    return f


# JAX differentiates what is in a checkpoint by `jvp`, whatever the class has for reverse mode.
REVERSE = [Reverse, Accumulating, Both, Times]


@pytest.mark.parametrize("cls", REVERSE)
def test_rules_of_reverse_mode(cls):
    functions = *(pb.bridge(everywhere(cls), execute=e) for e in ("julia", "xla")), everywhere(cls, inlined)
    both = [lambda x, f=f: (f(x), jax.grad(loss(f))(x)) for f in functions]
    *found, expected = computed(both, [(X,)] * 3)
    for ours in found:
        assert_agree(ours, expected, "value and gradient")


@pytest.mark.parametrize("cls", [Forward, Linearized, Both, Times])
def test_rules_of_forward_mode(cls):
    f, g = everywhere(cls), pb.bridge(everywhere(cls))

    def in_jax(x, v):
        if cls is Linearized:  # JAX has no JVP of this class
            return f(x), jax.linearize(everywhere(cls, checkpoint=inlined), x)[1](v)
        return jax.jvp(f, (x,), (v,))

    found, expected = computed([lambda x, v: jax.jvp(g, (x,), (v,)), in_jax], [(X, V)] * 2)
    assert_agree(found, expected, "jvp")


def single(cls):
    return lambda x: cls(jax.typeof(x), jax.typeof(x))(x, x * x)


def reverse_over_reverse(f):
    return jax.grad(lambda x: jnp.vdot(jax.grad(loss(f))(x), V))(X)


def forward_over_reverse(f):
    return jax.jvp(jax.grad(loss(f)), (X,), (V,))[1]


def reverse_over_forward(f):
    return jax.grad(lambda x: jax.jvp(loss(f), (x,), (V,))[1])(X)


@pytest.mark.parametrize("cls", [Reverse, Alike])
def test_second_order(cls):
    f, g = single(cls), pb.bridge(single(cls))
    assert_agree(reverse_over_reverse(g), reverse_over_reverse(f), "reverse over reverse")
    if cls is not Reverse:
        assert_agree(forward_over_reverse(g), forward_over_reverse(f), "forward over reverse")
        assert_agree(reverse_over_forward(g), reverse_over_forward(f), "reverse over forward")


@pytest.mark.parametrize("cls", [Reverse, Both, Times])
def test_batches_of_bridged_functions(cls):
    f, g = single(cls), pb.bridge(single(cls))
    batch = jnp.stack([X, V])
    for made in (lambda f: f, lambda f: jax.grad(loss(f))):
        assert_agree(jax.vmap(made(g))(batch), jax.vmap(made(f))(batch), "vmap")
        assert_agree(pb.bridge(jax.vmap(made(f)))(batch), jax.vmap(made(f))(batch), "a bridged vmap")


def test_a_class_without_rules_has_the_derivatives_of_its_value():
    def plain(x):
        return jnp.sin(x) * x * x

    g = pb.bridge(single(Product))
    assert_agree(jax.grad(loss(g))(X), jax.grad(loss(plain))(X), "gradient")
    assert_agree(forward_over_reverse(g), forward_over_reverse(plain), "second order")


def test_trees_and_integers():
    def f(x):
        y, n = Keyed(jax.typeof(x))({"a": x, "n": jnp.int32(2)})
        return jnp.sin(y) * n

    g = pb.bridge(f)
    assert_agree(jax.value_and_grad(loss(g))(X), jax.value_and_grad(loss(f))(X), "gradient")


def test_a_transpose_is_kept():
    """Of a primitive that is linear in one operand, and so occurs in its own derivative."""
    f, g = jax.checkpoint(single(Scaled)), pb.bridge(single(Scaled))  # JAX transposes what is in a checkpoint
    assert_agree(jax.jvp(g, (X,), (V,)), jax.jvp(f, (X,), (V,)), "jvp")
    assert_agree(jax.vjp(g, X)[1](V), jax.vjp(f, X)[1](V), "transpose")
    assert not np.allclose(jax.vjp(f, X)[1](V)[0], 3 * X**2 * V)
    assert_agree(jax.vmap(jax.grad(loss(g)))(X[None]), jax.grad(loss(f))(X)[None], "vmap")


def test_methods_that_are_not_implemented_do_not_count():
    g = pb.bridge(single(Unfinished))
    assert_agree(jax.grad(loss(g))(X), jax.grad(loss(single(Reverse)))(X), "gradient")


def test_a_class_without_a_value_is_refused_by_name():
    with pytest.raises(pb.UnsupportedPrimitive, match=r"Valueless.*expand"):
        pb.trace(single(Valueless))(X)
