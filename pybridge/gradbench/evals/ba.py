"""Bundle adjustment: errors of projected points and of weights, and the Jacobian as a sparse matrix."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..function import Bridge, Function, Operands
from ..inputs import Input

CAMERA, POINT = 11, 3  # numbers that describe one
COLUMNS = CAMERA + POINT + 1  # in a row of the Jacobian for the error of a projected point
SENT = 2 * COLUMNS  # elements of each list that are sent, and the last one


def rotate(axis: jax.Array, x: jax.Array) -> jax.Array:
    """By the angle |axis| around it: Rodrigues' formula, to first order where the angle is zero."""
    square = axis @ axis
    still = square == 0
    angle = jnp.sqrt(jnp.where(still, 1.0, square))
    unit = axis / angle
    turned = (
        x * jnp.cos(angle) + jnp.cross(unit, x) * jnp.sin(angle) + unit * (unit @ x) * (1 - jnp.cos(angle))
    )
    return jnp.where(still, x + jnp.cross(axis, x), turned)


def project(camera: jax.Array, point: jax.Array) -> jax.Array:
    """camera: rotation (3), centre (3), focal length, principal point (2), radial distortion (2)."""
    x = rotate(camera[:3], point - camera[3:6])
    flat = x[:2] / x[2]
    square = flat @ flat
    return camera[6] * flat * (1 + camera[9] * square + camera[10] * square**2) + camera[7:9]


def errors(cameras: jax.Array, points: jax.Array, weights: jax.Array, features: jax.Array) -> jax.Array:
    """Of the projections, a row for each observation."""
    return weights[:, None] * (jax.vmap(project)(cameras, points) - features)


def weight_errors(weights: jax.Array) -> jax.Array:
    return 1 - weights**2


def _read(value: Input) -> Operands:
    """One camera, point, weight and feature are sent; the others are the same, and computed with alike."""
    n, m, p = (value.at(name).integer(at_least=1) for name in ("n", "m", "p"))
    arrays = (
        np.tile(value.at("cam").floats(CAMERA), (n, 1)),
        np.tile(value.at("x").floats(POINT), (m, 1)),
        np.full(p, value.at("w").number()),
        np.tile(value.at("feat").floats(2), (p, 1)),
        np.stack([np.arange(p) % n, np.arange(p) % m], axis=1),
    )
    return Operands(arrays)


def _write_errors(result: tuple[jax.Array, jax.Array]) -> dict[str, Any]:
    reprojection, weight = result
    return {
        "reproj_error": {"elements": np.asarray(reprojection[0]).tolist(), "repeated": len(reprojection)},
        "w_err": {"element": float(weight[0]), "repeated": len(weight)},
    }


def _write_matrix(matrix: dict[str, jax.Array]) -> dict[str, list]:
    return {name: np.r_[array[:SENT], array[-1:]].tolist() for name, array in matrix.items()}


def functions(bridge: Bridge) -> dict[str, Function]:
    projection, weighting = bridge(errors), bridge(weight_errors)

    def objective(
        cameras: jax.Array, points: jax.Array, weights: jax.Array, features: jax.Array, observed: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        of_camera, of_point = observed.T
        return projection(cameras[of_camera], points[of_point], weights, features), weighting(weights)

    def jacobian(
        cameras: jax.Array, points: jax.Array, weights: jax.Array, features: jax.Array, observed: jax.Array
    ) -> dict[str, jax.Array]:
        """In compressed rows: `rows` has where in `cols` and `vals` a row begins, and where the last ends.

        An observation's errors depend on its own camera, point and weight alone, so that two cotangents, ones
        for each of the two coordinates, give all derivatives.
        """
        of_camera, of_point = observed.T
        p = len(weights)
        _, pullback = jax.vjp(
            lambda *operands: projection(*operands, features), cameras[of_camera], points[of_point], weights
        )
        sides = [jnp.tile(side, (p, 1)) for side in jnp.eye(2)]
        parts = [(c, x, w[:, None]) for c, x, w in map(pullback, sides)]
        blocks = jnp.stack([jnp.concatenate(part, axis=1) for part in parts], axis=1)
        (last,) = jax.vjp(weighting, weights)[1](jnp.ones(p))
        return {
            "vals": jnp.concatenate([blocks.ravel(), last]),
            **_places(observed, len(cameras), len(points)),
        }

    return {
        "objective": Function(objective, _read, _write_errors),
        "jacobian": Function(jacobian, _read, _write_matrix),
    }


def _places(observed: jax.Array, cameras: int, points: int) -> dict[str, jax.Array]:
    """Columns: the cameras', then the points', then the weights'. Rows: projections', then weights'."""
    of_camera, of_point = observed.astype(jnp.int32).T
    p = len(observed)
    first_point = CAMERA * cameras
    weight = first_point + POINT * points + jnp.arange(p, dtype=jnp.int32)
    columns = jnp.concatenate(
        [
            CAMERA * of_camera[:, None] + jnp.arange(CAMERA, dtype=jnp.int32),
            first_point + POINT * of_point[:, None] + jnp.arange(POINT, dtype=jnp.int32),
            weight[:, None],
        ],
        axis=1,
    )
    both = jnp.broadcast_to(columns[:, None, :], (p, 2, COLUMNS))
    projections = COLUMNS * jnp.arange(2 * p + 1, dtype=jnp.int32)
    return {
        "cols": jnp.concatenate([both.ravel(), weight]),
        "rows": jnp.concatenate([projections, projections[-1] + 1 + jnp.arange(p, dtype=jnp.int32)]),
    }
