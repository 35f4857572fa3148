"""Policies of `jax.checkpoint` keep their meaning: what is kept for the way back is what JAX keeps."""

from __future__ import annotations

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed
from jax import lax
from jax._src.ad_checkpoint import saved_residuals  # JAX prints them publicly, and returns them here
from jax.ad_checkpoint import checkpoint_name
from jax.extend.core import jaxprs_in_params

import pybridge as pb
from pybridge.ir.numerals import DTYPES
from pybridge.runtime import transforms

RNG = np.random.default_rng(31)
POLICIES = jax.checkpoint_policies
X = jnp.asarray(RNG.uniform(-1, 1, (4, 8)), jnp.float32)
W = jnp.asarray(RNG.uniform(-1, 1, (3, 8, 8)), jnp.float32)


def layer(x, w):
    product = checkpoint_name(x @ w, "product")
    return checkpoint_name(jnp.tanh(product), "activation")


def network(w, x):
    for matrix in w:
        x = layer(x, matrix)
    return jnp.sum(jnp.sin(x))


def with_batches(w, x):
    """One product with a batch axis, one without."""
    y = jnp.einsum("bi,bij->bj", x[:3], jnp.tanh(w))
    return jnp.sum(jnp.tanh(jnp.tanh(y) @ w[0]) ** 2)


def scanned(policy):
    """Each layer is a checkpoint of its own, as in most deep networks."""
    step = jax.checkpoint(lambda x, w: (layer(x, w), None), policy=policy)
    return lambda w, x: jnp.sum(jnp.sin(lax.scan(step, x, w)[0]))


def either(*names):
    return POLICIES.save_from_both_policies(POLICIES.dots_saveable, POLICIES.save_only_these_names(*names))


def large_products(prim, *avals, **params):
    """A policy of the user's own."""
    return prim.name == "dot_general" and max(a.size for a in avals) > 64


NAMED = {
    "nothing": POLICIES.nothing_saveable,
    "default": None,
    "dots": POLICIES.dots_saveable,
    "dots without batches": POLICIES.dots_with_no_batch_dims_saveable,
    "these names": POLICIES.save_only_these_names("activation"),
    "other names": POLICIES.save_any_names_but_these("activation"),
    "either": either("activation"),
    "own": large_products,
}
CASES = {
    f"{name}/{f.__name__}": (f, policy) for f in (network, with_batches) for name, policy in NAMED.items()
}


def kept_by_jax(f, *args) -> list[tuple]:
    """Type of each residual that is computed: arguments are there anyway."""
    found = [
        aval for aval, why in saved_residuals(f, *args) if "argument" not in why and "constant" not in why
    ]
    return sorted((aval.shape, str(aval.dtype)) for aval in found)


def kept_here(f, *args) -> list[tuple]:
    lin = transforms.linearize(pb.trace(f)(*args), optimize=True)
    residuals = set(lin.known.outputs[len(lin.known.outputs) - lin.residuals :])
    types = [v.type for v in residuals - set(lin.known.inputs)]
    return sorted((t.shape, DTYPES[t.dtype].name) for t in types)


def size(residuals) -> int:
    return sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in residuals)


@pytest.mark.parametrize("name", CASES)
def test_as_much_is_kept_as_by_jax(name):
    f, policy = CASES[name]
    f = jax.checkpoint(f, policy=policy)
    ours, theirs = kept_here(f, W, X), kept_by_jax(f, W, X)
    assert (len(ours), size(ours)) == (len(theirs), size(theirs))


def test_policies_differ_here():
    counts = {name: len(kept_here(jax.checkpoint(network, policy=p), W, X)) for name, p in NAMED.items()}
    assert counts["nothing"] == counts["default"] == 0
    assert counts["dots"] == counts["these names"] == 3 and counts["either"] > 3


@pytest.mark.parametrize("name", NAMED)
def test_of_each_trip_of_a_scan_as_much_is_kept(name):
    """In addition to what JAX keeps there is at most the carry of each trip."""
    f = scanned(NAMED[name])
    assert size(kept_here(f, W, X)) <= size(kept_by_jax(f, W, X))


def test_to_keep_everything_is_as_if_there_were_no_checkpoint():
    f = jax.checkpoint(network, policy=POLICIES.everything_saveable)
    assert kept_here(f, W, X) == kept_here(network, W, X) != []
    assert "remat" not in str(pb.trace(f)(W, X))


@pytest.mark.parametrize("name", ["dots", "these names", "own"])
def test_gradients_of_all_orders(name):
    def derivatives(f):
        def push(w, x):
            return jax.jvp(lambda x: jax.grad(f, 1)(w, x), (x,), (jnp.cos(x),))[1]

        return lambda w, x: {
            "grad": jax.grad(f)(w, x),
            "forward over reverse": push(w, x),
            "vmap": jax.vmap(jax.grad(f, 1), (None, 0))(w, jnp.stack([x, -x])),
        }

    for make in (lambda p: jax.checkpoint(network, policy=p), scanned):
        f = make(NAMED[name])
        functions = *(pb.bridge(f, execute=execute) for execute in ("julia", "xla")), f
        *found, expected = computed(list(map(derivatives, functions)), [(W, X)] * 3)
        for ours in found:
            for what, wanted in expected.items():
                assert_agree(ours[what], wanted, what)


def test_a_policy_survives_vmap_and_the_way_to_jax_and_back():
    f = jax.checkpoint(network, policy=NAMED["dots"])
    program = pb.trace(f)(W, X)
    again = pb.trace(program.to_jax())(W, X)
    assert kept_here(program.to_jax(), W, X) == kept_here(f, W, X)
    assert str(again).count("saveable") == str(program).count("saveable") == 3
    batched = jax.vmap(pb.bridge(f), (None, 0))
    jaxpr = jax.make_jaxpr(batched)(W, jnp.stack([X, X]))
    (program,) = (e.params["program"] for e in jaxpr.eqns if "program" in e.params)
    assert str(program).count("saveable") == 3


def products_by_jax(f) -> int:
    def count(jaxpr):
        bodies = (body for eqn in jaxpr.eqns for body in jaxprs_in_params(eqn.params))
        return sum(eqn.primitive.name == "dot_general" for eqn in jaxpr.eqns) + sum(map(count, bodies))

    return count(jax.make_jaxpr(jax.grad(f, (0, 1)))(W, X).jaxpr)


def products_here(f) -> int:
    lin = transforms.linearize(pb.trace(f)(W, X), optimize=True)
    tangents = range(lin.residuals, len(lin.linear.inputs))
    backward = transforms.transpose(lin.linear, list(tangents), [0], optimize=True)
    return str(lin.known).count("= dot_general") + str(backward).count("= dot_general")


@pytest.mark.parametrize("name", ["nothing", "dots", "these names"])
@pytest.mark.parametrize("make", ["scan", "calls"])
def test_on_its_way_back_an_outer_checkpoint_keeps_what_inner_ones_allow(name, make):
    """Everything inside is computed once again; the inner policies say what of it is kept meanwhile."""
    step = jax.checkpoint(layer, policy=NAMED[name])
    calls = lambda w, x: jnp.sum(jnp.sin(step(step(x, w[0]), w[1])))  # noqa: E731
    f = jax.checkpoint(scanned(NAMED[name]) if make == "scan" else calls)
    assert kept_here(f, W, X) == []
    assert products_here(f) == products_by_jax(f)
    assert products_here(jax.checkpoint(calls)) > products_here(calls)


def test_three_checkpoints_of_which_two_allow():
    """A value is marked for the two that allow to keep it, and the marks survive the way to JAX and back."""
    f = layer
    for policy in (POLICIES.dots_saveable, None, POLICIES.dots_saveable):
        f = jax.checkpoint(f, policy=policy)
    program = pb.trace(lambda w, x: jnp.sum(f(x, w[0])))(W, X)
    levels = re.compile(r"levels=(\[.*?\])")
    assert levels.findall(str(program)) == ["[0, 2]"]
    assert levels.findall(str(pb.trace(program.to_jax())(W, X))) == ["[0, 2]"]
    assert products_here(program.to_jax()) == products_here(lambda w, x: jnp.sum(f(x, w[0])))


def ruled(optimize_remat):
    """Its forward rule has twice its value."""
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(
        lambda x: (2 * jnp.sin(x), x), lambda x, ct: (3 * jnp.cos(x) * ct,), optimize_remat=optimize_remat
    )
    return f


AROUND_RULES = {
    "none": lambda f: f,
    "checkpoint": jax.checkpoint,
    "composed": lambda f: jax.checkpoint(lambda x: f(jnp.exp(f(x)))),
    "jitted": lambda f: jax.checkpoint(jax.jit(f)),
    "everything": lambda f: jax.checkpoint(f, policy=POLICIES.everything_saveable),
    "products": lambda f: jax.checkpoint(f, policy=POLICIES.dots_saveable),
    "in a loop": lambda f: (
        lambda x: lax.scan(jax.checkpoint(lambda c, _: (f(c), None)), x, None, length=2)[0]
    ),
}


@pytest.mark.parametrize("optimize_remat", [True, False])
@pytest.mark.parametrize("around", AROUND_RULES)
def test_a_checkpoint_has_the_function_s_value_if_a_rule_is_for_residuals_alone(around, optimize_remat):
    f = AROUND_RULES[around](ruled(optimize_remat))
    wanted = jax.value_and_grad(f)(0.7)
    for execute in ("xla", "julia"):
        assert_agree(jax.value_and_grad(pb.bridge(f, execute=execute))(0.7), wanted, execute, 1e-5)
