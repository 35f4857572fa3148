"""interpax: splines as functions of their data and of where they are taken."""

from __future__ import annotations

import interpax
import jax.numpy as jnp


def cubic_spline():
    """The bending energy and the misfit of a natural spline through 60 knots, at 400 places."""
    knots = jnp.linspace(0.0, 10.0, 60)
    places = jnp.linspace(0.05, 9.95, 400)

    def loss(values):
        spline = interpax.CubicSpline(knots, values, bc_type="natural", check=False)
        return jnp.mean((spline(places) - jnp.sin(places)) ** 2) + 0.01 * jnp.mean(spline(places, 2) ** 2)

    return loss, (jnp.sin(knots) + 0.1 * jnp.cos(5 * knots),)


def surface():
    """A surface on a grid, interpolated along a curve that moves with the parameters."""
    x, y = jnp.linspace(-2.0, 2.0, 30), jnp.linspace(-2.0, 2.0, 40)
    heights = jnp.exp(-(x[:, None] ** 2) - 0.5 * y[None] ** 2)

    def loss(params):
        angle = jnp.linspace(0.0, 2 * jnp.pi, 200)
        first = params["wide"] * jnp.cos(angle + params["turn"])
        second = params["high"] * jnp.sin(angle)
        along = interpax.interp2d(first, second, x, y, params["heights"], method="cubic2")
        return jnp.mean((along - 0.5) ** 2)

    start = {"wide": jnp.array(1.1), "high": jnp.array(0.8), "turn": jnp.array(0.3), "heights": heights}
    return loss, (start,)
