"""The harness: what a bridged function is and does, held against JAX itself, for the cases of one batch.

The reference is the case's function under JAX's own transformations; the function under test is
`pb.bridge(f)`, whose derivatives Julia makes, and the derivative Programs run by Julia's evaluator. What is
compiled by XLA is compiled for all cases of a batch together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import Case, computed, direction
from cases import CASES, family
from cases_control import scaled_sine

import pybridge as pb
from pybridge.runtime import evaluation, transforms

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


@dataclass(frozen=True)
class Setup:
    """A case at its inputs: directions of the active ones, and cotangents of the inexact results.

    forward: forward mode exists (not through custom_vjp). reverse: JAX has reverse mode.
    """

    case: Case
    inputs: tuple[np.ndarray, ...]
    second: tuple[np.ndarray, ...]
    tangents: tuple[np.ndarray, ...]
    cotangents: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, case: Case) -> Setup:
        inputs = case.inputs()
        results = jax.tree.leaves(jax.eval_shape(case.f, *inputs))
        rng = case.rng("cotangent")
        cotangents = tuple(direction(rng, np.zeros(y.shape, y.dtype)) for y in results if not exact_dtype(y))
        return cls(case, inputs, case.inputs("second"), case.tangents(), cotangents)

    @property
    def whole(self) -> bool:
        """Whether every transformation is tried; complex cases are spared those that know no dtypes."""
        return not self.case.dtype.startswith("c")

    @property
    def forward(self) -> bool:
        return self.case.op != "custom_vjp"

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
            stacked = [jnp.stack(pair) for pair in zip(inputs, second, strict=True)]
            found = {"value": f(*inputs)} | ({"vmap": jax.vmap(f)(*stacked)} if self.case.batched else {})
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
            if self.forward:
                found["jvp"] = jax.jvp(values, x, tangents)[1]
            if self.case.reverse:
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
        if not setup.case.reverse and setup.case.second:
            found["jvp of jvp"] = jax.jvp(push, x, tangents)[1]
        if setup.whole:
            found["linearize"] = jax.linearize(values, *x)[1](*tangents)
        if setup.whole and setup.case.batched:
            found["vmap of jvp"] = jax.vmap(lambda *t: jax.jvp(values, x, t)[1])(*_doubled(tangents))
    if setup.case.reverse:
        found["vjp"] = pull(*x)
        if setup.case.second:
            found["hvp"] = jax.jvp(pull, x, tangents)[1]
        if setup.whole and setup.case.batched:
            found["vmap of vjp"] = jax.vmap(lambda *ct: jax.vjp(values, *x)[1](ct))(*_doubled(cotangents))
    return found


def _doubled(arrays) -> list:
    return [jnp.stack([a, -2 * a]) for a in arrays]


def check(cases: Sequence[Case]) -> None:
    """Everything, for the cases of one batch; in eager mode and in Julia's evaluator too."""
    with cases[0].context():
        setups = [Setup.of(case) for case in cases]
        bridged = {case.name: pb.bridge(case.f, execute="xla") for case in cases}
        expected = measured(setups, map(reference, cases), Setup.everything)
        found = measured(setups, bridged.values(), Setup.everything)

        def check_one(setup: Setup, found: dict[str, Any], expected: dict[str, Any]) -> None:
            before = [x.tobytes() for x in setup.inputs]
            _compare(setup, found, expected)
            _check_eager(setup, bridged[setup.case.name], expected)
            if setup.whole:
                _check_in_julia(setup, expected)
            assert [x.tobytes() for x in setup.inputs] == before, f"{setup.case}: an input was changed"

        each(check_one, setups, found, expected)


def _compare(setup: Setup, found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, y in expected.items():
        assert_agree(found[name], y, f"{setup.case}: {name}")


def each(check_one: Callable[..., None], setups: Sequence[Setup], *results: Sequence) -> None:
    """Every case; the failures are reported together."""
    failures = []
    for setup, *found in zip(setups, *results, strict=True):
        try:
            check_one(setup, *found)
        except Exception as e:
            e.add_note(f"in the case {setup.case}")
            failures.append(e)
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(setups)} cases", failures)


def _check_eager(setup: Setup, bridged: Callable, expected: dict[str, Any]) -> None:
    args = [jnp.asarray(x) for x in setup.inputs]
    first, again = bridged(*args), bridged(*args)
    assert jax.tree.structure(first) == jax.tree.structure(jax.eval_shape(setup.case.f, *args))
    assert_agree(first, expected["value"], f"{setup.case}: value, eager")
    assert _bits(first) == _bits(again), f"{setup.case}: a second call gives another result"
    if setup.whole and setup.case.active and setup.case.reverse:
        x = [args[i] for i in setup.case.active]
        pulled = jax.vjp(lambda *x: setup.restricted(bridged)(*x)[0], *x)[1](setup.cotangents)
        assert_agree(pulled, expected["vjp"], f"{setup.case}: vjp, eager")


def _check_in_julia(setup: Setup, expected: dict[str, Any]) -> None:
    case, args = setup.case, setup.inputs
    program = pb.trace(case.f)(*map(jnp.asarray, args))
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
        tangents = evaluation.evaluate(jvp, *args, *setup.tangents)[len(program.outputs) :]
        assert_agree(tangents, expected["jvp"], f"{case}: jvp, in Julia")
        transforms.normalize(jvp.optimize())
    if case.reverse:
        vjp = program.vjp(active=case.active)
        results = evaluation.evaluate(vjp, *args, *setup.cotangents)
        assert_agree(results, expected["vjp"], f"{case}: vjp, in Julia")
        shorter = vjp.optimize()
        assert shorter.equation_count() <= vjp.equation_count()
        assert_agree(
            evaluation.evaluate(shorter, *args, *setup.cotangents),
            expected["vjp"],
            f"{case}: optimised vjp, in Julia",
        )
        transforms.normalize(vjp)
        transforms.normalize(shorter)


def check_first_order(cases: Sequence[Case], execute: str = "xla") -> None:
    """Value, JVP and VJP under jit, in the cases' own dtypes."""
    with cases[0].context():
        setups = [Setup.of(case) for case in cases]
        expected = measured(setups, map(reference, cases), Setup.first_order)
        bridged = [pb.bridge(case.f, execute=execute) for case in cases]
        each(_compare, setups, measured(setups, bridged, Setup.first_order), expected)


def _bits(tree: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in jax.tree.leaves(tree)]


def refuses_forward_mode(case: Case) -> None:
    with case.context():
        setup = Setup.of(case)
        x = tuple(setup.inputs[i] for i in case.active)
        with pytest.raises(pb.NotDifferentiable, match="custom_vjp"):
            jax.jvp(lambda *x: setup.restricted(pb.bridge(case.f, execute="xla"))(*x)[0], x, setup.tangents)
