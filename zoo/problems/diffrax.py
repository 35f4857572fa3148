"""diffrax: predators and prey by Tsit5 with adaptive steps, through each of its adjoints."""

from __future__ import annotations

from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

_RATES = {"birth": 1.1, "hunt": 0.4, "death": 0.4, "feed": 0.1}


def _field(t, y, rates):
    prey, predators = y
    return jnp.stack(
        [
            rates["birth"] * prey - rates["hunt"] * prey * predators,
            rates["feed"] * prey * predators - rates["death"] * predators,
        ]
    )


def _populations(adjoint: diffrax.AbstractAdjoint) -> tuple[Callable, tuple]:
    """The distance of 40 samples from given ones, as a function of the four rates."""
    times = jnp.linspace(0.0, 15.0, 40)

    def samples(rates):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(_field),
            diffrax.Tsit5(),
            t0=0.0,
            t1=15.0,
            dt0=0.05,
            y0=jnp.array([10.0, 5.0]),
            args=rates,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-6),
            adjoint=adjoint,
            max_steps=1024,
        ).ys

    observed = samples(jax.tree.map(lambda r: 1.1 * r, _RATES))

    def loss(rates):
        return jnp.mean((samples(rates) - observed) ** 2)

    return loss, (jax.tree.map(jnp.asarray, _RATES),)


def recursive_checkpoint():
    return _populations(diffrax.RecursiveCheckpointAdjoint())


def ensemble():
    return _ensemble(diffrax.RecursiveCheckpointAdjoint())


def direct_ensemble():
    return _ensemble(diffrax.DirectAdjoint())


def thousand():
    return _ensemble(diffrax.RecursiveCheckpointAdjoint(), _thousand_starts())


def direct_thousand():
    return _ensemble(diffrax.DirectAdjoint(), _thousand_starts())


def _thousand_starts():
    return jnp.stack([jnp.linspace(2.0, 12.0, 1000), jnp.linspace(7.0, 1.0, 1000)], axis=1)


_FOUR = ((10.0, 5.0), (8.0, 4.0), (6.0, 6.0), (3.0, 1.0))


def _ensemble(adjoint: diffrax.AbstractAdjoint, starts=_FOUR) -> tuple[Callable, tuple]:
    """The mean square of where starts are after one unit of time, each with steps of its own."""
    starts = jnp.asarray(starts)

    def end(start, rates):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(_field),
            diffrax.Tsit5(),
            t0=0.0,
            t1=1.0,
            dt0=0.1,
            y0=start,
            args=rates,
            stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-4),
            adjoint=adjoint,
            max_steps=64,
        ).ys

    def loss(rates):
        return jnp.mean(jax.vmap(end, (0, None))(starts, rates) ** 2)

    return loss, (jax.tree.map(jnp.asarray, _RATES),)


def direct():
    return _populations(diffrax.DirectAdjoint())


def backsolve():
    return _populations(diffrax.BacksolveAdjoint())


def forward_mode():
    return _populations(diffrax.ForwardMode())


def implicit():
    """The steady state of a damped, driven system, by the implicit function theorem."""

    def settle(t, y, force):
        return force - y - 0.1 * jnp.sin(jnp.roll(y, 1))

    def loss(force):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(settle),
            diffrax.Tsit5(),
            t0=0.0,
            t1=jnp.inf,
            dt0=0.1,
            y0=jnp.zeros(10),
            args=force,
            max_steps=None,
            stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-10),
            event=diffrax.Event(diffrax.steady_state_event()),
            adjoint=diffrax.ImplicitAdjoint(),
        )
        return jnp.sum(solution.ys[0] ** 2)

    return loss, (jnp.linspace(0.5, 1.5, 10),)


def stiff():
    """Robertson's chemical reactions by Kvaerno5: a Newton iteration with a linear solve in each stage."""

    def reactions(t, y, rates):
        a, b, c = y
        slow, fast, back = rates[0] * a, rates[1] * b * b, rates[2] * b * c
        return jnp.stack([back - slow, slow - fast - back, fast])

    def loss(log_rates):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(reactions),
            diffrax.Kvaerno5(),
            t0=0.0,
            t1=100.0,
            dt0=2e-4,
            y0=jnp.array([1.0, 0.0, 0.0]),
            args=jnp.exp(log_rates),
            stepsize_controller=diffrax.PIDController(rtol=1e-7, atol=1e-8),
            max_steps=512,
        )
        return jnp.sum(jnp.log(solution.ys[0]) ** 2)

    return loss, (jnp.log(jnp.array([0.04, 3e7, 1e4])),)


def stochastic():
    """A path of an Ornstein-Uhlenbeck process by Euler and Maruyama, on a virtual Brownian tree."""
    noise = diffrax.VirtualBrownianTree(0.0, 3.0, tol=1e-3, shape=(2,), key=jax.random.key(7))

    def loss(params):
        drift = diffrax.ODETerm(lambda t, y, args: params["pull"] * (params["mean"] - y))
        diffusion = diffrax.ControlTerm(lambda t, y, args: jnp.diag(params["scale"]), noise)
        solution = diffrax.diffeqsolve(
            diffrax.MultiTerm(drift, diffusion),
            diffrax.Euler(),
            t0=0.0,
            t1=3.0,
            dt0=0.01,
            y0=jnp.zeros(2),
            saveat=diffrax.SaveAt(ts=jnp.linspace(0.5, 3.0, 6)),
            max_steps=512,
        )
        return jnp.mean(solution.ys**2)

    return loss, ({"pull": jnp.array(0.8), "mean": jnp.array([1.0, -1.0]), "scale": jnp.array([0.3, 0.5])},)


def neural():
    return _neural(diffrax.RecursiveCheckpointAdjoint())


def direct_neural():
    return _neural(diffrax.DirectAdjoint())


def _neural(adjoint: diffrax.AbstractAdjoint) -> tuple[Callable, tuple]:
    """A field that is a network: equinox's MLP along a spiral, 20 samples of 8 curves."""
    mlp = eqx.nn.MLP(2, 2, 32, depth=2, activation=jnp.tanh, key=jax.random.key(0))
    params, static = eqx.partition(mlp, eqx.is_inexact_array)
    starts = jax.random.normal(jax.random.key(1), (8, 2))
    times = jnp.linspace(0.0, 2.0, 20)
    turns = jnp.stack([jnp.cos(2 * times), jnp.sin(2 * times)])
    wanted = jnp.exp(-times)[None, :, None] * jnp.einsum("bi,it->bti", starts, turns)

    def curve(params, start):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: eqx.combine(params, static)(y)),
            diffrax.Tsit5(),
            t0=0.0,
            t1=2.0,
            dt0=0.1,
            y0=start,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
            adjoint=adjoint,
            max_steps=256,
        ).ys

    def loss(params):
        return jnp.mean((jax.vmap(curve, in_axes=(None, 0))(params, starts) - wanted) ** 2)

    return loss, (params,)
