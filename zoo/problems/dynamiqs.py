"""dynamiqs: open and closed quantum systems."""

from __future__ import annotations

import dynamiqs as dq
import jax.numpy as jnp


def pulse():
    """The infidelity of a gate on a three-level system, by a pulse of 20 pieces."""
    lower = dq.destroy(3)
    drift = -0.6 * (dq.dag(lower) @ dq.dag(lower) @ lower @ lower)
    times = jnp.linspace(0.0, 10.0, 21)

    def loss(amplitudes):
        drive = dq.pwc(times, amplitudes[0], lower + dq.dag(lower))
        drive += dq.pwc(times, amplitudes[1], 1j * (lower - dq.dag(lower)))
        result = dq.sesolve(drift + drive, dq.fock(3, 0), times[jnp.array([0, -1])], progress_meter=False)
        return 1 - dq.fidelity(result.states[-1], dq.fock(3, 1))

    shape = 0.15 * jnp.sin(jnp.pi * (jnp.arange(20.0) + 0.5) / 20)
    return loss, (jnp.stack([shape, 0.1 * jnp.roll(shape, 3)]),)


def decay():
    """Photons of two coupled, damped oscillators, one of them driven; a Lindblad equation."""
    lower = dq.destroy(5, 4)

    def loss(params):
        first, second = lower
        exchange = dq.dag(first) @ second
        hamiltonian = params["coupling"] * (exchange + dq.dag(exchange)) + params["drive"] * (
            first + dq.dag(first)
        )
        result = dq.mesolve(
            hamiltonian,
            [jnp.sqrt(params["loss"]) * first, jnp.sqrt(0.1) * second],
            dq.fock((5, 4), (1, 0)),
            jnp.linspace(0.0, 3.0, 11),
            exp_ops=[dq.dag(second) @ second],
            progress_meter=False,
        )
        return jnp.mean(result.expects[0].real)

    return loss, ({"coupling": jnp.array(1.0), "drive": jnp.array(0.4), "loss": jnp.array(0.3)},)
