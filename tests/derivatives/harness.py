"""The harness: what a bridged function is and does, held against JAX itself, for the cases of one batch.

The reference is the case's function under JAX's own transformations; the function under test is
`pb.bridge(f)`, whose derivatives Julia makes, and the derivative Programs run by Julia's evaluator. XLA
compiles both, for all cases of a batch, as one program: what is the same on both sides is compiled once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import cases_elementwise
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import Case, computed, direction
from cases import CASES, family
from cases_control import scaled_sine
from covering import FULL

import pybridge as pb
from pybridge.runtime import evaluation, transforms

# Each primitive has each of these for one of its cases, an elementwise one a second derivative and one of the
# others, and all cases have all where everything is tested. Every case has its value, JVP and VJP.
SOMETIMES = ("vmap", "linearize", "vmap of jvp", "jvp of jvp", "hvp", "vmap of vjp")

_SECOND = ("hvp", "jvp of jvp")
_ELEMENTWISE = list(dict.fromkeys(case.op for case in cases_elementwise.CASES))

NARROW: list[Case] = [c for c in CASES if c.active and c.dtype in ("f32", "c64", "f16", "bf16")]


@jax.custom_jvp
def _zeta(s, q):
    return jax.lax.zeta(s, q)


@_zeta.defjvp
def _zeta_jvp(primals, tangents):
    s, q = primals
    return _zeta(s, q), -s * _zeta(s + 1, q) * tangents[1]


def _scaled_sines(x):
    """The case custom_jvp_in_scan without its scan: there JAX forgets the rule before second derivatives."""
    carried, seen = x[0], []
    for row in x:
        seen.append(carried)
        carried = scaled_sine(carried, row)
    return carried, jnp.stack(seen)


def reference(case: Case) -> Callable:
    """What JAX is to differentiate: the case's function, but where JAX cannot or is inconsistent."""
    if family(case) == "custom_jvp_in_scan":
        return _scaled_sines
    return _zeta if case.op == "zeta" else case.reference or case.f


def exact_dtype(x: Any) -> bool:
    return not jnp.issubdtype(jnp.result_type(x), jnp.inexact)


def whole(case: Case) -> bool:
    """Whether every transformation is tried; complex cases are spared those that know no dtypes."""
    return not case.dtype.startswith("c")


def forward(case: Case) -> bool:
    """Whether it has forward mode, which there is none of through custom_vjp."""
    return case.op != "custom_vjp"


def possible(case: Case, what: str) -> bool:
    """Whether the case has this one of SOMETIMES."""
    if what == "vmap" or not case.active:
        return what == "vmap" and case.batched
    if what == "hvp":
        return case.reverse and case.second
    if what == "jvp of jvp":  # where there is no HVP
        return forward(case) and case.second and not case.reverse
    has_mode = case.reverse if what == "vmap of vjp" else forward(case)
    return whole(case) and has_mode and (case.batched or what == "linearize")


@dataclass(frozen=True)
class Setup:
    """A case at its inputs: directions of the active ones, and cotangents of the inexact results.

    chosen: those of SOMETIMES, or of JVP and VJP where there are no others, that are computed.
    """

    case: Case
    inputs: tuple[np.ndarray, ...]
    second: tuple[np.ndarray, ...]
    tangents: tuple[np.ndarray, ...]
    cotangents: tuple[np.ndarray, ...]
    chosen: frozenset[str]

    @classmethod
    def of(cls, case: Case, chosen: Iterable[str] | None = None) -> Setup:
        inputs = case.inputs()
        results = jax.tree.leaves(jax.eval_shape(case.f, *inputs))
        rng = case.rng("cotangent")
        cotangents = tuple(direction(rng, np.zeros(y.shape, y.dtype)) for y in results if not exact_dtype(y))
        if chosen is None:
            chosen = [what for what in SOMETIMES if possible(case, what)]
        second = case.inputs("second")
        return cls(case, inputs, second, case.tangents(), cotangents, frozenset(chosen))

    @property
    def whole(self) -> bool:
        return whole(self.case)

    @property
    def forward(self) -> bool:
        return forward(self.case)

    def restricted(self, f: Callable) -> Callable:
        """f as a function of the active inputs alone; its inexact results, and the others."""

        def of_active(*active):
            args = list(self.inputs)
            for i, x in zip(self.case.active, active, strict=True):
                args[i] = x
            leaves = jax.tree.leaves(f(*map(jnp.asarray, args)))
            return tuple(y for y in leaves if not exact_dtype(y)), tuple(y for y in leaves if exact_dtype(y))

        return of_active

    @property
    def given(self) -> tuple[tuple[np.ndarray, ...], ...]:
        """The arguments of what `everything` and `first_order` return."""
        return self.inputs, self.second, self.tangents, self.cotangents

    def everything(self, f: Callable) -> Callable[..., dict[str, Any]]:
        """f's value, batches and derivatives of first and second order."""
        smooth = self.restricted(f)

        def compute(inputs, second, tangents, cotangents):
            found = {"value": f(*inputs)}
            if "vmap" in self.chosen:
                found["vmap"] = jax.vmap(f)(*(jnp.stack(pair) for pair in zip(inputs, second, strict=True)))
            if self.case.active:
                x = tuple(inputs[i] for i in self.case.active)
                found |= _derivatives(self, smooth, x, tangents, cotangents)
            return found

        return compute

    def first_order(self, f: Callable) -> Callable[..., dict[str, Any]]:
        """f's value, JVP and VJP."""
        smooth = self.restricted(f)

        def compute(inputs, _, tangents, cotangents):
            def values(*x):
                return smooth(*x)[0]

            x = tuple(inputs[i] for i in self.case.active)
            found = {"value": values(*x)}
            if "jvp" in self.chosen:
                found["jvp"] = jax.jvp(values, x, tangents)[1]
            if "vjp" in self.chosen:
                found["vjp"] = jax.vjp(values, *x)[1](cotangents)
            return found

        return compute


def measured(
    setups: Sequence[Setup], fs: Iterable[Callable], what: Callable[[Setup, Callable], Callable]
) -> list[dict[str, Any]]:
    """`what` of each case's function, under one jit."""
    computations = [what(setup, f) for setup, f in zip(setups, fs, strict=True)]
    return computed(computations, [setup.given for setup in setups])


def _derivatives(setup: Setup, f: Callable, x, tangents, cotangents) -> dict[str, Any]:
    def values(*x):
        return f(*x)[0]

    def pull(*x):
        return jax.vjp(values, *x)[1](cotangents)

    def push(*x):
        return jax.jvp(values, x, tangents)[1]

    found = {}
    if setup.forward:
        found["jvp"] = push(*x)
    if setup.case.reverse:
        found["vjp"] = pull(*x)
    more = {
        "linearize": lambda: jax.linearize(values, *x)[1](*tangents),
        "vmap of jvp": lambda: jax.vmap(lambda *t: jax.jvp(values, x, t)[1])(*_doubled(tangents)),
        "jvp of jvp": lambda: jax.jvp(push, x, tangents)[1],
        "hvp": lambda: jax.jvp(pull, x, tangents)[1],
        "vmap of vjp": lambda: jax.vmap(lambda *ct: jax.vjp(values, *x)[1](ct))(*_doubled(cotangents)),
    }
    return found | {name: compute() for name, compute in more.items() if name in setup.chosen}


def _doubled(arrays) -> list:
    return [jnp.stack([a, -2 * a]) for a in arrays]


def compared(
    setups: Sequence[Setup], bridged: Iterable[Callable], what: Callable[[Setup, Callable], Callable]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """`what` of each bridged function, and of the reference."""
    fs = [*bridged, *(reference(setup.case) for setup in setups)]
    results = measured([*setups, *setups], fs, what)
    return results[: len(setups)], results[len(setups) :]


@dataclass(frozen=True)
class Outcome:
    """A bridged case, what it has been found to compute, and what JAX does."""

    setup: Setup
    bridged: Callable
    found: dict[str, Any]
    expected: dict[str, Any]


@functools.lru_cache(maxsize=4)
def _outcomes(cases: tuple[Case, ...], execute: str, orders: int) -> dict[str, Outcome]:
    """That of each case, by its name; of first order, or everything."""
    with cases[0].context():
        what = Setup.everything if orders == 2 else Setup.first_order
        chosen = _chosen(cases) if orders == 2 else {case.name: _modes(case, execute) for case in cases}
        setups = [Setup.of(case, chosen[case.name]) for case in cases]
        bridged = [pb.bridge(case.f, execute=execute) for case in cases]
        parts = zip(setups, bridged, *compared(setups, bridged, what), strict=True)
        return {setup.case.name: Outcome(setup, *rest) for setup, *rest in parts}


def _chosen(cases: Sequence[Case]) -> dict[str, list[str]]:
    """Which of SOMETIMES each case has."""
    chosen: dict[str, list[str]] = {case.name: [] for case in cases}
    for op in dict.fromkeys(case.op for case in cases):
        fitting = {
            what: [case.name for case in cases if case.op == op and possible(case, what)]
            for what in SOMETIMES
        }
        for what in _of_primitive(op, [what for what, names in fitting.items() if names]):
            names = fitting[what]
            for name in names if FULL else sorted(names, key=lambda name: len(chosen[name]))[:1]:
                chosen[name].append(what)
    return chosen


def _modes(case: Case, execute: str) -> list[str]:
    """JVP and VJP as far as it has them; of an elementwise primitive by kernels, which take long, one."""
    modes = [name for name, there in {"jvp": forward(case), "vjp": case.reverse}.items() if there]
    if FULL or execute == "xla" or case.op not in _ELEMENTWISE:
        return modes
    return [modes[_ELEMENTWISE.index(case.op) % len(modes)]]


def _of_primitive(op: str, there: list[str]) -> list[str]:
    """Which of SOMETIMES a primitive has, of those that are possible."""
    if FULL or op not in _ELEMENTWISE:
        return there
    first = [what for what in there if what not in _SECOND]
    return [what for what in there if what in _SECOND or what == first[_ELEMENTWISE.index(op) % len(first)]]


def check(cases: Sequence[Case], together: tuple[Case, ...] = ()) -> None:
    """Everything, for the cases of one batch; in Julia's evaluator too, and in eager mode.

    together: the cases that are compiled with them, themselves included. One of these is run in eager mode,
    and of each batch every other case by the evaluator; where everything is tested, all.
    """
    together = together or tuple(cases)
    outcomes = _outcomes(together, "xla", 2)
    # One that is differentiated, where there is one: `max` takes the first.
    eager = together if FULL else [max(together, key=lambda case: possible(case, "vmap of vjp"))]
    evaluated = cases if FULL else cases[::2]

    def check_one(outcome: Outcome) -> None:
        setup = outcome.setup
        before = [x.tobytes() for x in setup.inputs]
        _compare(outcome)
        if setup.case in eager:
            _check_eager(setup, outcome.bridged, outcome.expected)
        if setup.whole:
            _check_in_julia(setup, outcome.expected, evaluated=setup.case in evaluated)
        assert [x.tobytes() for x in setup.inputs] == before, f"{setup.case}: an input was changed"

    with cases[0].context():
        each(check_one, [outcomes[case.name] for case in cases])


def _compare(outcome: Outcome) -> None:
    for name, y in outcome.expected.items():
        assert_agree(outcome.found[name], y, f"{outcome.setup.case}: {name}")


def each(check_one: Callable[[Outcome], None], outcomes: Sequence[Outcome]) -> None:
    """Every case; the failures are reported together."""
    failures = []
    for outcome in outcomes:
        try:
            check_one(outcome)
        except Exception as e:
            e.add_note(f"in the case {outcome.setup.case}")
            failures.append(e)
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(outcomes)} cases", failures)


def _check_eager(setup: Setup, bridged: Callable, expected: dict[str, Any]) -> None:
    args = [jax.device_put(x) for x in setup.inputs]
    first, again = bridged(*args), bridged(*args)
    assert jax.tree.structure(first) == jax.tree.structure(jax.eval_shape(setup.case.f, *args))
    assert_agree(first, expected["value"], f"{setup.case}: value, eager")
    assert _bits(first) == _bits(again), f"{setup.case}: a second call gives another result"
    if setup.whole and setup.case.active and setup.case.reverse:
        x = [args[i] for i in setup.case.active]
        pulled = jax.vjp(lambda *x: setup.restricted(bridged)(*x)[0], *x)[1](setup.cotangents)
        assert_agree(pulled, expected["vjp"], f"{setup.case}: vjp, eager")


def _check_in_julia(setup: Setup, expected: dict[str, Any], evaluated: bool) -> None:
    """What Julia makes of the Program has its types; evaluated: and the right values."""
    case, args = setup.case, setup.inputs
    program = pb.trace(case.f)(*args)

    def agrees(results: Callable[[], Any], of: str, name: str) -> None:
        if evaluated:
            assert_agree(results(), expected[of], f"{case}: {name}, in Julia")

    if evaluated:
        first, again = program.call(*args), program.call(*args)
        assert_agree(first, expected["value"], f"{case}: value, in Julia")
        assert _bits(first) == _bits(again), f"{case}: a second call in Julia gives another result"
    if not case.active:
        return
    lin = program.linearize(active=case.active)
    for derived in (lin.known, lin.linear):
        transforms.normalize(derived)
    if setup.forward:
        jvp = program.jvp(active=case.active)
        known = len(program.outputs)
        agrees(lambda: evaluation.evaluate(jvp, *args, *setup.tangents)[known:], "jvp", "jvp")
        transforms.normalize(jvp.optimize())
    if case.reverse:
        vjp = program.vjp(active=case.active)
        shorter = vjp.optimize()
        assert shorter.equation_count() <= vjp.equation_count()
        for name, derived in {"vjp": vjp, "optimised vjp": shorter}.items():
            agrees(lambda p=derived: evaluation.evaluate(p, *args, *setup.cotangents), "vjp", name)
            transforms.normalize(derived)


def check_first_order(cases: Sequence[Case], together: tuple[Case, ...], execute: str = "xla") -> None:
    """Value, JVP and VJP under jit, in the cases' own dtypes."""
    outcomes = _outcomes(together, execute, 1)
    each(_compare, [outcomes[case.name] for case in cases])


def _bits(tree: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in jax.tree.leaves(tree)]


def refuses_forward_mode(case: Case) -> None:
    with case.context():
        setup = Setup.of(case)
        x = tuple(setup.inputs[i] for i in case.active)
        with pytest.raises(pb.NotDifferentiable, match="custom_vjp"):
            jax.jvp(lambda *x: setup.restricted(pb.bridge(case.f, execute="xla"))(*x)[0], x, setup.tangents)
