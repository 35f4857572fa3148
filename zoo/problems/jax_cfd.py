"""jax-cfd: flows in two dimensions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax_cfd.base as cfd
import jax_cfd.base.grids as grids
from jax_cfd.spectral import equations, time_stepping


def spectral():
    """Decaying vorticity on 64 x 64 waves by Crank-Nicolson and Runge-Kutta, 20 steps, from its start."""
    grid = grids.Grid((64, 64), domain=((0, 2 * jnp.pi), (0, 2 * jnp.pi)))
    x, y = grid.mesh()
    start = jnp.sin(2 * x) * jnp.cos(3 * y) + 0.5 * jnp.cos(x + 4 * y)

    def loss(vorticity):
        step = time_stepping.crank_nicolson_rk4(equations.NavierStokes2D(1e-2, grid), 0.01)
        spectrum = jnp.fft.rfftn(vorticity)
        spectrum, _ = jax.lax.scan(lambda u, _: (step(u), None), spectrum, length=20)
        return jnp.mean((jnp.fft.irfftn(spectrum) - 0.1) ** 2)

    return loss, (start,)


def finite_volumes():
    """Ten steps of a staggered grid of 32 x 32 with its pressure solve, from the start.

    By linear advection: the default's flux limiter divides by differences that are all rounding here, so that
    JAX's own gradient changes by 2 % where the start changes by a rounding.
    """
    grid = grids.Grid((32, 32), domain=((0, 2 * jnp.pi), (0, 2 * jnp.pi)))
    walls = cfd.boundaries.periodic_boundary_conditions(2)
    step = cfd.equations.semi_implicit_navier_stokes(
        density=1.0,
        viscosity=1e-2,
        dt=0.02,
        grid=grid,
        convect=lambda v: tuple(cfd.advection.advect_linear(u, v, 0.02) for u in v),
        pressure_solve=cfd.pressure.solve_fast_diag,
    )

    def variables(velocity):
        faces = zip(velocity, grid.cell_faces, strict=True)
        return tuple(grids.GridVariable(grids.GridArray(u, face, grid), walls) for u, face in faces)

    def loss(velocity):
        state, _ = jax.lax.scan(lambda v, _: (step(v), None), variables(velocity), length=10)
        return sum(jnp.mean(u.data**4) for u in state)

    (x, y), (z, w) = (grid.mesh(face) for face in grid.cell_faces)
    return loss, ((jnp.sin(x) * jnp.cos(2 * y), jnp.cos(2 * z) * jnp.sin(w)),)
