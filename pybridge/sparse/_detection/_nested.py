"""Dependences through loops, branches and the user's derivative rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ...ir.program import Equation, Program
from ...ir.types import Var
from ._abstract import Abstract, Matrix, applied, check_entries, grouped, rows_of, shape_of, stacked, union
from ._closure import Links, reachable
from ._state import Detection
from ._values import evaluated

Abstracts = list[Abstract]


@dataclass(frozen=True)
class _Scan:
    """A scan's equation and its operands by kind."""

    eq: Equation
    consts: Sequence[Abstract]
    carry: Sequence[Abstract]
    xs: Sequence[Abstract]

    @property
    def body(self) -> Program:
        return self.eq.attrs["body"]

    @property
    def length(self) -> int:
        return self.eq.attrs["length"]

    @property
    def stacks(self) -> Sequence[Var]:
        """The results with a value of each iteration."""
        return self.eq.outputs[len(self.carry) :]


def _scan(program: Program, eq: Equation, operands: Sequence[Abstract], detection: Detection) -> Abstracts:
    consts, carry = eq.attrs["consts"], eq.attrs["carry"]
    scan = _Scan(eq, operands[:consts], operands[consts : consts + carry], operands[consts + carry :])
    steps = scan.length * (scan.body.equation_count() + 1)
    if steps <= detection.steps:
        detection.steps -= steps
        return _each_iteration(scan, detection)
    return _any_iteration(scan, detection)


def _each_iteration(scan: _Scan, detection: Detection) -> Abstracts:
    carry, count, length, reverse = scan.carry, len(scan.carry), scan.length, scan.eq.attrs["reverse"]
    order = range(length)[::-1] if reverse else range(length)
    ys: list[Abstracts] = [[] for _ in scan.stacks]
    repeats = all(x.matrix is None and x.value is None for x in scan.xs)
    for done, i in enumerate(order):
        results = detection.follow(scan.body, [*scan.consts, *carry, *(_item(x, i) for x in scan.xs)])
        for y, result in zip(ys, results[count:], strict=True):
            y.append(result)
        settled = repeats and all(map(_same, carry, results[:count]))
        carry = results[:count]
        if settled:  # all later iterations are as this one
            for y in ys:
                y += y[-1:] * (length - done - 1)
            break
    direction = -1 if reverse else 1
    return [*carry, *(_collected(y[::direction], v) for y, v in zip(ys, scan.stacks, strict=True))]


def _item(x: Abstract, i: int) -> Abstract:
    shape = x.shape[1:]
    size = int(np.prod(shape, dtype=np.int64))
    matrix = rows_of(x.matrix, np.arange(i * size, (i + 1) * size))
    return Abstract(shape, matrix, None if x.value is None else x.value[i])


def _collected(items: Sequence[Abstract], var: Var) -> Abstract:
    shape = shape_of(var)
    matrix = stacked([y.matrix for y in items], [y.size for y in items])
    known = all(y.value is not None for y in items)
    value = np.stack([y.value for y in items]) if known and items else None
    return Abstract(shape, matrix, value)


def _same(a: Abstract, b: Abstract) -> bool:
    if a.value is not None or b.value is not None:
        return a.value is not None and b.value is not None and np.array_equal(a.value, b.value)
    if a.matrix is None or b.matrix is None:
        return a.matrix is b.matrix
    return a.matrix.nnz == b.matrix.nnz and (a.matrix != b.matrix).nnz == 0


def _any_iteration(scan: _Scan, detection: Detection) -> Abstracts:
    """With one iteration that stands for any, whose values that change are unknown."""
    consts, carry, xs, length = scan.consts, scan.carry, scan.xs, scan.length
    items = [Abstract(x.shape[1:], x.matrix) for x in xs]
    changing = [x.independent() for x in _unknown(carry)]
    links = Links.of(scan.body, [*consts, *changing, *_unknown(items)], detection)
    place, count = len(consts), len(carry)
    fixed = links.by_way_of(range(place), [x.matrix for x in consts])
    moved = [
        grouped(x.matrix, np.tile(np.arange(item.size), length), item.size)
        for x, item in zip(xs, items, strict=True)
    ]
    given = links.by_way_of(range(place + count, place + count + len(xs)), moved)
    start = [union([x.matrix, a, b]) for x, a, b in zip(carry, fixed, given, strict=False)]
    carried = reachable(links, range(place, place + count), start)
    of_carry = links.by_way_of(range(place, place + count), carried)
    results = [Abstract(x.shape, m) for x, m in zip(carry, carried, strict=True)]
    for k, v in enumerate(scan.stacks, start=count):
        size = links.sizes_of_results[k]
        each = rows_of(union([fixed[k], of_carry[k]]), np.tile(np.arange(size), length))
        own = [_at_each(links.between(place + count + j, k), x.matrix, length) for j, x in enumerate(xs)]
        results.append(Abstract(shape_of(v), union([each, *own])))
    return results


def _at_each(link: Matrix, matrix: Matrix | None, length: int) -> Matrix | None:
    if matrix is None or not link.nnz:
        return None
    check_entries(link.nnz * length)
    return applied(sp.kron(sp.eye_array(length, dtype=bool), link, format="csr"), matrix)


def _unknown(values: Sequence[Abstract]) -> Abstracts:
    return [Abstract(x.shape, x.matrix) for x in values]


def _while(program: Program, eq: Equation, operands: Sequence[Abstract], detection: Detection) -> Abstracts:
    cond, body = eq.attrs["cond"], eq.attrs["body"]
    ends = eq.attrs["cond_consts"], eq.attrs["cond_consts"] + eq.attrs["body_consts"]
    of_cond, consts, carry = operands[: ends[0]], operands[ends[0] : ends[1]], list(operands[ends[1] :])
    steps = body.equation_count() + cond.equation_count() + 1
    followed = carry
    while detection.steps > 0:
        (goes_on,) = detection.follow(cond, [*(x.independent() for x in (*of_cond, *followed))])
        if goes_on.value is None:
            break
        if not goes_on.value:
            return followed
        detection.steps -= steps
        followed = detection.follow(body, [*consts, *followed])
    links = Links.of(body, [*consts, *(x.independent() for x in _unknown(carry))], detection)
    fixed = links.by_way_of(range(len(consts)), [x.matrix for x in consts])
    start = [union([x.matrix, a]) for x, a in zip(carry, fixed, strict=True)]
    places = range(len(consts), len(consts) + len(carry))
    return [Abstract(x.shape, m) for x, m in zip(carry, reachable(links, places, start), strict=True)]


def _cond(program: Program, eq: Equation, operands: Sequence[Abstract], detection: Detection) -> Abstracts:
    index, *given = operands
    branches = eq.attrs["branches"]
    if index.value is not None:
        return detection.follow(branches[int(np.clip(index.value, 0, len(branches) - 1))], given)
    results = [detection.follow(branch, given) for branch in branches]
    return [Abstract(of[0].shape, union([x.matrix for x in of])) for of in zip(*results, strict=True)]


def _inlined(name: str) -> Callable[..., Abstracts]:
    def rule(program: Program, eq: Equation, operands: Sequence[Abstract], detection: Detection) -> Abstracts:
        return detection.follow(eq.attrs[name], operands)

    return rule


def _values(program: Program, eq: Equation, operands: Sequence[Abstract]) -> Sequence[np.ndarray | None]:
    if any(x.value is None for x in operands):
        return [None] * len(eq.outputs)
    return evaluated(program, eq, [x.value for x in operands])  # type: ignore[misc]


def _custom_jvp(
    program: Program, eq: Equation, operands: Sequence[Abstract], detection: Detection
) -> Abstracts:
    """The user's rule, whose tangents may depend on others than the values do."""
    rule = eq.attrs["jvp"]
    if isinstance(rule, str):
        return detection.follow(eq.attrs["call"], operands)
    tangents = [
        Abstract(x.shape, x.matrix, np.zeros(x.shape) if x.matrix is None else None)
        for x, a in zip(operands, eq.inputs, strict=True)
        if a.type.inexact
    ]
    found = detection.follow(rule, [*(x.independent() for x in operands), *tangents])
    dots = iter(found[len(eq.outputs) :])
    values = _values(program, eq, operands)
    return [
        Abstract(y.shape, next(dots).matrix if v.type.inexact else None, value)
        for y, v, value in zip(found, eq.outputs, values, strict=False)
    ]


def _custom_vjp(
    program: Program, eq: Equation, operands: Sequence[Abstract], detection: Detection
) -> Abstracts:
    """The user's rule, backwards: the transpose of how its cotangents depend on those of the results."""
    forwards, backwards = eq.attrs["fwd"], eq.attrs["bwd"]
    if isinstance(forwards, str) or isinstance(backwards, str):
        return detection.follow(eq.attrs["call"], operands)
    detection.reverse_only = True
    found = detection.follow(forwards, [x.independent() for x in operands])
    residuals = [x.independent() for x in found[len(eq.outputs) :]]
    results = found[: len(eq.outputs)]
    cotangents = [y for y, v in zip(results, eq.outputs, strict=True) if v.type.inexact]
    links = Links.of(backwards, [*residuals, *_unknown(cotangents)], detection)
    values = _values(program, eq, operands)
    active = [x for x, a in zip(operands, eq.inputs, strict=True) if a.type.inexact]
    place, made = len(residuals), []
    for y, v, value in zip(results, eq.outputs, values, strict=True):
        parts: list[Matrix | None] = []
        if v.type.inexact:
            parts = [applied(links.between(place, k).T.tocsr(), x.matrix) for k, x in enumerate(active)]
            place += 1
        made.append(Abstract(y.shape, union(parts), value))
    return made


NESTED: dict[str, Callable[..., Abstracts]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "remat": _inlined("body"),
    "linear_call": _inlined("call"),
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
}
