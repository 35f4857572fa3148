"""Second derivatives side by side: products of the Hessian H of <u, f> with directions v and w.

u are the comparison's cotangents, v its tangents and w others. The reference is JAX in float64. It is checked
by what has no second derivatives in it: difference quotients of its gradient, and the values along v.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..engines import ENGINES
from ..quotients import Verdict, allowed_error, finite_norm, slope, widened
from . import _numbers
from ._condition import sensitivities
from ._evaluation import moved
from ._measure import Measured, first_line, is_absent
from ._nestings import NESTINGS, Nesting
from ._problem import Arrays, Problem
from ._reference import Exact
from ._rows import Error, Row, Second, SecondReference, Taylor
from ._taylor import Curvature, curvature_orders, steps

_UNIT = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """scale: the largest step along v. own: what JAX gave at the engines' precision."""

    task: Problem
    exact: Exact
    measured: Mapping[str, Measured]
    scale: float
    own: Mapping[str, Arrays]

    def row(self, row: Row) -> Row:
        """With its second derivatives, where it has any."""
        engine = ENGINES.get(row.engine)
        if engine is not None and engine.orders == 1:
            return replace(row, second=Second(cannot="it has first derivatives alone"))
        if not row.ran:
            return row
        found, failures = dict(self._products(row.engine)), self.measured[row.engine].failures
        failed = any(n in failures and n in self.own and not is_absent(n, failures[n]) for n in NESTINGS)
        errors = {n: _numbers.error(hv, self._hv, self._units) for n, (hv, _) in found.items() if self._hv}
        by_leaf = {n: dict(self._by_leaf(hv)) for n, (hv, _) in found.items() if self._hv}
        sides = [s for pair in found.values() if (s := self._symmetry(*pair)) is not None]
        second = Second(errors, max(sides, default=None), self._orders.get(row.engine))
        return replace(
            row,
            second=second,
            leaves={**row.leaves, **by_leaf},
            failed=row.failed or failed,
            state="failed" if failed else row.state,
        )

    @cached_property
    def reference(self) -> SecondReference:
        products = self._reference
        if isinstance(products, str):
            note = f"JAX has no second derivative of the function: {products}"
            return SecondReference(None, None, None, note=note)
        central = self._central(products[1])
        return SecondReference(
            self._symmetry(*products[1:]), central, self._orders.get(""), self._verdict(products[1])
        )

    @cached_property
    def _reference(self) -> tuple[Nesting, Arrays, Arrays] | str:
        """The first of the nestings that JAX has, with Hv and Hw; or why it has none."""
        task, run, why = self.task, self.exact.run, ""
        for nesting in NESTINGS:
            try:
                hv, hw = (
                    run.hessian_product(nesting, run.point, task.cotangents, v)
                    for v in (task.tangents, task.other_tangents)
                )
                return nesting, hv, hw
            except Exception as reason:
                why = why or first_line(reason)
        return why

    @property
    def _hv(self) -> Arrays | None:
        return None if isinstance(self._reference, str) else self._reference[1]

    @cached_property
    def _units(self) -> list[float]:
        """As `Condition.units` of Hv."""
        if isinstance(self._reference, str):
            return []
        (nesting, hv, _), task = self._reference, self.task

        def product(point: Sequence[np.ndarray]) -> Arrays:
            return self.exact.run.hessian_product(nesting, point, task.cotangents, task.tangents)

        return [size * task.epsilon for size in sensitivities(product, self.exact, hv)]

    def _products(self, name: str) -> Iterator[tuple[str, tuple[Arrays, Arrays]]]:
        """By nesting, Hv and Hw."""
        results, count = self.measured[name].results, len(self.task.active)
        for nesting in NESTINGS:
            if nesting in results:
                yield nesting, (results[nesting][:count], results[nesting][count:])

    def _by_leaf(self, hv: Arrays) -> Iterator[tuple[str, Error]]:
        expected = self._hv or ()
        for name, mine, theirs, unit in zip(self.task.argument_names, hv, expected, self._units, strict=True):
            yield name, _numbers.error([mine], [theirs], [unit])

    def _symmetry(self, hv: Arrays, hw: Arrays) -> float | None:
        v, w = ([widened(x) for x in group] for group in (self.task.tangents, self.task.other_tangents))
        return _numbers.adjoint_error(w, hv, hw, v)

    @cached_property
    def _orders(self) -> dict[str, Taylor]:
        """By row; that of the reference is ""."""
        gradient = self._gradient_along_v
        if self._hv is None or gradient is None:
            return {}
        found = {name: next((hv for _, (hv, _) in self._products(name)), None) for name in self.measured}
        curvatures = {"": self._curvature(self._hv, _UNIT, 0.0)}
        own = self.task.epsilon, self._noise()
        curvatures |= {name: self._curvature(hv, *own) for name, hv in found.items() if hv is not None}
        u = [widened(u) for u in self.task.cotangents]
        return curvature_orders(self.exact.along, self.scale, u, gradient, curvatures)

    @property
    def _gradient_along_v(self) -> float | None:
        task, exact = self.task, self.exact
        if exact.vjp is not None:
            return _numbers.pairing(exact.vjp, [widened(v) for v in task.tangents])
        if exact.jvp is not None:
            return _numbers.pairing([widened(u) for u in task.cotangents], exact.jvp)
        return None

    def _curvature(self, hv: Arrays, unit: float, noise: float) -> Curvature:
        """unit: of the roundoff of each term. noise: added to it."""
        terms = _along(self.task.tangents, hv)
        return Curvature(_total(terms), unit * finite_norm(terms) + noise)

    def _noise(self) -> float:
        """How far rounding may move <v, Hv> at the engines' precision, by what it does to JAX's."""
        own = next((self.own[n][: len(self.task.active)] for n in NESTINGS if n in self.own), None)
        if own is None or self._hv is None:
            return 0.0
        with np.errstate(invalid="ignore"):
            differences = [a - b for a, b in zip(own, self._hv, strict=True)]
        return finite_norm(_along(self.task.tangents, differences))

    def _gradient(self, h: float) -> Arrays:
        run = self.exact.run
        return run.vjp(moved(run.point, h, self.task.tangents), self.task.cotangents)

    def _central(self, hv: Arrays) -> float | None:
        """Against central differences of the gradient, at the best step."""
        if self.exact.vjp is None:
            return None
        found = []
        for h in steps(self.scale):
            quotient = [(a - b) / (2 * h) for a, b in zip(self._gradient(h), self._gradient(-h), strict=True)]
            off = [a - b for a, b in zip(quotient, hv, strict=True)]
            found.append(_numbers.ratio(_numbers.norm(off), _numbers.norm(hv)))
        return min((e for e in found if math.isfinite(e)), default=None)

    def _verdict(self, hv: Arrays) -> Verdict:
        """Whether <v, Hv> is the slope of <v, g> along v."""
        gradient, tangents, exact = self.exact.vjp, self.task.tangents, self.exact
        if gradient is None or exact.of_distribution or not all(np.isfinite(g).all() for g in gradient):
            return "unclear"

        def along(h: float) -> float:
            change = [a - b for a, b in zip(self._gradient(h), gradient, strict=True)]
            return _total(_along(tangents, change))

        terms = _along(tangents, hv)
        size = finite_norm(terms)
        values = _numbers.norm(_along(tangents, gradient))
        found = slope(along, self.scale, exact.epsilon * (values + self.scale * size))
        unit = exact.epsilon if exact.precision != "float64" else _UNIT
        return found.judge(_total(terms), size, allowed_error(unit))


def _total(terms: Sequence[np.ndarray]) -> float:
    return sum(float(np.sum(t.real)) for t in terms)


def _along(tangents: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The terms of the pairing with the tangents."""
    return [widened(v) * a for v, a in zip(tangents, arrays, strict=True)]
