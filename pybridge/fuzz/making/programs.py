"""Whole random Programs, at random inputs and in random directions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from ...ir.numerals import COMPLEX, DTYPES, FLOATS
from ...ir.program import Program
from ...ir.schema import names
from ...ir.types import TensorType
from . import arrays, control, elementwise, matrices
from .growing import Growth, sizes_of

MAKERS: dict[str, Callable[[Growth], None]] = {
    **elementwise.MAKERS,
    **arrays.MAKERS,
    **matrices.MAKERS,
    **control.MAKERS,
}
"""By the primitive that they add, with what else makes it fit.

There are none for what only transformations make (while_passes, custom_vjp_tangent) or what is there for
symbolic dimensions alone (dim_size).
"""

_NAMES = sorted(MAKERS)
_CONTROL = sorted(control.MAKERS)
_DTYPES = ["f32"] * 5 + ["f64"] * 5 + ["bf16", "f16", "c64", "c128"]
_SIZES = [1, 2, 3, 4, 5, 7, 8, 13]


@dataclass(frozen=True, eq=False)
class Sample:
    """A Program where it is to be run.

    tangents: for each inexact input. cotangents: for each inexact result.
    """

    program: Program
    inputs: tuple[np.ndarray, ...]
    tangents: tuple[np.ndarray, ...]
    cotangents: tuple[np.ndarray, ...]


def sample(seed: int, number: int) -> Sample:
    """The Program of that number in the run of that seed."""
    rng = random.Random(f"{seed}/{number}")
    with jax.enable_x64(True):
        program = _program(rng)
    made = at_random(program, rng.randrange(2**32))
    ops = {eq.op for eq in program.all_equations()}
    if not ENDLESS.isdisjoint(ops):
        return made
    change, numbers = rng.choices(_PLACES, _WEIGHTS)[0], np.random.default_rng(number)
    if change in (_with_special_numbers, _with_ties) and not UNLIKE_JAX.isdisjoint(ops):
        return made
    return replace(made, inputs=tuple(_in_parts(change, numbers, x) for x in made.inputs))


def at_random(program: Program, seed: int) -> Sample:
    """The Program at normally distributed numbers, small integers, and directions like them."""
    rng = np.random.default_rng(seed)
    inputs = tuple(_values(rng, t) for t in program.input_types)
    tangents = tuple(_values(rng, t) for t in program.input_types if t.inexact)
    cotangents = tuple(_values(rng, t) for t in program.output_types if t.inexact)
    return Sample(program, inputs, tangents, cotangents)


def _program(rng: random.Random) -> Program:
    while True:
        g = Growth(rng, 2, _one)
        for type_ in _input_types(rng):
            g.input(type_)
        g.grow(rng.randint(1, 8))
        inexact = [v for v in g.scope[len(g.inputs) :] if v.type.inexact and v not in g.hidden]
        if inexact:
            last = [inexact[-1], *rng.sample(inexact, min(len(inexact), rng.randint(0, 1)))]
            others = [v for v in g.scope[len(g.inputs) :] if not v.type.inexact and v not in g.hidden][-1:]
            return pruned(g.program([*dict.fromkeys(last), *others], "fuzzed"))


def _input_types(rng: random.Random) -> list[TensorType]:
    dtype, sizes = rng.choice(_DTYPES), rng.sample(_SIZES, 2)
    if rng.random() < 0.03:
        sizes[0] = 0

    def shape() -> tuple[int, ...]:
        return tuple(rng.choice(sizes) for _ in range(rng.choice([0, 1, 1, 2, 2, 3])))

    types = [TensorType(dtype, shape()) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.25:
        types.append(TensorType(rng.choice(_DTYPES), shape()))
    if rng.random() < 0.6:
        types.append(TensorType(rng.choice(["i32", "i32", "i64", "u8", "bool", "u32"]), shape()))
    return types


def _one(g: Growth) -> None:
    MAKERS[g.rng.choice(_CONTROL if g.depth and g.chance(0.12) else _NAMES)](g)


def pruned(program: Program) -> Program:
    """Without equations of which nothing is used."""
    used, kept = set(program.outputs), []
    for eq in reversed(program.equations):
        if not used.isdisjoint(eq.outputs):
            kept.append(eq)
            used.update(eq.inputs)
    return Program(program.name, program.inputs, tuple(kept[::-1]), program.outputs, program.constants)


def _values(rng: np.random.Generator, type_: TensorType) -> np.ndarray:
    shape, dtype = sizes_of(type_), DTYPES[type_.dtype]
    if type_.dtype == "bool":
        return rng.random(shape) < 0.5
    if type_.dtype in FLOATS:
        return np.asarray(rng.standard_normal(shape)).astype(dtype)
    if type_.dtype in COMPLEX:
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if rng.random() < 0.2:  # of all magnitudes
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return np.asarray(rng.integers(0, 6, shape)).astype(dtype)


# Where a sample is evaluated, other than at the numbers of `at_random`.


def _as_it_is(_: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return x


def _scaled(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Large or small as a whole, over most of the dtype's range."""
    decades = 0.4 * np.log10(float(jnp.finfo(x.dtype).max))
    return (x.astype(np.float64) * 10 ** rng.uniform(-decades, decades)).astype(x.dtype)


def _with_special_numbers(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Zeros of both signs, infinities, NaN, subnormal numbers and ones among the others."""
    least = float(jnp.finfo(x.dtype).smallest_subnormal)
    special = rng.choice([0.0, 0.0, -0.0, np.inf, -np.inf, np.nan, least, 1.0, -1.0], x.shape)
    return np.where(rng.random(x.shape) < 0.2, special, x).astype(x.dtype)


def _with_ties(_: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Halves, of which many are equal."""
    return (np.round(2 * x.astype(np.float64)) / 2).astype(x.dtype)


ENDLESS = frozenset(names("igamma igammac igamma_grad_a regularized_incomplete_beta zeta polygamma"))
"""Primitives whose loops in XLA, or those of a derivative, do not end at some special numbers."""
UNLIKE_JAX = frozenset(
    names(
        "cummax cummin cumlogsumexp reduce_max reduce_min reduce_window_max reduce_window_min "
        "select_and_gather_add"
    )
)
"""Primitives whose derivatives at equal numbers, infinities or NaN are not JAX's (docs/limits.md)."""

_PLACES = (_as_it_is, _scaled, _with_special_numbers, _with_ties)
_WEIGHTS = (7, 1, 1, 1)


def _in_parts(
    change: Callable[[np.random.Generator, np.ndarray], np.ndarray], rng: np.random.Generator, x: np.ndarray
) -> np.ndarray:
    """The change of an array of floats, or of the real and the imaginary parts; others stay."""
    if x.dtype.kind == "c":
        made = np.empty_like(x)
        made.real, made.imag = change(rng, x.real), change(rng, x.imag)
        return made
    return change(rng, x) if jnp.issubdtype(x.dtype, jnp.floating) else x
