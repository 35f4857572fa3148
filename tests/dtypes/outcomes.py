"""What a variant computes by JAX and by pybridge, and where these differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from casekit import QUICK, Case
from harness import Setup, reference

import pybridge as pb
from pybridge.ir.numerals import COMPLEX, DTYPES, FLOATS, dtype_name
from pybridge.ir.schema import names

EXECUTES = ("julia", "xla", "auto", "eager")
"""How Programs are executed; "eager" is auto outside of `jax.jit`, and has values alone."""
PARTS = ("value", "jvp", "vjp")

_LOOSE = frozenset(
    names("lgamma digamma igamma igammac igamma_grad_a polygamma zeta cholesky eigh eig svd qr lu saveable")
)
# Units in the last place of the largest number that may be lost, by dtype; the narrow ones round once.
_UNITS = {"f64": 256, "c128": 256, "f32": 64, "c64": 64, "f16": 12, "bf16": 6}


@dataclass(frozen=True)
class Finding:
    """kind: "crash", "hang", "wrong", "error", "refusal" or "accepted". text: what differs."""

    variant: str
    part: str
    execute: str
    kind: str
    text: str


@dataclass(frozen=True)
class Part:
    """The value or a derivative of a variant, as a function of what `arguments` has."""

    case: Case
    name: str
    setup: Setup

    def computation(self, f: Callable) -> Callable:
        smooth = self.setup.restricted(f)

        def values(*x: Any) -> Any:
            return smooth(*x)[0]

        def compute(inputs, _, tangents, cotangents):
            x = tuple(inputs[i] for i in self.case.active)
            if self.name == "value":
                return f(*inputs)
            if self.name == "jvp":
                return jax.jvp(values, x, tangents)[1]
            return jax.vjp(values, *x)[1](cotangents)

        return compute


def parts(case: Case) -> list[Part] | Exception:
    """What there is to compute, or why JAX refuses the operation at this dtype."""
    try:
        setup = Setup.of(case, ())
    except Exception as e:  # whatever JAX raises
        return e
    results = jax.tree.leaves(jax.eval_shape(case.f, *case.inputs()))
    derivatives = case.active and any(jnp.issubdtype(y.dtype, np.inexact) for y in results)
    there = {"value": True, "jvp": derivatives and setup.forward, "vjp": derivatives and case.reverse}
    return [Part(case, name, setup) for name in PARTS if there[name]]


def computed(wanted: list[Part], functions: list[Callable]) -> list[Any]:
    """For each part its arrays, or the exception there is instead. One compilation where all goes well."""

    def together(arguments):
        return [p.computation(f)(*args) for p, f, args in zip(wanted, functions, arguments, strict=True)]

    arguments = [part.setup.given for part in wanted]
    try:
        found = jax.jit(together, compiler_options=QUICK)(arguments)
        return [_arrays(x) for x in found]
    except Exception as e:
        if len(wanted) == 1:
            return [e]
    half = len(wanted) // 2
    return computed(wanted[:half], functions[:half]) + computed(wanted[half:], functions[half:])


def _arrays(tree: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def findings(variants: Iterable[Case], executes: Iterable[str]) -> Iterator[Finding | str]:
    """Where pybridge differs from JAX, and for each comparison without one the word "ok"."""
    wanted: list[Part] = []
    for case in variants:
        found = parts(case)
        if isinstance(found, Exception):
            yield from _refused(case, found, executes)
        else:
            wanted.extend(found)
    expected = computed(wanted, [case_reference(part) for part in wanted])
    for execute in executes:
        ours = executed(wanted, execute)
        for part, x, y in zip(wanted, ours, expected, strict=True):
            difference = None if x is None else compared(part, x, y)
            if difference is not None:
                yield Finding(part.case.name, part.name, execute, *difference)
            elif x is not None:
                yield "ok"


def executed(wanted: list[Part], execute: str) -> list[Any]:
    """For each part what its bridged function computes; None where it is not asked for."""
    chosen = "auto" if execute == "eager" else execute
    bridged = {part.case.name: pb.bridge(part.case.f, execute=chosen) for part in wanted}
    if execute != "eager":
        return computed(wanted, [bridged[part.case.name] for part in wanted])
    return [_eagerly(part.case, bridged[part.case.name]) if part.name == "value" else None for part in wanted]


def _eagerly(case: Case, f: Callable) -> Any:
    try:
        return _arrays(f(*map(jnp.asarray, case.inputs())))
    except Exception as e:
        return e


def case_reference(part: Part) -> Callable:
    """What JAX computes: the function itself, or what has the derivative that its own would have."""
    foreign = all(dtype_name(x.dtype) is None for x in part.setup.tangents)
    return part.case.f if part.name == "value" or foreign else reference(part.case)


def _refused(case: Case, expected: Exception, executes: Iterable[str]) -> Iterator[Finding | str]:
    """A function that JAX refuses to trace is refused here, too."""
    for execute in executes:
        try:
            jax.eval_shape(pb.bridge(case.f, execute=execute.replace("eager", "auto")), *case.inputs())
        except Exception as e:
            yield "ok" if _is_named(e) else Finding(case.name, "value", execute, "error", _short(e))
        else:
            yield Finding(case.name, "value", execute, "accepted", _short(expected))


def compared(part: Part, ours: Any, theirs: Any) -> tuple[str, str] | None:
    """The kind of difference and what differs, or None."""
    if isinstance(theirs, Exception):
        if not isinstance(ours, Exception):
            return "accepted", _short(theirs)
        return None if _is_named(ours) or _alike(ours, theirs) else ("error", _short(ours))
    if isinstance(ours, Exception):
        return ("refusal" if _is_named(ours) else "error"), _short(ours)
    if len(ours) != len(theirs):
        return "wrong", f"{len(ours)} results, not {len(theirs)}"
    special = part.case.name.endswith("/special")
    for k, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            return "wrong", f"result {k} is {x.dtype}{x.shape}, not {y.dtype}{y.shape}"
        differing = _special_difference(x, y, part) if special else _difference(x, y, part)
        if differing is not None:
            return "wrong", f"result {k} " + differing
    return None


def _is_named(e: Exception) -> bool:
    """Whether it is about the function, by pybridge or JAX, and no mistake in their code or in Julia's."""
    return isinstance(e, pb.PyBridgeError | TypeError | ValueError | NotImplementedError) and not isinstance(
        e, pb.JuliaError
    )


def _alike(ours: Exception, theirs: Exception) -> bool:
    """Whether XLA refuses both for one reason, behind the place; the names of instructions differ."""
    reasons = [_short(e).rpartition(" error: ")[2][:50] for e in (ours, theirs)]
    return type(ours) is type(theirs) and reasons[0] == reasons[1]


def _short(e: Exception) -> str:
    return f"{type(e).__name__}: {' '.join(str(e).split())[:300]}"


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _allowed(part: Part, name: str) -> float:
    return _UNITS[name] * float(jnp.finfo(DTYPES[name]).eps) * (64 if part.case.op in _LOOSE else 1)


def _difference(x: np.ndarray, y: np.ndarray, part: Part) -> str | None:
    """By how much arrays differ more than rounding explains, at the scale of the largest number."""
    name = dtype_name(y.dtype)
    if name not in _UNITS:
        return None if x.tobytes() == y.tobytes() else _places(x, y, x != y, part)
    a, b = _wide(x), _wide(y)
    with np.errstate(all="ignore"):
        scale = 1 + np.max(np.abs(b[np.isfinite(b)]), initial=0)
        equal = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= _allowed(part, name) * scale)
    return None if equal.all() else _places(x, y, ~equal, part)


def _special_difference(x: np.ndarray, y: np.ndarray, part: Part) -> str | None:
    """As above, but by the relative difference of each number, and signs of zeros count."""
    name = dtype_name(y.dtype)
    if name not in _UNITS:
        return None if x.tobytes() == y.tobytes() else _places(x, y, x != y, part)
    a, b = _wide(x), _wide(y)
    at = operand_kinds(part.setup.inputs, y.shape)
    with np.errstate(all="ignore"):
        if part.name != "value":
            equal = _same_derivative(a, b, at)
        elif y.dtype.kind == "c":
            equal = _near(a, b, name, part) | ~np.isfinite(a) & ~np.isfinite(b)
        else:
            equal = _near(a, b, name, part) & ((np.signbit(a) == np.signbit(b)) | (a != 0) | (b != 0))
            equal |= np.isnan(a) & np.isnan(b)
    equal |= at.subnormal
    if part.case.dtype in COMPLEX:  # what these are where an operand is not finite differs between libraries
        equal |= at.infinite | at.nan
    return None if equal.all() else _places(x, y, ~equal, part)


def _near(a: np.ndarray, b: np.ndarray, name: str, part: Part) -> np.ndarray:
    limits = jnp.finfo(DTYPES[name])
    cancels = part.case.op in _LOOSE or name in COMPLEX
    least = _allowed(part, name) if cancels else 4 * float(limits.tiny)
    return (np.abs(a - b) <= _allowed(part, name) * np.abs(b) + least) | (a == b)


def _same_derivative(a: np.ndarray, b: np.ndarray, at: OperandKinds) -> np.ndarray:
    """Whether a derivative is finite where JAX's is, and not finite where JAX's is not.

    Finite ones are compared at other numbers. What JAX computes on the way may overflow at large and small
    operands, or be infinity by infinity, where another formula does not, and the other way round.
    """
    excused = ~np.isnan(a) & at.extreme | np.isfinite(a) & at.infinite
    return (np.isfinite(a) == np.isfinite(b)) | excused & ~at.nan


@dataclass(frozen=True)
class OperandKinds:
    """Where an operand is NaN, infinite, subnormal, or so large or small that squares of it leave the range.

    XLA takes subnormal operands for zero in some functions and not in others, and so do native kernels.
    """

    nan: np.ndarray
    infinite: np.ndarray
    subnormal: np.ndarray
    extreme: np.ndarray


def operand_kinds(inputs: Sequence[np.ndarray], shape: tuple[int, ...]) -> OperandKinds:
    """Of the operands that have the shape of the result."""
    kinds = [np.zeros(shape, bool) for _ in range(4)]
    for x in inputs:
        if x.shape == shape and dtype_name(x.dtype) in FLOATS | COMPLEX:
            limits, size = jnp.finfo(x.dtype), np.abs(_wide(x))
            kinds[0] |= np.isnan(size)
            kinds[1] |= np.isinf(size)
            kinds[2] |= (size > 0) & (size < float(limits.tiny))
            kinds[3] |= (size > 0) & ((size < 0.01) | (size > 100))
    return OperandKinds(*kinds)


def _places(x: np.ndarray, y: np.ndarray, wrong: np.ndarray, part: Part) -> str:
    """The first differing numbers, with the operands where these are elementwise."""
    texts = []
    for i in np.flatnonzero(wrong.ravel())[:6]:
        inputs = part.setup.inputs
        at = [str(v.ravel()[i]) for v in inputs if v.shape == y.shape]
        texts.append(f"{x.ravel()[i]} not {y.ravel()[i]}" + (f" at ({', '.join(at)})" if at else ""))
    return f"[{int(wrong.sum())} of {wrong.size}]: " + "; ".join(texts)
