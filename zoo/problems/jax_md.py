"""jax-md: molecular dynamics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax_md import energy, minimize, simulate, space


def _lattice(side: int):
    grid = jnp.stack(jnp.meshgrid(*[jnp.arange(side) * 1.15] * 2, indexing="ij"), -1).reshape(-1, 2)
    return grid + 0.05 * jax.random.normal(jax.random.key(0), grid.shape), side * 1.15


def constant_energy():
    """100 steps of 36 particles in a periodic box, by the diameter of the particles and where they start."""
    start, box = _lattice(6)
    displacement, shift = space.periodic(box)

    def loss(params):
        potential = energy.soft_sphere_pair(displacement, sigma=params["diameter"])
        init, step = simulate.nve(potential, shift, dt=5e-3)
        state = init(jax.random.key(1), params["positions"], kT=0.1)
        state, _ = jax.lax.scan(lambda state, _: (step(state), None), state, length=100)
        return potential(state.position) + jnp.mean(state.velocity**2)

    return loss, ({"diameter": jnp.array(1.3), "positions": start},)


def thermostat():
    """50 steps of a Nose-Hoover chain with Lennard-Jones forces, by temperature and mass.

    By the depth of the potential the gradient is NaN: it has every particle's energy with itself.
    """
    start, box = _lattice(5)
    displacement, shift = space.periodic(box)

    def loss(params):
        potential = energy.lennard_jones_pair(displacement, sigma=1.0, epsilon=0.8)
        init, step = simulate.nvt_nose_hoover(potential, shift, dt=2e-3, kT=params["temperature"])
        state = init(jax.random.key(2), start, mass=params["mass"])
        state = jax.lax.fori_loop(0, 50, lambda _, state: step(state), state)
        return jnp.mean(state.position**2) + potential(state.position)

    return loss, ({"mass": jnp.array(1.2), "temperature": jnp.array(0.3)},)


def relaxation():
    """The energy after 100 steps of FIRE, by the diameters of two kinds of particles."""
    start, box = _lattice(5)
    displacement, shift = space.periodic(box)
    species = jnp.arange(25) % 2

    def loss(diameters):
        small, large = diameters
        table = jnp.array([[small, 0.5 * (small + large)], [0.5 * (small + large), large]])
        potential = energy.soft_sphere_pair(displacement, species=species, sigma=table)
        init, step = minimize.fire_descent(potential, shift)
        state = jax.lax.fori_loop(0, 100, lambda _, state: step(state), init(start))
        return potential(state.position)

    return loss, (jnp.array([1.2, 1.6]),)
