"""Stencils of Polybench and NPBench: slices of whole arrays, some with loops that go element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.lax import fori_loop

from .kernel import Array, Kernel, Kind, Program, uniform


def _in_turns(steps: int, inner: Any, stencil: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    """Two arrays whose inner elements are computed of one another in turn; gives the first."""

    def program(a, b):
        def step(_, state):
            a, b = state
            b = b.at[inner].set(stencil(a))
            return a.at[inner].set(stencil(b)), b

        return fori_loop(1, steps, step, (a, b))[0]

    return program


def jacobi_1d(steps: int, n: int) -> Program:
    def mean(x):
        return (x[:-2] + x[1:-1] + x[2:]) / 3

    return _in_turns(steps, np.s_[1:-1], mean), uniform((n,), (n,))


def jacobi_2d(steps: int, n: int) -> Program:
    def mean(x):
        return (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1]) / 5

    return _in_turns(steps, np.s_[1:-1, 1:-1], mean), uniform((n, n), (n, n))


def heat_3d(steps: int, n: int) -> Program:
    inner = (slice(1, -1),) * 3

    def second_difference(x, axis):
        before, after = list(inner), list(inner)
        before[axis], after[axis] = slice(None, -2), slice(2, None)
        return x[tuple(after)] - 2 * x[inner] + x[tuple(before)]

    def flow(x):
        return x[inner] + sum(second_difference(x, axis) for axis in range(3)) / 8

    return _in_turns(steps, inner, flow), uniform((n, n, n), (n, n, n))


def fdtd_2d(steps: int, nx: int, ny: int) -> Program:
    """Finite differences in time of Maxwell's equations in the plane."""

    def program(hz, ex, ey, source):
        def step(t, state):
            ex, ey, hz = state
            ey = ey.at[0, :].set(source[t])
            ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
            ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
            curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
            return ex, ey, hz.at[:-1, :-1].add(-0.7 * curl)

        return fori_loop(0, steps, step, (ex, ey, hz))[2]

    return program, uniform((nx, ny), (nx, ny), (nx, ny), (steps,))


def seidel_2d(steps: int, n: int) -> Program:
    """Gauss-Seidel: each mean of nine is taken of elements that the same sweep has set."""

    def program(a):
        def element(i, j, a):
            around = [a[i + di, j + dj] for di in (-1, 0, 1) for dj in (-1, 0, 1)]
            return a.at[i, j].set(sum(around) / 9)

        def row(i, a):
            return fori_loop(1, n - 1, lambda j, a: element(i, j, a), a)

        return fori_loop(1, steps, lambda _, a: fori_loop(1, n - 1, row, a), a)

    return program, uniform((n, n))


def adi(steps: int, n: int) -> Program:
    """Alternating direction implicit method for the heat equation."""
    explicit, implicit = 2.0 * n * n / steps, 1.0 * n * n / steps
    a, b = -explicit / 2, 1 + explicit
    d, e = -implicit / 2, 1 + implicit
    inner = slice(1, -1)

    def sweep(right, x, a, b, c):
        """Solves along the columns of x, whose ends are 1; right: of each column the right-hand side."""
        p = jnp.zeros((n - 2, n))
        q = jnp.zeros((n - 2, n)).at[:, 0].set(1.0)

        def forward(j, state):
            p, q = state
            pivot = a * p[:, j - 1] + b
            return p.at[:, j].set(-c / pivot), q.at[:, j].set((right(j) - a * q[:, j - 1]) / pivot)

        p, q = fori_loop(1, n - 1, forward, (p, q))
        x = x.at[inner, 0].set(1.0).at[inner, n - 1].set(1.0)

        def backward(k, x):
            j = n - 2 - k
            return x.at[inner, j].set(p[:, j] * x[inner, j + 1] + q[:, j])

        return fori_loop(0, n - 2, backward, x)

    def step(_, u):
        def of_columns(j):
            return -d * u[j, :-2] + (1 + 2 * d) * u[j, 1:-1] - d * u[j, 2:]

        v = sweep(of_columns, jnp.zeros((n, n)), a, b, a).T

        def of_rows(j):
            return -a * v[:-2, j] + (1 + 2 * a) * v[1:-1, j] - a * v[2:, j]

        return sweep(of_rows, u, d, e, d)

    return lambda u: fori_loop(0, steps, step, u), uniform((n, n))


def deriche(width: int, height: int) -> Program:
    """Deriche's recursive filter, along one axis and then the other."""
    alpha = 0.25
    decay = np.exp(-alpha)
    k = (1 - decay) ** 2 / (1 + 2 * alpha * decay - decay**2)
    ahead, behind = (k, k * decay * (alpha - 1)), (k * decay * (alpha + 1), -k * decay**2)
    feedback = (2.0**-alpha, -(decay**2))

    def causal(x):
        y = jnp.zeros_like(x).at[:, 0].set(ahead[0] * x[:, 0])
        y = y.at[:, 1].set(ahead[0] * x[:, 1] + ahead[1] * x[:, 0] + feedback[0] * y[:, 0])

        def column(j, y):
            new = ahead[0] * x[:, j] + ahead[1] * x[:, j - 1]
            return y.at[:, j].set(new + feedback[0] * y[:, j - 1] + feedback[1] * y[:, j - 2])

        return fori_loop(2, x.shape[1], column, y)

    def anticausal(x):
        n = x.shape[1]
        y = jnp.zeros_like(x).at[:, n - 2].set(behind[0] * x[:, n - 1])

        def column(k, y):
            j = n - 3 - k
            new = behind[0] * x[:, j + 1] + behind[1] * x[:, j + 2]
            return y.at[:, j].set(new + feedback[0] * y[:, j + 1] + feedback[1] * y[:, j + 2])

        return fori_loop(0, n - 2, column, y)

    def smooth(x):
        return causal(x) + anticausal(x)

    return lambda image: smooth(smooth(image).T).T, uniform((width, height))


def cavity_flow(n: int, steps: int, iterations: int) -> Program:
    """Navier-Stokes in a box with a moving lid, the pressure by Jacobi's iteration."""
    dx = dy = 2.0 / (n - 1)
    dt, density, viscosity = 0.001, 1.0, 0.1
    inner, left, right = np.s_[1:-1, 1:-1], np.s_[1:-1, :-2], np.s_[1:-1, 2:]
    below, above = np.s_[:-2, 1:-1], np.s_[2:, 1:-1]

    def source(u, v):
        ux, uy = (u[right] - u[left]) / (2 * dx), (u[above] - u[below]) / (2 * dy)
        vx, vy = (v[right] - v[left]) / (2 * dx), (v[above] - v[below]) / (2 * dy)
        return density * ((ux + vy) / dt - ux**2 - 2 * uy * vx - vy**2)

    def pressure(p, b):
        def step(_, p):
            across = (p[right] + p[left]) * dy**2 + (p[above] + p[below]) * dx**2
            p = p.at[inner].set((across - dx**2 * dy**2 * b) / (2 * (dx**2 + dy**2)))
            p = p.at[:, -1].set(p[:, -2]).at[0, :].set(p[1, :])
            return p.at[:, 0].set(p[:, 1]).at[-1, :].set(0.0)

        return fori_loop(0, iterations, step, p)

    def moved(w, u, v, slope):
        carried = u[inner] * dt / dx * (w[inner] - w[left]) + v[inner] * dt / dy * (w[inner] - w[below])
        x = dt / dx**2 * (w[right] - 2 * w[inner] + w[left])
        y = dt / dy**2 * (w[above] - 2 * w[inner] + w[below])
        return w.at[inner].set(w[inner] - carried - slope + viscosity * (x + y))

    def program(u, v, p):
        def step(_, state):
            u, v, p = state
            p = pressure(p, source(u, v))
            along = dt / (2 * density * dx) * (p[right] - p[left])
            upward = dt / (2 * density * dy) * (p[above] - p[below])
            new_u, new_v = moved(u, u, v, along), moved(v, u, v, upward)
            new_u = new_u.at[0, :].set(0.0).at[:, 0].set(0.0).at[:, -1].set(0.0).at[-1, :].set(1.0)
            new_v = new_v.at[0, :].set(0.0).at[-1, :].set(0.0).at[:, 0].set(0.0).at[:, -1].set(0.0)
            return new_u, new_v, p

        return fori_loop(0, steps, step, (u, v, p))

    return program, tuple(x / 10 for x in uniform((n, n), (n, n), (n, n)))


KERNELS = (
    Kernel("jacobi_1d", Kind.STENCIL, jacobi_1d, (40, 120), (100, 400), (3, 8)),
    Kernel("jacobi_2d", Kind.STENCIL, jacobi_2d, (40, 90), (100, 250), (3, 6)),
    Kernel("heat_3d", Kind.STENCIL, heat_3d, (40, 20), (100, 40), (3, 5)),
    Kernel("fdtd_2d", Kind.STENCIL, fdtd_2d, (40, 60, 80), (100, 200, 240), (3, 5, 6)),
    Kernel("seidel_2d", Kind.INDEXED, seidel_2d, (40, 120), None, (3, 6)),
    Kernel("adi", Kind.INDEXED, adi, (40, 60), (100, 200), (3, 7)),
    Kernel("deriche", Kind.INDEXED, deriche, (192, 128), (720, 480), (6, 7)),
    Kernel("cavity_flow", Kind.STENCIL, cavity_flow, (41, 25, 5), (61, 25, 5), (7, 3, 2)),
)
