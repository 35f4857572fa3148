"""What a case is, and inputs for cases: random, away from poles and kinks, the same in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from pybridge.ir.numerals import DTYPES, is_inexact

Make = Callable[[np.random.Generator, str], np.ndarray]
"""Makes an input; the second argument is the dtype that the case is run at."""

QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""XLA's options for what runs once or twice: compiling takes most of the time."""

QUICK_FLAGS = " ".join(f"--{name}={str(value).lower()}" for name, value in QUICK.items())
"""The same for XLA_FLAGS, and so for all that a process compiles."""


@dataclass(frozen=True)
class Case:
    """One function to trace, differentiate, run and compare.

    name: unique; the random numbers are seeded from it.
    op: the primitive of docs/program.md that it is about, or "program".
    f: a JAX function of arrays.
    makes: how each input is made.
    dtype: the dtype given to `makes`, a key of numerals.DTYPES.
    active: the inputs with respect to which f has derivatives here, in JAX's terms too.
    exact: whether evaluating the traced Program op by op gives f's value to the bit. Not so where f has
        implicit broadcasts, which XLA may fuse into the operation.
    reverse: whether JAX can differentiate it in reverse mode (not through a `while`).
    batched: whether JAX can vmap it (not `linear_call`).
    second: whether it has second derivatives (not `igamma` by its first argument).
    reference: the same function in what JAX can differentiate and vmap, where it cannot f.
    """

    name: str
    op: str
    f: Callable[..., Any]
    makes: tuple[Make, ...]
    dtype: str = "f32"
    active: tuple[int, ...] = ()
    exact: bool = True
    reverse: bool = True
    batched: bool = True
    second: bool = True
    reference: Callable[..., Any] | None = None

    def rng(self, salt: str = "") -> np.random.Generator:
        digest = hashlib.sha256(f"{self.name}/{salt}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "little"))

    def inputs(self, salt: str = "") -> tuple[np.ndarray, ...]:
        """The input arrays; another salt gives another draw."""
        rng = self.rng(salt)
        return tuple(make(rng, self.dtype) for make in self.makes)

    def tangents(self, salt: str = "tangent") -> tuple[np.ndarray, ...]:
        """Random directions for the active inputs, of their shapes and dtypes."""
        rng, inputs = self.rng(salt), self.inputs()
        return tuple(direction(rng, inputs[i]) for i in self.active)

    @property
    def needs_x64(self) -> bool:
        return any(x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1) == 8 for x in self.inputs())

    def context(self):
        """The setting of 64-bit types under which the case is to be traced and run."""
        return jax.enable_x64(self.needs_x64)

    def __str__(self) -> str:
        return self.name


def direction(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
    """Standard normal numbers of the shape and dtype of `like`."""
    values = rng.standard_normal(like.shape)
    if like.dtype.kind == "c":
        values = values + 1j * rng.standard_normal(like.shape)
    return values.astype(like.dtype)


def converted(values: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers in a dtype, which for floats in an exact one are made larger first, and positive if unsigned.

    What a float out of the range of integers becomes depends on the processor, and so does NaN.
    """
    values = np.asarray(values)
    if is_inexact(dtype) or values.dtype.kind not in "fc":
        return values.astype(DTYPES[dtype])
    if dtype == "bool":
        return values.real > 0
    whole = np.rint(np.nan_to_num(4 * values.real, posinf=100, neginf=-100).clip(-100, 100))
    return (np.abs(whole) if dtype.startswith("u") else whole).astype(DTYPES[dtype])


def real(low: float, high: float, shape: tuple[int, ...] = (3, 4)) -> Make:
    """Floats between low and high; for complex dtypes both parts are, for exact ones they are rounded."""

    def make(rng: np.random.Generator, dtype: str) -> np.ndarray:
        values = rng.uniform(low, high, shape)
        if dtype in ("c64", "c128"):
            values = values + 1j * rng.uniform(low, high, shape)
        return converted(values, dtype)

    return make


def smooth(low: float, high: float, shape: tuple[int, ...] = (3, 4)) -> Make:
    """Floats whose distance from every multiple of 1/2 is at least 1/10: away from kinks at such places."""

    def make(rng: np.random.Generator, dtype: str) -> np.ndarray:
        steps = rng.integers(int(2 * low), int(2 * high), shape)
        return converted(steps / 2 + rng.uniform(0.1, 0.4, shape), dtype)

    return make


def distinct(shape: tuple[int, ...] = (3, 4), scale: float = 0.25) -> Make:
    """Floats no two of which are closer than `scale`: orders and maxima do not change nearby."""

    def make(rng: np.random.Generator, dtype: str) -> np.ndarray:
        size = int(np.prod(shape))
        values = (rng.permutation(size) - size / 2 + 0.3) * scale
        return converted(values.reshape(shape), dtype)

    return make


def ints(low: int, high: int, shape: tuple[int, ...] = (3, 4), dtype: str | None = None) -> Make:
    """Integers, low <= n < high; of the case's dtype unless one is given."""
    return lambda rng, given: np.asarray(rng.integers(low, high, shape)).astype(DTYPES[dtype or given])


def bools(shape: tuple[int, ...] = (3, 4)) -> Make:
    return lambda rng, _: np.asarray(rng.random(shape) < 0.5)


def whole_range(shape: tuple[int, ...] = (3, 4)) -> Make:
    """Integers of all magnitudes that the dtype has, bools, or floats."""

    def make(rng: np.random.Generator, dtype: str) -> np.ndarray:
        if dtype == "bool":
            return bools(shape)(rng, dtype)
        if is_inexact(dtype):
            return real(-9, 9, shape)(rng, dtype)
        info = np.iinfo(DTYPES[dtype])
        return rng.integers(info.min, info.max, shape, dtype=DTYPES[dtype], endpoint=True)

    return make


def given(values: Any, dtype: str | None = None) -> Make:
    """The same values in every draw: indices, mostly."""
    return lambda _, case_dtype: converted(np.asarray(values), dtype or case_dtype)


def batches(cases: Sequence[Case]) -> dict[str, Any]:
    """The cases by primitive and by their setting of 64-bit types, as arguments of pytest's `parametrize`."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(f"{case.op}{'/x64' if case.needs_x64 else ''}", []).append(case)
    return {"argvalues": list(found.values()), "ids": list(found)}


def computed(fs: Sequence[Callable], arguments: Sequence[tuple]) -> list[Any]:
    """The value of each function at its arguments. All are compiled as one program, in a fraction of the
    time that compiling each alone takes."""

    def together(arguments):
        return [f(*args) for f, args in zip(fs, arguments, strict=True)]

    return jax.jit(together, compiler_options=QUICK)(list(arguments))


WIDE = "f32 f64"
ANY = "f32 f64 c64 bf16"


def rows(
    op: str, dtypes: str, f, *makes: Make, active: tuple[int, ...] = (), name: str = "", **more
) -> list[Case]:
    """A case for each dtype; only the inexact ones have active inputs."""
    return [
        Case(f"{op}{name}/{dtype}", op, f, makes, dtype, active if is_inexact(dtype) else (), **more)
        for dtype in dtypes.split()
    ]
