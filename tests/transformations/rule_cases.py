"""Functions with derivative rules of the user's, and what they are nested in.

Every rule is wrong by a factor, so that one sees that it ran, and records which operands it was told are
perturbed. A structure has a twin without control flow: inside loops and checkpoints JAX forgets custom_jvp
rules before second derivatives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

SymbolicZero = jax.custom_derivatives.SymbolicZero
XS = np.array([0.9, 1.1, 0.7])


@dataclass
class Rules:
    """What the rules of one function were told; `refused` is an operand that they refuse."""

    seen: list[tuple[bool, ...]] = field(default_factory=list)
    refused: int | None = None

    def told(self, perturbed) -> tuple[bool, ...]:
        perturbed = tuple(map(bool, perturbed))
        self.seen.append(perturbed)
        if self.refused is not None and perturbed[self.refused]:
            raise KindlyRefused(f"operand {self.refused} is not to be differentiated")
        return perturbed

    def union(self) -> tuple[bool, ...]:
        return tuple(map(any, zip(*self.seen, strict=True)))


class KindlyRefused(Exception):
    """The user's own."""


def value(x, y):
    return jnp.sin(x) * y + jnp.cos(y)


def _partials(x, y):
    """Wrong by 3 and by 5."""
    return 3 * jnp.cos(x) * y, 5 * (jnp.sin(x) - jnp.sin(y))


def jvp(rules: Rules) -> Callable:
    f = jax.custom_jvp(value)

    def rule(primals, tangents):
        by_x, by_y = _partials(*primals)
        return f(*primals), by_x * tangents[0] + by_y * tangents[1]

    f.defjvp(rule)
    return f


def jvp_symbolic(rules: Rules) -> Callable:
    f = jax.custom_jvp(value)

    def rule(primals, tangents):
        perturbed = rules.told(not isinstance(t, SymbolicZero) for t in tangents)
        terms = [p * t for p, t, told in zip(_partials(*primals), tangents, perturbed, strict=True) if told]
        return f(*primals), sum(terms)

    f.defjvp(rule, symbolic_zeros=True)
    return f


def vjp(rules: Rules) -> Callable:
    f = jax.custom_vjp(value)
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda res, ct: tuple(p * ct for p in _partials(*res)))
    return f


def vjp_symbolic(rules: Rules) -> Callable:
    """Its residuals are those that the perturbed operands need, in a tree that says which these are."""
    f = jax.custom_vjp(value)

    def forward(x, y):
        perturbed = rules.told((x.perturbed, y.perturbed))
        partials = _partials(x.value, y.value)
        kept = tuple(p if told else None for p, told in zip(partials, perturbed, strict=True))
        return f(x.value, y.value), kept

    f.defvjp(
        forward, lambda kept, ct: tuple(None if p is None else p * ct for p in kept), symbolic_zeros=True
    )
    return f


def jvp_nondiff(rules: Rules) -> Callable:
    @functools.partial(jax.custom_jvp, nondiff_argnums=(0, 3))
    def f(g, x, y, n):
        return g(x, y) * n

    def rule(g, n, primals, tangents):
        perturbed = rules.told(not isinstance(t, SymbolicZero) for t in tangents)
        terms = [p * t for p, t, told in zip(_partials(*primals), tangents, perturbed, strict=True) if told]
        return f(g, *primals, n), n * sum(terms)

    f.defjvp(rule, symbolic_zeros=True)
    return lambda x, y: f(value, x, y, 2)


def vjp_nondiff(rules: Rules) -> Callable:
    @functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
    def f(x, n, y):
        return value(x, y) * n

    f.defvjp(
        lambda x, n, y: (f(x, n, y), (x, y)), lambda n, res, ct: tuple(n * p * ct for p in _partials(*res))
    )
    return lambda x, y: f(x, 2, y)


KINDS = {f.__name__: f for f in (jvp, jvp_symbolic, vjp, vjp_symbolic, jvp_nondiff, vjp_nondiff)}
TELLING = ("jvp_symbolic", "vjp_symbolic", "jvp_nondiff")
"""The kinds that are told what is perturbed."""


# Structures: (f, control) -> function of two vectors of three. control: with loops and the like.


def plain(f, control):
    return f


def jitted(f, control):
    return jax.jit(f)


def twice(f, control):
    """The second call has another operand perturbed than the first."""
    return lambda x, y: f(f(x, 2.0 * XS), y)


def checkpointed(f, control):
    return jax.checkpoint(lambda x, y: f(jnp.tanh(x), y)) if control else lambda x, y: f(jnp.tanh(x), y)


def scanned(f, control):
    """The carry, unperturbed by itself, is perturbed by y after a trip."""

    def step(c, v):
        return jnp.tanh(f(c, v * XS)), c

    def scan(x, y):
        if control:
            return lax.scan(step, x, y)[0]
        for k in range(3):
            x, _ = step(x, y[k])
        return x

    return scan


def counted(f, control):
    """A while loop, of constant y."""

    def loop(x, y):
        step = lambda c: jnp.tanh(f(c, y))  # noqa: E731
        if control:
            return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, step(s[1])), (0, x))[1]
        return step(step(step(x)))

    return loop


def branched(f, control):
    def other(x, y):
        return x - y

    def branch(x, y):
        return lax.cond(jnp.sum(XS) > 0, f, other, x, y) if control else f(x, y)

    return branch


def mapped(f, control):
    """The second operand is the same for all."""

    def over_rows(x, y):
        rows = jnp.stack([x, 2 * x])
        found = jax.vmap(f, (0, None))(rows, y) if control else jnp.stack([f(r, y) for r in rows])
        return found.sum(0)

    return over_rows


def nested(f, control):
    """A branch in a checkpoint in a loop, mapped."""

    def one(x, y):
        def step(c, v):
            body = lambda c, v: branched(f, control)(c, v * XS[0])  # noqa: E731
            return jnp.tanh((jax.checkpoint(body) if control else body)(c, v)), None

        if control:
            return lax.scan(step, x, jnp.stack([y, y + 1]))[0]
        return step(step(x, y)[0], y + 1)[0]

    return mapped(one, control)


STRUCTURES = {
    f.__name__: f for f in (plain, jitted, twice, checkpointed, scanned, counted, branched, mapped, nested)
}


def make(kind: str, structure: str, control: bool = True, refused: int | None = None) -> tuple[Any, Rules]:
    rules = Rules(refused=refused)
    return STRUCTURES[structure](KINDS[kind](rules), control), rules
