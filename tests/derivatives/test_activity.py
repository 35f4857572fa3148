"""Which values have tangents: as JAX finds it, and never less than what Julia computes tangents of."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from agreement import assert_agree
from cases import CASES, COVERED
from jax.custom_derivatives import SymbolicZero

import pybridge as pb
from pybridge.ir.deferred.activity import (
    BY_THE_FIRST,
    IF_COMPLEX,
    ONE_BY_ONE,
    WITHOUT_TANGENT,
    active_results,
)
from pybridge.ir.schema import OPERATIONS
from pybridge.runtime import rule_table, transforms

OPS = list(dict.fromkeys(case.op for case in CASES))


def moving_in_jax(f, args, active) -> list[bool]:
    """Which results have tangents that are not symbolic zeros; all, if JAX has no derivative."""
    found = {}

    def probe(k, y):
        identity = jax.custom_jvp(lambda y: y)

        def rule(primals, tangents):
            found[k] = True
            return primals[0], tangents[0]

        identity.defjvp(rule, symbolic_zeros=True)
        return identity(y)

    def probed(*moved):
        by_place = dict(zip(active, moved, strict=True))
        ys = jax.tree.leaves(f(*(by_place.get(i, x) for i, x in enumerate(args))))
        found.update(dict.fromkeys(range(len(ys)), False))
        return [probe(k, y) for k, y in enumerate(ys)]

    primals = [args[i] for i in active]
    try:
        jax.make_jaxpr(lambda *xs: jax.jvp(probed, xs, tuple(map(jnp.ones_like, xs))))(*primals)
    except (NotImplementedError, TypeError):  # the latter of `reduce` by one of its operands
        return [True for _ in jax.tree.leaves(jax.eval_shape(f, *args))]
    return [found[k] for k in sorted(found)]


def masks(case, count: int):
    """All active inputs together, and each alone."""
    chosen = [case.active, *((i,) for i in case.active)] if len(case.active) > 1 else [case.active]
    return [(active, tuple(i in active for i in range(count))) for active in chosen]


@pytest.mark.per_primitive
@pytest.mark.parametrize("op", OPS)
def test_against_jax_and_julia(op):
    for case in (c for c in COVERED if c.op == op and c.active):
        with case.context():
            args = [jax.device_put(x) for x in case.inputs()]
            program = pb.trace(case.f)(*args)
            for active, mask in masks(case, len(args)):
                found = active_results(program, mask)
                in_julia = transforms.linearize(program, active).has_tangent
                assert all(ours or not theirs for ours, theirs in zip(found, in_julia, strict=True)), case
                if case.reference is None:
                    in_jax = moving_in_jax(case.f, args, active)
                    assert all(theirs or not ours for ours, theirs in zip(found, in_jax, strict=True)), case


def test_the_primitives_without_tangents_are_those_of_julia():
    """Others of Julia's have no inexact results and need no mention."""
    without = {name for name, rule in rule_table.jaxprad_rules().items() if rule.zero}
    assert without >= WITHOUT_TANGENT
    assert OPERATIONS.keys() >= WITHOUT_TANGENT | IF_COMPLEX | ONE_BY_ONE | BY_THE_FIRST
    others = [case for case in CASES if case.op in without - WITHOUT_TANGENT]
    assert others and not any(map(has_inexact_result, others))


def has_inexact_result(case) -> bool:
    with case.context():
        program = pb.trace(case.f)(*case.inputs())
    return any(v.type.inexact for eq in program.equations if eq.op == case.op for v in eq.outputs)


def test_behind_rules_with_zero_tangents(x64):
    """What comes after a rule that has a tangent for one of its results alone: a rule that asks for it."""

    @jax.custom_jvp
    def both(x, y):
        return jnp.sin(x), jnp.cos(y)

    def rule(primals, tangents):
        x, y = primals
        dx, dy = (None if type(t) is SymbolicZero else t for t in tangents)
        zeros = [SymbolicZero(jax.typeof(x).to_tangent_aval()) for _ in primals]
        first = zeros[0] if dx is None else jnp.cos(x) * dx
        return both(x, y), (first, zeros[1] if dy is None else -jnp.sin(y) * dy)

    both.defjvp(rule, symbolic_zeros=True)

    def f(x):
        def trip(carry, _):
            p, q = both(carry[1] + x, 2.0)
            return (carry[1] + q, jnp.tanh(p)), None

        (_, y), _ = jax.lax.scan(trip, (0.3, 0.2), None, length=3)
        return both(y, 1.0)[0]

    for execute in ("xla", "julia"):
        g = pb.bridge(f, execute=execute)
        assert_agree(jax.grad(g)(1.2), jax.grad(f)(1.2), execute)
        assert_agree(jax.jvp(g, (1.2,), (1.0,)), jax.jvp(f, (1.2,), (1.0,)), execute)
