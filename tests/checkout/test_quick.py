"""`make test-quick` selects tests that there are."""

from __future__ import annotations

import pytest

from pybridge.ir.schema import OPERATIONS
from tests.quick.__main__ import cases_of, changed_files, jobs


def test_cases_of_every_operation_can_be_selected():
    Expression = pytest.importorskip("_pytest.mark.expression").Expression
    for name in OPERATIONS:
        selects = Expression.compile(cases_of([name]))
        assert selects.evaluate(lambda part, name=name: part in f"test_in_float64[{name}/x64]")
        assert not selects.evaluate(lambda part: part in "test_in_float64[another/x64]")


def test_a_changed_rule_has_the_cases_of_its_operations_and_its_own_test():
    found = {job.name: job for job in jobs(["julia/src/rules/unary.jl"])}
    assert "[not or [" in " ".join(found["cases"].command)
    assert "rules/elementwise" in found["Julia"].command
    assert found["Julia"].left_out


def test_what_differs_from_the_last_commit_is_listed():
    assert all(isinstance(path, str) for path in changed_files())
