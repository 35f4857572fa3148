"""NPBench's kernels of a weather model (COSMO): horizontal diffusion and vertical advection."""

from __future__ import annotations

import jax.numpy as jnp
from jax.lax import fori_loop

from .kernel import Kernel, Kind, Program, uniform


def hdiff(nx: int, ny: int, nz: int) -> Program:
    """Diffusion of fourth order, with a limit on the fluxes."""

    def limited(flux, x, y):
        return jnp.where(flux * (x - y) > 0, 0.0, flux)

    def program(field, coefficient):
        centre = field[1:-1, 1:-1]
        around = field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2]
        laplacian = 4 * centre - around
        x, y = centre[:, 1:-1], centre[1:-1]
        along_x = limited(jnp.diff(laplacian[:, 1:-1], axis=0), x[1:], x[:-1])
        along_y = limited(jnp.diff(laplacian[1:-1], axis=1), y[:, 1:], y[:, :-1])
        return y[:, 1:-1] - coefficient * (jnp.diff(along_x, axis=0) + jnp.diff(along_y, axis=1))

    return program, uniform((nx + 4, ny + 4, nz), (nx, ny, nz))


def vadv(nx: int, ny: int, nz: int) -> Program:
    """Implicit advection: a tridiagonal system in each column of the atmosphere."""
    rate = 3.0 / 20.0

    def program(stage, velocity, wind, position, tendency):
        mean = 0.25 * (wind[1:] + wind[:-1])

        def right_hand_side(k, change):
            return rate * position[:, :, k] + tendency[:, :, k] + stage[:, :, k] - change

        def forward(k, state):
            upper, right = state
            lower, c = -0.5 * mean[:, :, k], 0.5 * mean[:, :, k + 1]
            before, here, after = (velocity[:, :, k + i] for i in (-1, 0, 1))
            d = right_hand_side(k, lower * (before - here) + c * (after - here))
            scale = 1 / (rate - lower - c - upper[:, :, k - 1] * lower)
            upper = upper.at[:, :, k].set(c * scale)
            return upper, right.at[:, :, k].set((d - right[:, :, k - 1] * lower) * scale)

        def backward(i, state):
            column, result = state
            k = nz - 2 - i
            column = right[:, :, k] - upper[:, :, k] * column
            return column, result.at[:, :, k].set(rate * (column - position[:, :, k]))

        first = 0.5 * mean[:, :, 1]
        d = right_hand_side(0, first * (velocity[:, :, 1] - velocity[:, :, 0]))
        upper = jnp.zeros((nx, ny, nz)).at[:, :, 0].set(first / (rate - first))
        right = jnp.zeros((nx, ny, nz)).at[:, :, 0].set(d / (rate - first))
        upper, right = fori_loop(1, nz - 1, forward, (upper, right))
        lower = -0.5 * mean[:, :, nz - 1]
        d = right_hand_side(nz - 1, lower * (velocity[:, :, nz - 2] - velocity[:, :, nz - 1]))
        last = (d - right[:, :, nz - 2] * lower) / (rate - lower - upper[:, :, nz - 2] * lower)
        result = jnp.zeros((nx, ny, nz)).at[:, :, nz - 1].set(rate * (last - position[:, :, nz - 1]))
        return fori_loop(0, nz - 1, backward, (last, result))[1]

    shape = (nx, ny, nz)
    stage, velocity, wind, position, tendency = uniform(shape, shape, (nx + 1, ny, nz), shape, shape)
    return program, (stage, velocity, wind / 10, position, tendency)


KERNELS = (
    Kernel("hdiff", Kind.STENCIL, hdiff, (64, 64, 60), (128, 128, 160), (4, 5, 3)),
    Kernel("vadv", Kind.INDEXED, vadv, (60, 60, 40), (112, 112, 80), (3, 4, 5)),
)
