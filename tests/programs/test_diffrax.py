"""diffrax: solvers of differential equations, differentiated in each of its ways, and what these refuse.

Their loops are equinox's, with rules of their own that are told what is differentiated.
"""

from __future__ import annotations

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from sameness import assert_same_gradient

import pybridge as pb

DECAY, START, END = np.array(0.7), np.array([1.0, 2.0]), np.array(0.8)


def field(t, y, decay):
    return -decay * y + jnp.sin(t * y[::-1])


def solved(adjoint, **options):
    """Of the decay, the initial value and the end."""
    how = {"stepsize_controller": dfx.PIDController(rtol=1e-3, atol=1e-5), "max_steps": 32} | options

    def loss(decay, start, end):
        term, solver = dfx.ODETerm(field), dfx.Heun()
        solution = dfx.diffeqsolve(term, solver, 0.0, end, 0.1, start, args=decay, adjoint=adjoint, **how)
        return jnp.sum(solution.ys**2)

    return loss


ADJOINTS = {
    "recursive": (dfx.RecursiveCheckpointAdjoint(), (0, 1, 2)),
    "few checkpoints": (dfx.RecursiveCheckpointAdjoint(checkpoints=2), (0, 1, 2)),
    "direct": (dfx.DirectAdjoint(), (0, 1, 2)),
    "backsolve": (dfx.BacksolveAdjoint(), (0, 1)),
}


@pytest.mark.parametrize("name", ADJOINTS)
def test_reverse_mode(name, x64):
    adjoint, argnums = ADJOINTS[name]
    assert_same_gradient(solved(adjoint), DECAY, START, END, execute="auto", argnums=argnums)


def test_forward_mode(x64):
    def forwards(f):
        return jax.jit(jax.jacfwd(f, argnums=(0, 1, 2)))(DECAY, START, END)

    loss = solved(dfx.ForwardMode())
    assert_agree(forwards(pb.bridge(loss)), forwards(loss), "forward mode")


def test_implicit_differentiation_of_a_steady_state(x64):
    def loss(decay, start):
        term = dfx.ODETerm(lambda t, y, decay: jnp.cos(y) - decay * y)
        solution = dfx.diffeqsolve(
            term, dfx.Heun(), 0.0, jnp.inf, 0.2, start,
            args=decay, max_steps=256, adjoint=dfx.ImplicitAdjoint(),
            event=dfx.Event(dfx.steady_state_event(1e-4, 1e-6)),
            stepsize_controller=dfx.PIDController(1e-4, 1e-6),
        )  # fmt: skip
        return jnp.sum(solution.ys**2)

    assert_same_gradient(loss, DECAY, START, execute="auto", argnums=(0, 1))


def test_second_derivatives(x64):
    loss = solved(dfx.DirectAdjoint(), stepsize_controller=dfx.ConstantStepSize(), max_steps=8)

    def hvp(f):
        gradient = jax.grad(f)
        return jax.jit(lambda d: jax.jvp(lambda d: gradient(d, START, END), (d,), (jnp.ones(()),))[1])(DECAY)

    assert_agree(hvp(pb.bridge(loss)), hvp(loss), "HVP")


def test_a_batch(x64):
    loss = solved(dfx.RecursiveCheckpointAdjoint())
    starts = np.stack([START, 2 * START, START[::-1]])

    def gradient(f):
        return jax.jit(jax.vmap(jax.grad(f, (0, 1)), in_axes=(None, 0, None)))(DECAY, starts, END)

    assert_agree(gradient(pb.bridge(loss)), gradient(loss), "vmap of grad")


def test_what_an_adjoint_refuses_is_refused_in_its_words(x64):
    """The value is there, and derivatives by the other arguments."""
    loss = solved(dfx.BacksolveAdjoint())
    bridged = pb.bridge(loss)
    assert_agree(jax.jit(bridged)(DECAY, START, END), jax.jit(loss)(DECAY, START, END), "value")
    for f in (loss, bridged):
        with pytest.raises(RuntimeError, match="Unexpected tangent"):
            jax.grad(f, argnums=2)(DECAY, START, END)
    forward = pb.bridge(solved(dfx.RecursiveCheckpointAdjoint()), package_rules=True)
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jvp(lambda d: forward(d, START, END), (DECAY,), (np.ones(()),))


SAVED = {
    "the end": dfx.SaveAt(t1=True),
    "given times": dfx.SaveAt(ts=np.linspace(0.0, 0.8, 5)),
    "steps": dfx.SaveAt(steps=True),
}


@pytest.mark.parametrize("name", SAVED)
def test_any_order_by_the_default_adjoint(name, x64):
    """Whose rule is for reverse mode alone, held against DirectAdjoint by JAX."""

    def loss(adjoint):
        def f(decay):
            solution = dfx.diffeqsolve(
                dfx.ODETerm(field), dfx.Heun(), 0.0, 0.8, 0.1, START, args=decay, adjoint=adjoint,
                saveat=SAVED[name], max_steps=32,
                stepsize_controller=dfx.PIDController(rtol=1e-3, atol=1e-5),
            )  # fmt: skip
            return jnp.sum(jnp.where(jnp.isfinite(solution.ys), solution.ys, 0.0) ** 2)

        return f

    bridged, direct = pb.bridge(loss(dfx.RecursiveCheckpointAdjoint())), loss(dfx.DirectAdjoint())
    for transform in (
        jax.grad,
        jax.jacfwd,
        lambda f: jax.grad(jax.grad(f)),
        lambda f: jax.jacfwd(jax.grad(f)),
    ):
        assert_agree(jax.jit(transform(bridged))(DECAY), jax.jit(transform(direct))(DECAY), "derivative")


class Field(eqx.Module):
    mlp: eqx.nn.MLP

    def __call__(self, t, y, args):
        return self.mlp(y)


def test_a_neural_differential_equation(x64):
    params, static = eqx.partition(Field(eqx.nn.MLP(2, 2, 4, 1, key=jax.random.key(0))), eqx.is_inexact_array)
    times = np.linspace(0, 1, 4)

    def loss(params, start):
        term = dfx.ODETerm(eqx.combine(params, static))
        steps = dfx.ConstantStepSize()
        solution = dfx.diffeqsolve(
            term, dfx.Tsit5(), 0.0, 1.0, 0.25, start,
            saveat=dfx.SaveAt(ts=times), stepsize_controller=steps, max_steps=8,
        )  # fmt: skip
        return jnp.mean(solution.ys**2)

    assert_same_gradient(loss, params, START, execute="auto", argnums=(0, 1))
