"""THE harness over every row of the table of primitives: derivatives made by Julia against JAX's own."""

from __future__ import annotations

import jax
import pytest
from casekit import batches
from cases import CASES, COVERED, FULL, by_op
from covering import cover
from harness import NARROW, check, check_first_order, refuses_forward_mode
from neighbours import neighbours
from unoptimised import unoptimised  # noqa: F401

import pybridge as pb
from pybridge.ir.parser import parse_all
from pybridge.ir.program import Program
from pybridge.runtime import julia


@pytest.fixture(autouse=True, scope="module")
def compiled_code_is_dropped():
    yield
    jax.clear_caches()


_IN_FLOAT64 = batches(COVERED)
_COMPILED_IN_FLOAT64 = neighbours(_IN_FLOAT64["argvalues"], most=8)


@pytest.mark.parametrize("cases", **_IN_FLOAT64)
def test_in_float64(cases):
    check(cases, _COMPILED_IN_FLOAT64[cases[0].name])


# Each primitive in one of float32, complex64, float16 and bfloat16, or in all where everything is tested.
_SUBSET = {(case.op, case.dtype): case for case in reversed(NARROW)}
_NARROWER = batches([_SUBSET[pair] for pair in cover(reversed(_SUBSET))])
_COMPILED_NARROWER = neighbours(_NARROWER["argvalues"])


@pytest.mark.per_primitive
@pytest.mark.parametrize("cases", **_NARROWER)
def test_in_narrower_dtypes(cases):
    check_first_order(cases, _COMPILED_NARROWER[cases[0].name])


# Kernels take longest to compile. JaxprAD's own tests compare them with its evaluator, over all rules.
_ONE_EACH = {case.op: case for case in reversed(FULL)}
_COMPILED_NATIVELY = neighbours([case] for case in _ONE_EACH.values())


@pytest.mark.parametrize("case", [*_ONE_EACH.values()], ids=str)
def test_natively(case):
    check_first_order([case], _COMPILED_NATIVELY[case.name], execute="julia")


@pytest.mark.parametrize("case", [c for c in FULL if c.op == "custom_vjp"], ids=str)
def test_custom_vjp_has_no_forward_mode(case):
    refuses_forward_mode(case)


def _traced(case) -> Program:
    with case.context():
        return pb.trace(case.f)(*case.inputs())


def test_julia_types_and_prints_every_case_to_the_letter():
    texts = {case.name: _traced(case).text for case in CASES}
    header, *_ = next(iter(texts.values())).splitlines(keepends=True)
    together = header + "".join(text.removeprefix(header) for text in texts.values())
    answer = julia.request("normalize", together)
    if answer == together:
        return
    for name, theirs in zip(texts, parse_all(answer), strict=True):
        assert theirs.text == texts[name], name
    raise AssertionError("the texts differ, though not once parsed")


def test_the_names_of_cases_are_unique_at_full_width():
    assert len({case.name for case in FULL}) == len(FULL)
    assert {case.op for case in FULL} == {case.op for case in CASES} and by_op("sin")
