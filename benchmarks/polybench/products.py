"""Products of matrices and vectors, as Polybench's BLAS-like kernels have them."""

from __future__ import annotations

import jax.numpy as jnp

from .kernel import Kernel, Kind, Program, uniform

_ALPHA, _BETA = 1.5, 1.2


def gemm(ni: int, nj: int, nk: int) -> Program:
    return lambda a, b, c: _ALPHA * a @ b + _BETA * c, uniform((ni, nk), (nk, nj), (ni, nj))


def gemver(n: int) -> Program:
    def program(a, u1, v1, u2, v2, y, z):
        a = a + jnp.outer(u1, v1) + jnp.outer(u2, v2)
        x = _BETA * y @ a + z
        return _ALPHA * a @ x

    return program, uniform((n, n), *[(n,)] * 6)


def gesummv(n: int) -> Program:
    return lambda a, b, x: _ALPHA * a @ x + _BETA * b @ x, uniform((n, n), (n, n), (n,))


def atax(m: int, n: int) -> Program:
    return lambda a, x: (a @ x) @ a, uniform((m, n), (n,))


def bicg(m: int, n: int) -> Program:
    return lambda a, p, r: (r @ a, a @ p), uniform((n, m), (m,), (n,))


def mvt(n: int) -> Program:
    def program(a, x1, x2, y1, y2):
        return x1 + a @ y1, x2 + y2 @ a

    return program, uniform((n, n), *[(n,)] * 4)


def k2mm(ni: int, nj: int, nk: int, nl: int) -> Program:
    def program(a, b, c, d):
        return _ALPHA * a @ b @ c + _BETA * d

    return program, uniform((ni, nk), (nk, nj), (nj, nl), (ni, nl))


def k3mm(ni: int, nj: int, nk: int, nl: int, nm: int) -> Program:
    return lambda a, b, c, d: a @ b @ c @ d, uniform((ni, nk), (nk, nj), (nj, nm), (nm, nl))


KERNELS = tuple(
    Kernel(make.__name__, Kind.PRODUCT, make, small, medium, quick)
    for make, small, medium, quick in (
        (gemm, (60, 70, 80), (200, 220, 240), (4, 5, 6)),
        (gemver, (120,), (400,), (5,)),
        (gesummv, (90,), (250,), (5,)),
        (atax, (116, 124), (390, 410), (4, 5)),
        (bicg, (116, 124), (390, 410), (4, 5)),
        (mvt, (120,), (400,), (5,)),
        (k2mm, (40, 50, 70, 80), (180, 190, 210, 220), (3, 4, 5, 6)),
        (k3mm, (40, 50, 60, 70, 80), (180, 190, 200, 210, 220), (3, 4, 5, 6, 7)),
    )
)
