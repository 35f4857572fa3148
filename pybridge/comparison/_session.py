"""A comparison in the making: what each engine has given so far, and the rows that come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import jax.numpy as jnp
import numpy as np

from ..engines import ENGINES
from ..frontend.tracing import trace
from ..quotients import Verdict, allowed_error, finite_norm, slope, widened, worst
from . import _numbers
from ._condition import Condition
from ._counting import jax_equations
from ._engines import BASELINE, CAN_END_THE_PROCESS, candidate
from ._isolated import measure_elsewhere, stages
from ._measure import Candidate, Measured, first_line, is_absent, measure
from ._nestings import NESTINGS
from ._problem import Problem
from ._reference import Exact, by_operation
from ._rows import Error, Reference, Row, Taylor, Times, judged, tolerance
from ._second_order import SecondOrder
from ._taylor import Directional, Sweep, sweep
from ._timing import interleaved


@dataclass
class Session:
    """The measurements so far. `rows` holds what each engine's row has been given already."""

    problem: Problem
    exact: Exact
    rows: dict[str, Row]
    repeats: int
    budget: float
    measured: dict[str, Measured] = field(default_factory=dict)
    settled: bool = False
    order: int = 1

    def __post_init__(self) -> None:
        self.condition = Condition(self.problem, self.exact)

    def run(self, name: str, isolate: bool | None, timeout: float) -> None:
        reason = _unavailable(name)
        if reason is not None:
            self.rows[name] = Row(name, "unavailable", (reason,))
            return
        alone = name in CAN_END_THE_PROCESS if isolate is None else isolate and name != BASELINE
        try:
            if alone:
                self._take_isolated(name, timeout)
            else:
                self.take(
                    name,
                    self._measured(candidate(name, self.problem.f)),
                    _equations(name, self.problem),
                )
        except Exception as error:
            told = first_line(error)
            self.rows[name] = Row(name, "failed", (f"cannot be isolated: {told}" if alone else told,))

    def try_candidate(self, name: str, g: Callable) -> None:
        self.take(name, self._measured(Candidate(name, g)))

    def _measured(self, candidate: Candidate) -> Measured:
        return measure(candidate, self.problem, order=self._order(candidate.name))

    def _order(self, name: str) -> int:
        """How often it is to be differentiated."""
        known = ENGINES[name].orders if name in ENGINES else None
        return self.order if known is None else min(self.order, known)

    def _take_isolated(self, name: str, timeout: float) -> None:
        order = self._order(name)
        answer = measure_elsewhere(self.problem, name, order, self.repeats, self.budget, timeout)
        self.take(name, answer.measured, _equations(name, self.problem))
        self.rows[name] = replace(self.rows[name], isolated=True, times=_times(answer.seconds))

    def take(self, name: str, measured: Measured, equations: int | None = None) -> None:
        """Begins the engine's row with its errors."""
        found, expected = measured.results, self.exact.by_stage
        pairs = {s: (found[s], wanted) for s, wanted in expected.items() if s in found and wanted is not None}
        units = {stage: self.condition.units(stage) for stage in pairs}
        errors = {stage: _numbers.error(*pair, units[stage]) for stage, pair in pairs.items()}
        failed = any(
            expected.get(s, ()) is not None and not is_absent(s, r)
            for s, r in measured.failures.items()
            if s not in NESTINGS
        )
        self.measured[name] = measured
        self.rows[name] = Row(
            name,
            "failed" if failed else "agrees",
            tuple(stages(measured.failures)),
            failed=failed,
            leaves={s: dict(self._by_leaf(s, *pair, units[s])) for s, pair in pairs.items()},
            value=errors.get("value"),
            jvp=errors.get("jvp"),
            vjp=errors.get("vjp"),
            adjoint=_adjoint(self.problem, found.get("jvp"), found.get("vjp")),
            equations=equations,
            first_gradient=measured.first_gradient,
            memory=measured.memory,
        )

    def _by_leaf(
        self, stage: str, found: Sequence, expected: Sequence, units: Sequence[float]
    ) -> Iterator[tuple[str, Error]]:
        for name, mine, theirs, unit in zip(
            self.problem.leaf_names(stage), found, expected, units, strict=True
        ):
            yield name, _numbers.error([mine], [theirs], [unit])

    def time(self) -> None:
        """All engines of this process in turns; a stage that somebody lacks is timed for the others."""
        if not self.repeats:
            return
        found: dict[str, dict[str, float]] = {}
        for stage in ("value", "vjp"):
            calls = {name: m.calls[stage] for name, m in self.measured.items() if stage in m.calls}
            for name, seconds in zip(
                calls, interleaved(list(calls.values()), self.repeats, self.budget), strict=True
            ):
                found.setdefault(name, {})[stage] = seconds
        baseline = found.get(BASELINE, {})
        for name, by_stage in found.items():
            pairs = {stage: (s, baseline.get(stage)) for stage, s in by_stage.items()}
            self.rows[name] = replace(self.rows[name], times=_times(pairs))

    def settle(self) -> None:
        """Whether XLA, which compiles the reference too, is to be believed where it is contradicted: by an
        engine's value, or by the other mode of the reference's derivative.
        """
        allowed = tolerance(self.problem.epsilon)
        contradicted = any(
            row.value is not None and (row.value.misplaced > 0 or row.value.relative > allowed)
            for name, row in self.rows.items()
            if name in ENGINES
        )
        sides = _adjoint(self.problem, self.exact.jvp, self.exact.vjp) or 0.0
        if not contradicted and sides <= allowed:
            return
        apart = by_operation(self.problem, self.exact)
        if apart is None:
            return
        self.exact, self.settled = apart, True
        self.condition = Condition(self.problem, apart)
        for name, measured in self.measured.items():
            old = self.rows[name]
            self.take(name, measured, old.equations)
            self.rows[name] = replace(self.rows[name], isolated=old.isolated, times=old.times)

    def finish(self, rtol: float | None) -> tuple[Reference, tuple[Row, ...]]:
        orders = self._sweep()
        reference = Reference(
            self.exact.precision,
            _adjoint(self.problem, self.exact.jvp, self.exact.vjp),
            orders.central,
            orders.orders.get("jvp of the reference", Taylor(None)),
            orders.orders.get("vjp of the reference", Taylor(None)),
            self.exact.notes,
            self._derivative(),
            self.settled,
            self.condition.by_leaf(),
        )
        rows: Sequence[Row] = [
            replace(
                row,
                taylor_jvp=orders.orders.get(f"jvp of {name}"),
                taylor_vjp=orders.orders.get(f"vjp of {name}"),
            )
            for name, row in self.rows.items()
        ]
        if self.order == 2:
            own = {} if self.settled else self.measured.get(BASELINE, Measured()).results
            second = SecondOrder(self.problem, self.exact, self.measured, _scale(self.problem), own)
            rows = [second.row(row) for row in rows]
            reference = replace(reference, second=second.reference)
        baseline = next(row for row in rows if row.engine == BASELINE)
        if self.settled:  # then its errors are no measure of rounding
            baseline = Row(BASELINE, "failed")
        return reference, tuple(judged(r, baseline, reference, self.problem.epsilon, rtol) for r in rows)

    def _derivative(self) -> Verdict:
        """Whether the reference is the derivative of the function's value."""
        task, exact = self.problem, self.exact
        if exact.of_distribution:
            return "unclear"
        u, v = [widened(u) for u in task.cotangents], [widened(v) for v in task.tangents]
        kept = [np.isfinite(y) for y in exact.value]
        terms = []
        if exact.jvp is not None:
            terms.append([a[m] * b[m] for a, b, m in zip(u, exact.jvp, kept, strict=True)])
        if exact.vjp is not None:
            terms.append([a * b for a, b in zip(exact.vjp, v, strict=True)])

        def along(h: float) -> float:
            moved = zip(u, exact.along(h), exact.value, kept, strict=True)
            return sum(float(np.sum((a[m] * (y[m] - y0[m])).real)) for a, y, y0, m in moved)

        size = max((finite_norm(t) for t in terms), default=0.0)
        values = _numbers.norm([a[m] * y[m] for a, y, m in zip(u, exact.value, kept, strict=True)])
        scale = _scale(task)
        found = slope(along, scale, exact.epsilon * (values + scale * size))
        unit = exact.epsilon if exact.precision != "float64" else np.finfo(np.float64).eps
        sums = [sum(float(np.sum(t.real)) for t in parts) for parts in terms]
        whole = all(m.all() for m in kept)  # else derivatives may be NaN as the results are
        verdicts = (
            found.judge(total, size, allowed_error(unit)) for total in sums if whole or np.isfinite(total)
        )
        return worst(verdicts)

    def _sweep(self) -> Sweep:
        """JAX's own rounding error, at the engines' precision, tells how much noise to expect in their
        derivatives.
        """
        task, exact = self.problem, self.exact
        tangents = [widened(v) for v in task.tangents]
        own = {} if self.settled else self.measured.get(BASELINE, Measured()).results
        jvps, vjps = {}, {}
        sources: dict[str, dict[str, Sequence | None]]
        sources = {"the reference": {"jvp": exact.jvp, "vjp": exact.vjp}}
        sources |= {name: dict(m.results) for name, m in self.measured.items()}
        for name, found in sources.items():
            unit = np.finfo(np.float64).eps if name == "the reference" else task.epsilon
            theirs = {} if name == "the reference" else own
            if (jvp := found.get("jvp")) is not None:
                noise = _noise(jvp, theirs.get("jvp"), exact.jvp, unit)
                jvps[f"jvp of {name}"] = Directional(jvp, noise)
            if (vjp := found.get("vjp")) is not None:
                noise = _noise(vjp, theirs.get("vjp"), exact.vjp, unit)
                along = np.array(_numbers.pairing(vjp, tangents))
                vjps[f"vjp of {name}"] = Directional([along], noise)
        cotangents = [widened(u) for u in task.cotangents]
        return sweep(exact.along, _scale(task), cotangents, jvps, vjps, exact.jvp)


def _noise(found: Sequence, jax_found: Sequence | None, expected: Sequence | None, unit: float) -> float:
    """How far rounding may move a derivative, as a norm."""
    noise = unit * finite_norm(found)
    if jax_found is not None and expected is not None:
        with np.errstate(invalid="ignore"):
            differences = [a - b for a, b in zip(jax_found, expected, strict=True)]
        noise += finite_norm(differences)
    return noise


def _scale(task: Problem) -> float:
    """The largest step: small compared with the point, so that a logarithm's argument stays positive where
    it can.
    """
    point, direction = (
        _numbers.norm([widened(jnp.asarray(x)) for x in task.point]),
        _numbers.norm(task.tangents),
    )
    return min(1.0, point / direction) if point and direction and np.isfinite(point) else 1.0


def _adjoint(task: Problem, jvp: Sequence | None, vjp: Sequence | None) -> float | None:
    if jvp is None or vjp is None:
        return None
    return _numbers.adjoint_error(
        [widened(u) for u in task.cotangents], jvp, vjp, [widened(v) for v in task.tangents]
    )


def _times(pairs: Mapping[str, tuple[float, float | None]]) -> Times | None:
    def part(stage: str) -> tuple[float | None, float | None]:
        mine, theirs = pairs.get(stage, (None, None))
        return mine, mine / theirs if mine and theirs else None

    return Times(*part("value"), *part("vjp")) if pairs else None


def _equations(name: str, task: Problem) -> int | None:
    """None where the engine's derivative is no list of equations, or none could be made."""
    try:
        if name == BASELINE:
            return jax_equations(task)
        if name == "transpose":
            return trace(task.f)(*task.args).vjp().optimize().equation_count()
    except Exception:  # the stages say why
        return None
    return None


def _unavailable(name: str) -> str | None:
    try:
        missing = ENGINES[name].unavailable()
        return None if missing is None else str(missing)
    except Exception as reason:
        return first_line(reason)
