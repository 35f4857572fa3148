"""The evals' problems once more, by numpy and loops: for numbers that may be complex, and not fast.

The imaginary part of f(x + ih) is h times f's derivative, to rounding where h is tiny: derivatives without
any differentiation system, and without differences that cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.special import multigammaln

TINY = 1e-100


def derivative(f: Callable, x: np.ndarray) -> np.ndarray:
    """f's derivatives by each element of x, along the last axis."""
    columns = []
    for k in range(x.size):
        stepped = x.astype(complex).ravel()
        stepped[k] += 1j * TINY
        columns.append(np.imag(f(stepped.reshape(x.shape))) / TINY)
    return np.stack(columns, axis=-1)


def gradient(f: Callable, x: np.ndarray) -> np.ndarray:
    return derivative(f, x).reshape(x.shape)


def llsq(x, n):
    t = -1 + np.arange(n) * 2 / (n - 1)
    return 0.5 * sum((np.sign(s) - sum(a * s**j for j, a in enumerate(x))) ** 2 for s in t)


def lse(x):
    return np.log(np.sum(np.exp(x)))


def ode(x, s):
    def slope(y):
        return np.array([x[0], *(x[i] * y[i - 1] for i in range(1, len(x)))])

    y, h = np.zeros_like(x), 2 / s
    for _ in range(s):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h * (k1 / 6 + k2 / 3 + k3 / 3 + k4 / 6)
    return y


def gmm(alpha, mu, q, lower, x, m, gamma):
    """The densities themselves, by determinants and inverses."""
    k, d = mu.shape
    n, scale = d + m + 1, np.eye(d) / gamma**2
    weights = np.exp(alpha) / np.sum(np.exp(alpha))
    likelihoods, log_prior = [np.zeros((), x.dtype) for _ in x], 0.0
    for c in range(k):
        root, remaining = np.diag(np.exp(q[c]) + 0 * np.sum(lower)), list(lower[c])
        for column in range(d):
            for row in range(column + 1, d):
                root[row, column] = remaining.pop(0)
        precision = root.T @ root
        for i, point in enumerate(x):
            apart = point - mu[c]
            density = np.exp(-0.5 * apart @ precision @ apart) * np.sqrt(np.linalg.det(precision))
            likelihoods[i] = likelihoods[i] + weights[c] * density / (2 * math.pi) ** (d / 2)
        log_prior += 0.5 * (n - d - 1) * np.log(np.linalg.det(precision))
        log_prior -= 0.5 * np.trace(np.linalg.inv(scale) @ precision) + multigammaln(n / 2, d)
        log_prior -= 0.5 * n * (d * math.log(2) + math.log(np.linalg.det(scale)))
    return sum(np.log(likelihood) for likelihood in likelihoods) + log_prior


def lstm(main, extra, state, sequence):
    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    layers, bits = len(main) // 2, sequence.shape[1]
    hidden, cell = list(state[0::2]), list(state[1::2])
    total = 0.0
    for now, following in pairwise(sequence):
        x = now * extra[0]
        for k in range(layers):
            (wf, wi, wo, wc), (bf, bi, bo, bc) = (main[2 * k + j].reshape(4, bits) for j in (0, 1))
            kept = cell[k] * sigmoid(x * wf + bf)
            cell[k] = kept + sigmoid(hidden[k] * wi + bi) * np.tanh(hidden[k] * wc + bc)
            hidden[k] = sigmoid(x * wo + bo) * np.tanh(cell[k])
            x = hidden[k]
        guess = x * extra[1] + extra[2]
        total = total + np.sum(following * (guess - np.log(np.sum(np.exp(guess)) + 2)))
    return -total / ((len(sequence) - 1) * bits)


def cross(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def rotation(axis):
    """The exponential of the axis' cross product, by its series."""
    total = term = np.eye(3, dtype=axis.dtype)
    for k in range(1, 40):
        term = term @ cross(axis) / k
        total = total + term
    return total


def reprojection(camera, point, weight, feature):
    x, y, z = rotation(camera[:3]) @ (point - camera[3:6])
    u, v = x / z, y / z
    radius = u * u + v * v
    stretch = 1 + camera[9] * radius + camera[10] * radius**2
    return weight * (camera[6] * stretch * np.array([u, v]) + camera[7:9] - feature)


def hand(theta, us, data):
    """Residuals of the hand, bone by bone and vertex by vertex."""
    model = data["model"]
    angles = np.zeros((model["bone_count"], 3), theta.dtype)  # around x, y and z
    rest = list(theta[6:])
    for finger in range(5):
        for joint in range(3):
            angles[2 + 4 * finger + joint, 0] = rest.pop(0)
            if joint == 0:
                angles[2 + 4 * finger, 2] = rest.pop(0)
    absolutes = []
    for bone, parent in enumerate(model["parents"]):
        bent = np.eye(4, dtype=theta.dtype)
        about_x, about_z = np.zeros(3, theta.dtype), np.zeros(3, theta.dtype)
        about_x[0], about_z[2] = angles[bone, 0], angles[bone, 2]
        bent[:3, :3] = rotation(about_z) @ rotation(about_x)
        relative = np.array(model["base_relatives"][bone]) @ bent
        absolutes.append(relative if parent == -1 else absolutes[parent] @ relative)
    vertices = []
    for position, weights in zip(model["base_positions"], model["weights"], strict=True):
        place = sum(
            w * (absolute @ np.array(inverse) @ np.array(position))[:3]
            for w, absolute, inverse in zip(weights, absolutes, model["inverse_base_absolutes"], strict=True)
        )
        sign = np.array([-1, 1, 1]) if model["is_mirrored"] else 1
        vertices.append(rotation(theta[:3]) @ (sign * place) + theta[3:6])
    errors = []
    for i, (where, point) in enumerate(zip(data["correspondences"], data["points"], strict=True)):
        if len(us):
            a, b, c = (vertices[v] for v in model["triangles"][where])
            errors.append(point - (us[i][0] * a + us[i][1] * b + (1 - us[i][0] - us[i][1]) * c))
        else:
            errors.append(point - vertices[where])
    return np.concatenate(errors)


def nearest(points, centroids):
    return [min(range(len(centroids)), key=lambda j: np.sum((centroids[j] - p) ** 2)) for p in points]


def descend(f: Callable, start: np.ndarray) -> np.ndarray:
    """Gradient descent, as GradBench's reference does it: its branches, and complex steps."""
    x, step, descents = start, 1e-5, 0
    value, slope = f(x), derivative(f, x)
    while np.linalg.norm(slope) > 1e-5:
        if descents == 10:
            step, descents = 2 * step, 0
            continue
        following = x - step * slope
        if np.linalg.norm(following - x) <= 1e-5:
            break
        if (new := f(following)) < value:
            x, value, slope, descents = following, new, derivative(f, following), descents + 1
        else:
            step, descents = step / 2, 0
    return x


def flight(w):
    """The squared distance from the origin at which the particle meets the axis."""
    x, v = np.array([0.0, 8.0]) + 0 * w, np.array([0.75, 0.0]) + 0 * w
    charges = [np.array([10 + 0 * w, 10 - w]), np.array([10.0, 0.0])]
    while True:
        force = sum((x - c) / ((x - c) @ (x - c)) ** 1.5 for c in charges)
        x = x + 0.1 * v
        if x[1].real <= 0:
            return (x[0] - x[1] / v[1] * v[0]) ** 2
        v = v + 0.1 * force
