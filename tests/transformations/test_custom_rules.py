"""Rules of the user's, wherever they stand and whatever is differentiated: the values of JAX, and no rule is
told of a tangent that JAX would not tell it of."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from rule_cases import KINDS, STRUCTURES, TELLING, XS, KindlyRefused, make

import pybridge as pb

X, Y = np.array([0.3, -0.4, 0.8]), np.array([1.2, 0.5, -0.7])
WEIGHTS = np.array([1.0, -2.0, 0.5])
ARGNUMS = [(0,), (1,), (0, 1)]


def loss(f):
    return lambda x, y: jnp.sum(f(x, y) * WEIGHTS)


def gradient(f, argnums):
    return jax.grad(loss(f), argnums)


def second(f, first: int, then: int):
    """Of the derivative by one argument the derivative by one."""
    return jax.grad(lambda x, y: jnp.sum(gradient(f, first)(x, y) * XS), then)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("kind", KINDS)
def test_first_order(kind, structure, x64):
    for argnums in ARGNUMS:
        f, told = make(kind, structure)
        reference, told_by_jax = make(kind, structure, control=False)
        g = pb.bridge(f)
        assert_agree(g(X, Y), reference(X, Y), f"{kind} {structure}")
        assert not told.seen
        expected = gradient(reference, argnums)(X, Y)
        assert_agree(gradient(g, argnums)(X, Y), expected, f"{kind} {structure} {argnums}")
        if kind in TELLING:
            assert told.union() == told_by_jax.union()


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("kind", KINDS)
def test_second_order(kind, structure, x64):
    """Mixed derivatives too: what was not perturbed at first may be then."""
    for first, then in [(0, 0), (0, 1), (1, 0)]:
        f, told = make(kind, structure)
        reference, told_by_jax = make(kind, structure, control=False)
        expected = second(reference, first, then)(X, Y)
        assert_agree(second(pb.bridge(f), first, then)(X, Y), expected, f"{kind} {structure} {first} {then}")
        if kind in TELLING:
            assert all(map(at_most(told_by_jax.union()), told.seen))


def at_most(allowed):
    return lambda seen: all(may or not is_told for is_told, may in zip(seen, allowed, strict=True))


REFUSALS = [("transpose", s) for s in STRUCTURES] + [
    # The jax engine differentiates what was emitted: no while loop, and a checkpoint's barrier moves all.
    ("jax", s)
    for s in STRUCTURES
    if s not in ("counted", "checkpointed", "nested")
]


@pytest.mark.parametrize("kind", ["jvp_symbolic", "vjp_symbolic"])
@pytest.mark.parametrize("engine, structure", REFUSALS)
def test_a_refusal_is_the_users_own_and_comes_where_jax_meets_it(kind, engine, structure, x64):
    f, rules = make(kind, structure, refused=1)
    reference, _ = make(kind, structure, control=False)
    g = pb.bridge(f, engine=engine)
    assert_agree(jax.jit(g)(X, Y), reference(X, Y), "value")
    assert not rules.seen
    if structure != "scanned":  # where the carry comes to depend on it
        assert_agree(gradient(g, 0)(X, Y), gradient(reference, 0)(X, Y), "gradient")
    for by_y in (gradient(g, 1), gradient(g, (0, 1)), jax.jit(gradient(g, 1))):
        with pytest.raises(KindlyRefused, match="operand 1"):
            by_y(X, Y)
