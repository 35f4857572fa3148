"""Logistic regression by truncated Newton-CG, with its gradient and Hessian-vector products made in Julia.

The data are scikit-learn's breast-cancer measurements: 569 tumours, 30 features. The optimum is checked
against scipy's.

    python examples/logistic_regression.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from sklearn.datasets import load_breast_cancer

import pybridge as pb

REGULARISATION = 1.0
GRADIENT_TOLERANCE = 1e-10  # the largest element of the gradient at the optimum
SAME_OPTIMUM = 1e-6  # how far two optima may be apart, in any weight


def loss(weights, features, labels):
    """The mean negative log likelihood of labels of -1 and 1, and a ridge term."""
    margins = labels * (features @ weights)
    ridge = 0.5 * REGULARISATION * jnp.sum(weights**2)
    return jnp.mean(jax.nn.softplus(-margins)) + ridge / features.shape[0]


def data(dtype=np.float64):
    """Standardised features with a column of ones, and labels of -1 and 1."""
    features, labels = load_breast_cancer(return_X_y=True)
    features = (features - features.mean(0)) / features.std(0)
    features = np.hstack([features, np.ones((len(features), 1))])
    return features.astype(dtype), np.where(labels == 1, 1.0, -1.0).astype(dtype)


def example_args(name):
    features, labels = data(np.float32)
    weights = np.random.default_rng(0).standard_normal(features.shape[1]).astype(np.float32)
    return 0.1 * weights, features, labels


@dataclass(frozen=True)
class Fit:
    weights: np.ndarray
    loss: float
    gradient: float
    newton_steps: int
    products: int


def newton_cg(value: Callable, gradient: Callable, product: Callable, weights: np.ndarray) -> Fit:
    """Newton's method; each system is solved by conjugate gradients, only as well as the step deserves.

    product: (weights, v) -> the Hessian times v. A backtracking line search makes it descend from anywhere.
    """
    steps = products = 0
    g = np.asarray(gradient(weights))
    while np.max(np.abs(g)) > GRADIENT_TOLERANCE and steps < 100:
        step, used = _conjugate_gradients(lambda v, w=weights: np.asarray(product(w, v)), -g)
        weights = _line_search(value, weights, step, g @ step)
        g = np.asarray(gradient(weights))
        steps, products = steps + 1, products + used
    return Fit(weights, float(value(weights)), float(np.max(np.abs(g))), steps, products)


def _conjugate_gradients(product: Callable, right: np.ndarray) -> tuple[np.ndarray, int]:
    """Solves H x = right until the residual has fallen by the forcing term that makes Newton superlinear."""
    size = np.linalg.norm(right)
    enough = size * min(0.5, np.sqrt(size))
    x, residual, direction = np.zeros_like(right), right, right
    for used in range(1, 10 * len(right)):  # noqa: B007 - the last one is the result
        h = product(direction)
        length = (residual @ residual) / (direction @ h)
        x, fresh = x + length * direction, residual - length * h
        if np.linalg.norm(fresh) <= enough:
            break
        direction = fresh + (fresh @ fresh) / (residual @ residual) * direction
        residual = fresh
    return x, used


def _line_search(value: Callable, weights: np.ndarray, step: np.ndarray, slope: float) -> np.ndarray:
    """Halves the step until the loss falls by a hundredth of a per cent of what the slope promises."""
    start, length = float(value(weights)), 1.0
    while float(value(weights + length * step)) > start + 1e-4 * length * slope and length > 1e-10:
        length /= 2
    return weights + length * step


def fit(features: np.ndarray, labels: np.ndarray, engine: str = "transpose") -> Fit:
    """`engine` makes all derivatives: the gradient in reverse mode, products forward over reverse."""
    bridged = pb.bridge(loss, engine=engine)
    value = jax.jit(lambda w: bridged(w, features, labels))
    gradient = jax.jit(jax.grad(value))
    product = jax.jit(lambda w, v: jax.jvp(jax.grad(value), (w,), (v,))[1])
    return newton_cg(value, gradient, product, np.zeros(features.shape[1]))


def fit_by_scipy(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """With JAX's own gradient, and another method."""
    both = jax.jit(jax.value_and_grad(lambda w: loss(w, features, labels)))
    start = np.zeros(features.shape[1])
    result = scipy.optimize.minimize(
        lambda w: tuple(map(np.asarray, both(w))), start, jac=True, method="BFGS", options={"gtol": 1e-10}
    )
    return result.x


def report() -> bool:
    """Fits, prints, and says whether both optima are the same."""
    with jax.enable_x64(True):
        features, labels = data()
        ours, theirs = fit(features, labels), fit_by_scipy(features, labels)
    apart = float(np.max(np.abs(ours.weights - theirs)))
    accuracy = float(np.mean(np.sign(features @ ours.weights) == labels))
    print(f"loss {ours.loss:.12f}, largest gradient element {ours.gradient:.1e}, accuracy {accuracy:.1%}")
    print(f"{ours.newton_steps} Newton steps, {ours.products} Hessian-vector products")
    verdict = "the same optimum" if apart < SAME_OPTIMUM else "ANOTHER OPTIMUM"
    print(f"largest difference from scipy's weights {apart:.1e} (allowed {SAME_OPTIMUM:.0e}): {verdict}")
    return apart < SAME_OPTIMUM and ours.gradient <= GRADIENT_TOLERANCE


if __name__ == "__main__":
    sys.exit(0 if report() else 1)
