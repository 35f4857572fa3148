"""docs/contributing.md tells where things are: they are there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from pybridge.ir.schema import OPERATIONS, UNARY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text()
# What the answers name, and what stands there.
PLACES = {
    "julia/src/rules/gather.jl": "transpose(op::Gather",
    "julia/src/codegen/plan/fusion.jl": "function fuse(",
    "julia/src/codegen/plan/materialization.jl": "function materialized(",
    "julia/src/ad/residuals.jl": "function close_over!(",
    "julia/src/passes/loop_residuals.jl": "function least_cut(",
    "julia/src/passes/rematerialize.jl": "function rematerialize(",
    "julia/src/enzyme/number_derivatives.jl": "function partials",
    "julia/ext/enzyme_rules.jl": "EnzymeRules.reverse(config, k::Const{<:Known}",
    "pybridge/frontend/adapter/equation_parameters.py": "def scan(",
}


@pytest.mark.parametrize(("place", "content"), PLACES.items())
def test_the_answers_are_where_the_page_says(place, content):
    assert f"`{place}`" in PAGE
    assert content in (ROOT / place).read_text()


def test_all_files_that_the_page_names_exist():
    named = re.findall(r"`((?:julia|pybridge|tests|docs)/[\w/.-]+)`", PAGE)
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_example_of_a_new_primitive_is_the_one_in_use():
    (example,) = re.findall(r"^    ```julia\n(.*?)^    ```$", PAGE, re.DOTALL | re.MULTILINE)
    assert textwrap.dedent(example) in (ROOT / "julia" / "src" / "rules" / "unary.jl").read_text()
    assert "cbrt" in UNARY and OPERATIONS["cbrt"].elementwise
    assert '("cbrt", ' in (ROOT / "tests" / "cases_elementwise.py").read_text()
