"""A failing sample made smaller, as long as it fails in the same way.

Equations are dropped: what they gave becomes an input, at the numbers that it had; in nested Programs another
value of its type stands for it, or zeros. Then results go, and numbers become simple ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import jax
import numpy as np

from ..frontend.emission import to_jax
from ..ir.program import Equation, Program
from ..ir.types import Atom, Literal, Var
from .making import Sample, at_random
from .making.programs import pruned

Known = Mapping[Var, np.ndarray]

_RULES = frozenset({"custom_jvp", "custom_vjp", "custom_linear_solve", "linear_call"})
"""Their bodies belong together, so none is changed alone."""


def shrunk(sample: Sample, fails: Callable[[Sample], bool], budget: int = 100) -> Sample:
    """The smallest sample that at most so many questions find."""
    left = budget
    smaller = (_fewer_equations, _fewer_results, _smaller_bodies, _fewer_equations, _simpler_numbers)
    for candidates in smaller:
        found: Sample | None = sample
        while found is not None and left > 0:
            sample, found = found, None
            for candidate in candidates(sample):
                left -= 1
                if fails(candidate):
                    found = candidate
                    break
                if left <= 0:
                    break
        sample = found or sample
    return sample


# Equations


def _fewer_equations(sample: Sample) -> Iterator[Sample]:
    """Halves are dropped first, then quarters, then single equations."""
    count = len(sample.program.equations)
    known = _values(sample) if count > 1 else None
    size = count // 2
    while size and known is not None:
        for start in range(0, count, size):
            made = _without(sample.program, set(range(start, start + size)), known)
            if made is not None:
                yield made
        size //= 2


def _values(sample: Sample) -> Known | None:
    """Of every variable, by JAX; None where it cannot run the Program."""
    program = sample.program
    made = tuple(v for eq in program.equations for v in eq.outputs)
    try:
        with jax.enable_x64(True):
            found = jax.jit(to_jax(replace(program, outputs=made)))(*sample.inputs)
            arrays = (*sample.inputs, *map(np.asarray, found))
    except Exception:  # the sample then stays as long as it is
        return None
    return dict(zip((*program.inputs, *made), arrays, strict=True))


def _without(program: Program, dropped: set[int], known: Known) -> Sample | None:
    kept = [eq for k, eq in enumerate(program.equations) if k not in dropped]
    bound = {v for eq in kept for v in eq.outputs}
    outputs = [v for v in program.outputs if v in bound] or [v for eq in kept[-1:] for v in eq.outputs]
    if not outputs:
        return None
    inputs, alive = _closed(kept, outputs)
    made = Program(program.name, tuple(inputs), tuple(alive), tuple(outputs), program.constants)
    if len(alive) == len(program.equations):
        return None
    return replace(at_random(made, 0), inputs=tuple(known[v] for v in inputs))


def _closed(equations: Sequence[Equation], outputs: Sequence[Atom]) -> tuple[list[Var], list[Equation]]:
    """The equations that matter to the outputs, and the variables that none of them binds."""
    alive: list[Equation] = []
    used = set(outputs)
    for eq in reversed(equations):
        if not used.isdisjoint(eq.outputs):
            alive.append(eq)
            used.update(eq.inputs)
    bound = {v for eq in alive for v in eq.outputs}
    free = sorted((v for v in used if isinstance(v, Var) and v not in bound), key=lambda v: v.id)
    return free, alive[::-1]


# Results


def _fewer_results(sample: Sample) -> Iterator[Sample]:
    program = sample.program
    for k in range(len(program.outputs) if len(program.outputs) > 1 else 0):
        outputs = tuple(v for i, v in enumerate(program.outputs) if i != k)
        inputs, alive = _closed(program.equations, outputs)
        made = Program(program.name, tuple(inputs), tuple(alive), outputs, program.constants)
        arrays = dict(zip(program.inputs, sample.inputs, strict=True))
        yield replace(at_random(made, 0), inputs=tuple(arrays[v] for v in inputs))


# Bodies


def _smaller_bodies(sample: Sample) -> Iterator[Sample]:
    for made in _with_smaller_bodies(sample.program):
        yield replace(sample, program=made)


def _with_smaller_bodies(program: Program) -> Iterator[Program]:
    for k, eq in enumerate(program.equations):
        if eq.op in _RULES:
            continue
        for name, value in eq.attrs.items():
            bodies = value if isinstance(value, tuple) else (value,)
            for i, body in enumerate(bodies):
                counts = eq.op == "while" and name == "body"
                for smaller in _smaller(body, counts) if isinstance(body, Program) else ():
                    changed = (*bodies[:i], smaller, *bodies[i + 1 :])
                    attrs = {**eq.attrs, name: changed if isinstance(value, tuple) else smaller}
                    before, after = program.equations[:k], program.equations[k + 1 :]
                    yield replace(program, equations=(*before, replace(eq, attrs=attrs), *after))


def _smaller(body: Program, counts: bool) -> Iterator[Program]:
    """counts: it is a loop's, whose first result is the counter; without that the loop might not end."""
    kept = _closed(body.equations, body.outputs[:1])[1] if counts else []
    for k in reversed(range(len(body.equations))):
        if body.equations[k] not in kept and not _is_zeros(body.equations[k]):
            yield pruned(_substituted(body, k))
    yield from _with_smaller_bodies(body)


def _substituted(body: Program, k: int) -> Program:
    """Without equation k: what it gave is an earlier value of its type, or zeros."""
    before = [*body.inputs, *(v for eq in body.equations[:k] for v in eq.outputs)]
    names: dict[Var, Var] = {}
    zeros = []
    for v in body.equations[k].outputs:
        same = [w for w in before if w.type == v.type]
        if same:
            names[v] = same[-1]
        else:
            zeros.append(_zeros(v))

    def use(atom: Atom) -> Atom:
        return names.get(atom, atom) if isinstance(atom, Var) else atom

    after = [replace(eq, inputs=tuple(map(use, eq.inputs))) for eq in body.equations[k + 1 :]]
    equations = (*body.equations[:k], *zeros, *after)
    return replace(body, equations=equations, outputs=tuple(map(use, body.outputs)))


def _zeros(v: Var) -> Equation:
    zero = Literal(0, v.type.dtype)
    return Equation("broadcast_in_dim", (zero,), (v,), {"shape": v.type.shape, "dims": ()})


def _is_zeros(eq: Equation) -> bool:
    return eq == _zeros(eq.outputs[0])


# Numbers


def _simpler_numbers(sample: Sample) -> Iterator[Sample]:
    simple = tuple(map(np.ones_like, sample.tangents)), tuple(map(np.ones_like, sample.cotangents))
    if any(np.any(a != 1) for a in (*sample.tangents, *sample.cotangents)):
        yield replace(sample, tangents=simple[0], cotangents=simple[1])
    for k, x in enumerate(sample.inputs):
        for other in (np.ones_like(x), _rounded(x)):
            if not np.array_equal(other, x) and not np.array_equal(x, np.ones_like(x)):
                yield replace(sample, inputs=(*sample.inputs[:k], other, *sample.inputs[k + 1 :]))


def _rounded(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "biu":
        return x
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        return np.round(wide, 1).astype(x.dtype)
