"""Where a NaN or an infinity in a result comes from: the equation that made it of finite numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...ir.schema import OPERATIONS
from ...ir.types import Atom, Literal, Var
from ._frames import Frame, element_at
from ._report import Kind, NonFinite, Operand
from ._stages import Run
from ._ways_out import Birth, way_out

_TESTS: dict[Kind, Callable[[Any], Any]] = {
    "nan": lambda x: jnp.any(jnp.isnan(x)),
    "inf": lambda x: jnp.any(jnp.isinf(x)),
}


def first_nonfinite(run: Run, value: Frame) -> NonFinite | None:
    """Of the first result that has a NaN, else an infinity. `value`: the run of the function itself."""
    frame = value if run.stage == "value" else Frame(run.program, run.arguments)
    kinds: tuple[Kind, ...] = ("nan", "inf")
    for kind in kinds:
        for name, atom in zip(run.output_names, run.program.outputs, strict=True):
            if _has(kind, frame.read(atom)):
                return _Search(run, value).origin(frame, atom, kind, name)
    return None


def _has(kind: Kind, x: Any) -> bool:
    array = np.asarray(x)
    return jnp.issubdtype(array.dtype, jnp.inexact) and bool(_TESTS[kind](array))


class _Search:
    def __init__(self, run: Run, value: Frame):
        self.run, self.value = run, value

    def origin(self, frame: Frame, atom: Atom, kind: Kind, result: str, depth: int = 0) -> NonFinite:
        """Goes from a value to the operand that has the same, into bodies and out of them, to its maker."""
        while True:
            if isinstance(atom, Literal):
                return self._given(frame, f"the constant {atom.value}", kind, result)
            k = frame.maker(atom)
            if k is None:
                if frame.outside is None:
                    return self._given(frame, self.run.input_names[atom.id], kind, result)
                frame, atom = frame.outside(atom.id, _TESTS[kind])
                continue
            eq = frame.program.equations[k]
            output = next(i for i, v in enumerate(eq.outputs) if v is atom or v == atom)
            inner = frame.inside(eq, output, _TESTS[kind])
            if inner is not None and _has(kind, inner[0].read(inner[1])):
                frame, atom = inner
                continue
            before = self._same(frame, k, atom, kind)
            if before is None or isinstance(before, Literal):
                return self._birth(frame, k, atom, kind, result, depth)
            atom = before

    def _same(self, frame: Frame, k: int, atom: Var, kind: Kind) -> Atom | None:
        """The operand that has a NaN (infinity) already, at the same element where that can be told."""
        eq = frame.program.equations[k]
        having = [a for a in eq.inputs if _has(kind, frame.read(a))]
        if kind == "nan" or not having or not OPERATIONS[eq.op].elementwise:
            return having[0] if having else None
        index = _index(kind, frame.read(atom))
        at_index = [a for a in having if _is(kind, element_at(frame.read(a), index))]
        return at_index[0] if at_index else None

    def _birth(self, frame: Frame, k: int, atom: Var, kind: Kind, result: str, depth: int) -> NonFinite:
        eq = frame.program.equations[k]
        index = _index(kind, frame.read(atom))
        elementwise = OPERATIONS[eq.op].elementwise
        operands = []
        for a in eq.inputs:
            x = frame.read(a)
            at_index = element_at(x, index) if elementwise else None
            operands.append(Operand(str(a), str(a.type), _text(at_index if at_index is not None else x)))
        variables = [a for a in eq.inputs if kind == "nan" and isinstance(a, Var)]
        causes = [a for a in variables if _infinite(frame, a, index, elementwise)]
        cause = self.origin(frame, causes[0], "inf", result, depth + 1) if causes and depth < 8 else None
        birth = Birth(frame, k, index if elementwise else None, kind, self.run, self.value, cause)
        return NonFinite(
            self.run.stage,
            kind,
            result,
            eq.op,
            equation_text(eq),
            eq.source,
            k,
            frame.place,
            index,
            tuple(operands),
            way_out(birth),
            cause,
        )

    def _given(self, frame: Frame, name: str, kind: Kind, result: str) -> NonFinite:
        advice = f"{name} has it from the beginning"
        return NonFinite(self.run.stage, kind, result, "", name, "", None, frame.place, (), (), advice, None)


def _infinite(frame: Frame, atom: Atom, index: tuple[int, ...], elementwise: bool) -> bool:
    x = frame.read(atom)
    return _is("inf", element_at(x, index)) if elementwise else _has("inf", x)


def _index(kind: Kind, x: Any) -> tuple[int, ...]:
    array = np.asarray(x)
    found = np.isnan(array) if kind == "nan" else np.isinf(array)
    places = np.argwhere(found)  # none, where compiled loops round otherwise than their equations one by one
    return tuple(int(i) for i in places[0]) if len(places) else (0,) * array.ndim


def _is(kind: Kind, x: Any) -> bool:
    return (
        x is not None
        and jnp.issubdtype(np.asarray(x).dtype, jnp.inexact)
        and bool(np.isnan(x) if kind == "nan" else np.isinf(x))
    )


def _text(x: Any) -> str:
    array = np.asarray(x)
    if not array.ndim:
        return f"{array[()]:.6g}" if jnp.issubdtype(array.dtype, jnp.floating) else str(array[()])
    return ", ".join(_summary(array))


def _summary(array: np.ndarray) -> Iterator[str]:
    if not jnp.issubdtype(array.dtype, jnp.floating):
        yield "an array"
        return
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    if finite.size:
        yield f"{np.min(finite):.6g} to {np.max(finite):.6g}"
    for what, count in (("NaN", np.isnan(wide).sum()), ("inf", np.isinf(wide).sum())):
        if count:
            yield f"{count} {what}"


def equation_text(eq: Any) -> str:
    results = ", ".join(f"{v}: {v.type}" for v in eq.outputs)
    return f"{results} = {eq.op} {' '.join(map(str, eq.inputs))}".rstrip()
