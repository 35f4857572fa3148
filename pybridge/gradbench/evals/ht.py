"""Hand tracking: distances of measured points from a hand's skin, in the pose theta, and their Jacobian.

Taylor et al., User-specific hand modeling from monocular depth sequences, CVPR 2014, as it is in ADBench.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import ArgumentError
from ..function import Bridge, Function, Operands, plain
from ..inputs import Input

FINGERS, FIRST_BONE = 5, 2  # a finger has four bones, of which three bend, the first of them sideways too
THETA = 6 + 4 * FINGERS  # global rotation, global translation, and each finger's angles
SMALL = 1e-4  # a rotation by less is none

Hand = dict[str, Any]
"""Arrays: parents (bones), relatives and inverse_absolutes (bones, 4, 4), positions (vertices, 4), weights
(vertices, bones), points (measured, 3); and which vertices (measured), or corners (measured, 3) of triangles,
those belong to.
"""


def angle_axis_rotation(axis: jax.Array) -> jax.Array:
    square = axis @ axis
    still = square < SMALL**2
    angle = jnp.sqrt(jnp.where(still, 1.0, square))
    x, y, z = unit = axis / angle
    across = jnp.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    along = jnp.outer(unit, unit)
    turned = along + (jnp.eye(3) - along) * jnp.cos(angle) + across * jnp.sin(angle)
    return jnp.where(still, jnp.eye(3), turned)


def bend_angles(theta: jax.Array, bones: int) -> jax.Array:
    """Rows of angles around x and z, one for each bone: zero but for three in a finger."""
    fingers = theta[6:].reshape(FINGERS, 4)
    around_x, around_z = jnp.zeros(bones), jnp.zeros(bones)
    first = FIRST_BONE + 4 * np.arange(FINGERS)
    for joint, angle in enumerate((0, 2, 3)):
        around_x = around_x.at[first + joint].set(fingers[:, angle])
    return jnp.stack([around_x, around_z.at[first].set(fingers[:, 1])], axis=1)


def bend(angles: jax.Array) -> jax.Array:
    """The homogeneous matrix of a rotation around x, then around z."""
    (cx, cz), (sx, sz) = jnp.cos(angles), jnp.sin(angles)
    zero, one = jnp.zeros(()), jnp.ones(())
    rows = [[cz, -sz * cx, sz * sx, zero], [sz, cz * cx, -cz * sx, zero], [zero, sx, cx, zero]]
    return jnp.array([*rows, [zero, zero, zero, one]])


def skin(theta: jax.Array, hand: Hand, mirrored: bool) -> jax.Array:
    """The positions of the vertices, each a mean of where the bones would take it."""
    transforms = (bone_transforms(theta, hand) @ hand["inverse_absolutes"])[:, :3, :]
    weighted = hand["weights"][:, :, None] * hand["positions"][:, None, :]  # (vertices, bones, 4)
    positions = jnp.einsum("vbj,bij->vi", weighted, transforms)
    if mirrored:
        positions = positions * jnp.array([-1.0, 1.0, 1.0])
    return positions @ angle_axis_rotation(theta[:3]).T + theta[3:6]


def bone_transforms(theta: jax.Array, hand: Hand) -> jax.Array:
    """Each bone's matrix, after that of its parent; the root's parent, past the end, is the identity."""
    bones = len(hand["parents"])
    relatives = hand["relatives"] @ jax.vmap(bend)(bend_angles(theta, bones))
    start = jnp.zeros((bones + 1, 4, 4)).at[bones].set(jnp.eye(4))

    def join(absolutes: jax.Array, bone: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        place, parent, relative = bone
        return absolutes.at[place].set(absolutes[parent] @ relative), None

    return jax.lax.scan(join, start, (jnp.arange(bones), hand["parents"], relatives))[0][:bones]


def residuals(theta: jax.Array, us: jax.Array, hand: Hand, *, mirrored: bool) -> jax.Array:
    """A row for each measured point: it, less the point of the skin that it belongs to.

    That is a vertex, or (where there are `us`) in a triangle, with the first two barycentric coordinates u.
    """
    positions = skin(theta, hand, mirrored)
    if "corners" not in hand:
        return hand["points"] - positions[hand["vertices"]]
    first, second, third = (positions[hand["corners"][:, k]] for k in range(3))
    u, v = us[:, :1], us[:, 1:]
    return hand["points"] - (u * first + v * second + (1 - u - v) * third)


def _read(value: Input) -> Operands:
    data = value.at("data")
    model = data.at("model")
    bones = model.at("bone_count").integer(at_least=FIRST_BONE + 4 * FINGERS)
    positions = model.at("base_positions").floats(None, 4)
    points = data.at("points").floats(None, 3)
    us = value.at("us").floats(None, 2)
    hand: Hand = {
        "parents": _parents(model.at("parents"), bones),
        "relatives": model.at("base_relatives").floats(bones, 4, 4),
        "inverse_absolutes": model.at("inverse_base_absolutes").floats(bones, 4, 4),
        "positions": positions,
        "weights": model.at("weights").floats(len(positions), bones),
        "points": points,
    }
    belonging = data.at("correspondences")
    if len(us):
        triangles = model.at("triangles").indices(len(positions), None, 3)
        hand["corners"] = triangles[belonging.indices(len(triangles), len(points))]
        us = value.at("us").floats(len(points), 2)
    else:
        hand["vertices"] = belonging.indices(len(positions), len(points))
    static = {"mirrored": model.at("is_mirrored").boolean()}
    return Operands((value.at("theta").floats(THETA), us, hand), static)


def _parents(value: Input, bones: int) -> np.ndarray:
    """The number of the bone to which each is joined, and that of none for a root; parents come first."""
    parents = value.floats(bones).astype(int)
    if np.any((parents < -1) | (parents >= np.arange(bones))):
        raise ArgumentError(f"{value.path} has a bone that does not come after its parent")
    return np.where(parents < 0, bones, parents)


def _flat(rows: jax.Array) -> list[float]:
    return plain(rows.ravel())


def functions(bridge: Bridge) -> dict[str, Function]:
    bridged = bridge(residuals, static_argnames="mirrored")

    def jacobian(theta: jax.Array, us: jax.Array, hand: Hand, **static: Any) -> jax.Array:
        """Columns for u and v, where there are any, and theta: a residual knows only its own u and v."""

        def derivative(of: Any, at: jax.Array, tangents: jax.Array) -> jax.Array:
            return jax.vmap(lambda tangent: jax.jvp(of, (at,), (tangent,))[1])(tangents)

        columns = derivative(lambda t: bridged(t, us, hand, **static), theta, jnp.eye(THETA))
        if len(us):
            sides = jnp.broadcast_to(jnp.eye(2)[:, None, :], (2, *us.shape))
            own = derivative(lambda u: bridged(theta, u, hand, **static), us, sides)
            columns = jnp.concatenate([own, columns])
        return columns.reshape(len(columns), -1).T

    return {
        "objective": Function(bridged, _read, _flat),
        "jacobian": Function(jacobian, _read, plain),
    }
