"""Small models for whose Programs a system image is compiled: `python -m benchmarks.image_models`.

Writes julia/image/models.txt. What matters is which primitives meet, in which order of axes and in which
sizes: a matrix product has another kernel from some size on, and large arrays are split between threads.
"""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
from jax import lax

import pybridge as pb

_FILE = Path(__file__).parents[1] / "julia" / "image" / "models.txt"


def attention(x, query, key, value, scale):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    x = scale * centred * lax.rsqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)
    q, k, v = (jnp.einsum("btd,dhe->bthe", x, w) for w in (query, key, value))
    weights = jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", q, k) / 4.0, axis=-1)
    mixed = jnp.einsum("bhqk,bkhe->bqhe", weights, v)
    return jnp.sum(jax.nn.gelu(mixed) ** 2)


def classifier(x, w, b, last, labels):
    x = jax.nn.relu(x @ w + b)
    scores = jax.nn.log_softmax(x @ last)
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))


def convolution(images, filters, bias, last):
    layout = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(images, filters, (1, 1), "SAME", dimension_numbers=layout)
    x = lax.reduce_window(jax.nn.relu(x + bias), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jnp.sum(jnp.tanh(x.reshape(x.shape[0], -1) @ last))


def recurrent(inputs, w, u, b):
    def step(h, x):
        z, r, n = jnp.split(x @ w + h @ u + b, 3, axis=-1)
        z, r = jax.nn.sigmoid(z), jax.nn.sigmoid(r)
        h = (1 - z) * h + z * jnp.tanh(r * n)
        return h, h

    h, path = lax.scan(step, jnp.zeros((inputs.shape[1], u.shape[0]), inputs.dtype), inputs)
    return jnp.sum(h[:, 1:] ** 2) + jnp.mean(path)


def joints(angles, links):
    pose = jnp.eye(4)
    for k in range(angles.shape[0]):
        c, s, i, j = jnp.cos(angles[k]), jnp.sin(angles[k]), k % 3, (k + 1) % 3
        turn = jnp.eye(4).at[i, i].set(c).at[j, j].set(c).at[i, j].set(-s).at[j, i].set(s)
        pose = pose @ turn.at[:3, 3].set(links[k])
    return jnp.sum(pose[:3, 3] ** 2)


def process(x, y, length, noise):
    covariance = jnp.exp(-0.5 * ((x[:, None] - x[None, :]) / length) ** 2) + noise * jnp.eye(x.shape[0])
    factor = jnp.linalg.cholesky(covariance)
    whitened = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
    return 0.5 * whitened @ whitened + jnp.sum(jnp.log(jnp.diag(factor)))


def solves(a, b):
    return jnp.sum(jnp.linalg.solve(a + 10 * jnp.eye(a.shape[0]), b) ** 2)


def mixture(x, means, scales, weights):
    squared = jnp.sum(((x[:, None, :] - means) / jnp.exp(scales)) ** 2, axis=-1)
    terms = jax.nn.log_softmax(weights) - 0.5 * squared - jnp.sum(scales, axis=-1)
    return jnp.sum(jax.scipy.special.logsumexp(terms, axis=1))


def root(a, x):
    def better(state):
        k, x = state
        return k + 1, lax.cond(jnp.all(x > 0), lambda x: 0.5 * (x + a / x), lambda x: x**2 + 1.0, x)

    _, x = lax.while_loop(lambda s: (s[0] < 20) & jnp.any(jnp.abs(s[1] ** 2 - a) > 1e-12), better, (0, x))
    return jnp.sum(x) + jnp.sum(lax.stop_gradient(x) * a)


def sampled(key, positions, box):
    """Particles in a periodic box, moved at random; waves at where they are."""
    normal, uniform = jax.random.split(key)
    moved = positions + 0.1 * jax.random.normal(normal, positions.shape)
    between = jnp.mod(moved[:, None] - moved[None, :] + box / 2, box) - box / 2
    squared = jnp.sum(between**2, axis=-1) + jnp.eye(moved.shape[0])
    kept = jax.random.uniform(uniform, squared.shape) < 0.9
    phases = jnp.exp(1j * moved[:, 0]) * lax.complex(jnp.cos(moved[:, 1]), jnp.sin(moved[:, 1]))
    energy = jnp.sum(jnp.where(kept & (squared < 4.0), squared**-3.0 - jnp.power(squared, -1.5), 0.0))
    return energy + jnp.sum(jnp.abs(phases + 2) ** 2) + jnp.real(jnp.vdot(phases, phases * phases))


def solver(y, times, stiffness):
    """Adaptive steps of Heun's method that keep samples, and a search in them."""

    def field(y):
        return jnp.stack([y[1], -stiffness * jnp.sin(y[0])])

    def unfinished(state):
        _, y, _, k, _, times = state
        return (k < times.shape[0]) & ~jnp.any(jnp.isnan(y))

    def step(state):
        t, y, h, k, samples, times = state
        slope = field(y)
        end_slope = field(y + h * slope)
        error = jnp.max(jnp.abs(h / 2 * (end_slope - slope)))
        accepted = error < 1e-3
        y = lax.cond(accepted, lambda: y + h / 2 * (slope + end_slope), lambda: y)
        sampled = accepted & (t + h >= times[k])
        samples = jnp.where(sampled, samples.at[k].set(y), samples)
        factor = jnp.clip(0.9 * jnp.sqrt(1e-3 / (error + 1e-12)), 0.2, 5.0)
        return jnp.where(accepted, t + h, t), y, h * factor, k + sampled, samples, times

    start = (0.0, y, 0.05, 0, jnp.zeros((times.shape[0], 2)), times)
    samples = lax.while_loop(unfinished, step, start)[4]
    angles, speeds = jnp.split(samples, 2, axis=1)
    ranked = jnp.take(speeds[:, 0], jnp.argsort(angles[:, 0]))
    last = lax.fori_loop(0, ranked.size, lambda i, k: jnp.where(ranked[i] < 0, i, k), 0)
    return jnp.sum(samples**2) + jnp.min(ranked) + jnp.prod(lax.dynamic_slice(ranked, (last // 2,), (3,)))


def waves(u, speed):
    def step(k, state):
        u, before = state
        along = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
        inner = jnp.pad(along[1:-1, 1:-1], 1)
        return (2 * u - before + speed * inner).at[k, 0].add(0.1), u

    u, _ = lax.fori_loop(0, 6, step, (u, u))
    return jnp.sum(jnp.cumsum(u, axis=1) ** 2)


def bodies(masses, q, v):
    def step(state, _):
        q, v = state
        between = q[None, :, :] - q[:, None, :]
        squared = jnp.sum(between**2, axis=-1) + 0.1
        v = v + 0.01 * jnp.sum(masses[None, :, None] * between / (squared**1.5)[:, :, None], axis=1)
        return (q + 0.01 * v, v), jnp.sum(v**2)

    (q, v), energies = lax.scan(step, (q, v), None, length=20)
    return jnp.sum(q**2) + jnp.sum(energies)


def quantiles(x, scale):
    x = jnp.sort(x * scale)
    chosen = jnp.where(x > jnp.median(x), x, 0.1 * x)
    return jnp.sum(jnp.clip(chosen, -1, 1)) + jnp.max(x) + jnp.prod(x[:3]) + x[jnp.argmin(jnp.abs(x))]


@jax.custom_vjp
def clipped(x):
    """The identity, whose cotangent is clipped."""
    return x + 0.0


clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (jnp.clip(g, -1, 1) * (x > -2),))


def checkpointed(path, w, scale):
    """Steps of a small network that are computed again for its gradient; each layer has another function."""
    functions = (jnp.tanh, jax.nn.softplus, lambda x: x / (1 + x**2))

    def step(state, x):
        for k, f in enumerate(functions):
            state = f(clipped(w @ state) + x[k]) * scale
            state = state - jnp.max(state, axis=0) * jnp.exp(-jnp.sum(state**2, axis=1, keepdims=True))
        return state, state[0]

    state, rows = lax.scan(jax.checkpoint(step), jnp.ones((w.shape[0], 5)), path)
    return jnp.sum(state**2) + jnp.sum(rows)


def _of(dtype, *shapes):
    return [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]


_F32, _F64 = jnp.float32, jnp.float64
MODELS = (
    (attention, _of(_F32, (4, 32, 64), (64, 4, 16), (64, 4, 16), (64, 4, 16), (64,))),
    (classifier, [*_of(_F32, (128, 784), (784, 512), (512,), (512, 10)), *_of(jnp.int32, (128,))]),
    (convolution, _of(_F32, (8, 16, 16, 3), (3, 3, 3, 8), (8,), (512, 10))),
    (recurrent, _of(_F32, (10, 16, 8), (8, 96), (32, 96), (96,))),
    (joints, _of(_F64, (12,), (12, 3))),
    (process, _of(_F64, (20,), (20,), (), ())),
    (solves, _of(_F64, (5, 5), (5,))),
    (mixture, _of(_F64, (100, 4), (3, 4), (3, 4), (3,))),
    (root, _of(_F64, (5,), (5,))),
    (sampled, [jax.eval_shape(lambda: jax.random.key(0)), *_of(_F64, (12, 2), ())]),
    (solver, _of(_F64, (2,), (8,), ())),
    (waves, _of(_F64, (40, 40), ())),
    (bodies, _of(_F64, (4,), (4, 3), (4, 3))),
    (quantiles, _of(_F32, (50,), (50,))),
    (checkpointed, _of(_F64, (8, 3), (7, 7), ())),
)


def main() -> None:
    with jax.enable_x64(True):
        texts = [pb.trace(f)(*args).text for f, args in MODELS]
    first, *rest = texts
    bare = [text.split("\n", 1)[1] for text in rest]  # without the line of the format
    _FILE.write_text("\n".join([first, *bare]), encoding="utf-8")


if __name__ == "__main__":
    main()
