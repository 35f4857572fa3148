"""Rules of the user's, wherever they stand and whatever is differentiated: the values of JAX, and no rule is
told of a tangent that JAX would not tell it of."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed
from covering import covering
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


def pairs(turn):
    """Each structure with a kind that is told what is perturbed and with another; after a turn others."""
    others = [kind for kind in KINDS if kind not in TELLING]
    turned = [[*kinds[turn:], *kinds[:turn]] for kinds in (TELLING, others)]
    return [pair for kinds in turned for pair in covering(STRUCTURES, kinds, least=1)]


@pytest.mark.parametrize(("structure", "kind"), pairs(turn=0))
def test_first_order(kind, structure, x64):
    ours = [make(kind, structure) for _ in ARGNUMS]
    theirs = [make(kind, structure, control=False) for _ in ARGNUMS]

    def in_jax(argnums, f):
        return lambda x, y: (f(x, y), gradient(f, argnums)(x, y))

    def bridged(argnums, f, told):
        g = pb.bridge(f)

        def both(x, y):
            value = g(x, y)
            assert not told.seen
            return value, gradient(g, argnums)(x, y)

        return both

    programs = [bridged(n, *f) for n, f in zip(ARGNUMS, ours, strict=True)]
    programs += [in_jax(n, f) for n, (f, _) in zip(ARGNUMS, theirs, strict=True)]
    results = computed(programs, [(X, Y)] * len(programs))
    for k, argnums in enumerate(ARGNUMS):
        assert_agree(results[k], results[k + len(ARGNUMS)], f"{kind} {structure} {argnums}")
        if kind in TELLING:
            assert ours[k][1].union() == theirs[k][1].union()


@pytest.mark.parametrize(("structure", "kind"), pairs(turn=1))
def test_second_order(kind, structure, x64):
    """Mixed derivatives too: what was not perturbed at first may be then."""
    orders = [(0, 0), (0, 1), (1, 0)]
    ours = [make(kind, structure) for _ in orders]
    theirs = [make(kind, structure, control=False) for _ in orders]
    # XLA runs the same Programs, and nothing is to be compiled.
    functions = [pb.bridge(f, execute="xla") for f, _ in ours] + [f for f, _ in theirs]
    programs = [second(f, *order) for f, order in zip(functions, orders * 2, strict=True)]
    results = computed(programs, [(X, Y)] * len(programs))
    for k, order in enumerate(orders):
        assert_agree(results[k], results[k + len(orders)], f"{kind} {structure} {order}")
        if kind in TELLING:
            assert all(map(at_most(theirs[k][1].union()), ours[k][1].seen))


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
