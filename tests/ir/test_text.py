"""The text of Programs: canonical form, exact numbers, errors, and the round trip of random Programs."""

from __future__ import annotations

import contextlib
import gc
import re
import time

import numpy as np
import pytest
from covering import FULL
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_programs import programs

from pybridge.errors import ProgramSyntaxError, ProgramTypeError, ProgramVersionError
from pybridge.ir.numerals import DTYPES, format_float, read_float
from pybridge.ir.parser import parse, parse_all
from pybridge.ir.types import Literal

GOLDEN = """\
pybridge 1
program f(%0: f32[32,<2*b + 1>,64], %1: bf16[]) {
  %2: f32[3,4] = broadcast_in_dim %1 {shape=[<b>, 4], dims=[]}  # seed.py:3 (f)
  %3: f32[3,4] = select_n true:bool %2 2.0:f32 -inf:f32
  %4: c64[] = add (1.0,-0.0):c64 (nan,inf):c64
  %5: f32[], %6: f32[10] = scan %3 {length=10, reverse=false, consts=0, carry=1, unroll=1, body=(%0: f32[]) {
    %1: f32[] = remat %0 {body=(%0: f32[]) {
      %1: f32[] = sin %0  # a.py:1 (g)
      return %1
    }, barrier=true}  # a.py:2 (g)
    return %1
  }}  # b.py:9 (h)
  %7: f32[] = cond 0:i32 {branches=[() {
    return 1.0:f32
  }, () {
    return 2.5e-6:f32
  }]}
  %8: f32[2,2] = dot_general %5 %5 {lhs_contract=[], rhs_contract=[], lhs_batch=[], rhs_batch=[], dtype=f32, \
precision="highest,default"}
  %9: f64[3] = constant {value=[0.1, nan, 1.0e300]}
  return %5 %8 3:u8
}
"""


def test_the_canonical_text_reads_back_to_the_letter():
    program = parse(GOLDEN)
    assert str(program) == GOLDEN
    assert parse(str(program)) == program
    assert program.equations[3].source == "b.py:9 (h)"
    assert program.equations[0].source == "seed.py:3 (f)" and program.equations[1].source == ""


def test_white_space_comments_and_numbering_are_free():
    free = """# a comment
      pybridge 1 program  f ( %7 : f32[ 2 , 3 ] ){ # not a source
      %3:f32[2,3]=sin %7# here (f)
      %5 : f32[2,3]
        = neg
        %3   # there

      return # none
      %5 }  # the end"""
    program = parse(free)
    assert [eq.source for eq in program.equations] == ["here (f)", "there"]
    assert str(program) == (
        "pybridge 1\nprogram f(%0: f32[2,3]) {\n  %1: f32[2,3] = sin %0  # here (f)\n"
        "  %2: f32[2,3] = neg %1  # there\n  return %2\n}\n"
    )


def test_attributes_print_in_the_order_of_the_table():
    text = around("%1: f32[2] = slice 0.5:f32 {strides=[1], start=[0], limit=[2]}")
    assert "{start=[0], limit=[2], strides=[1]}" in str(parse(text))


def test_several_programs():
    two = "pybridge 1\nprogram f() {\n  return\n}\nprogram g() {\n  return\n}\n"
    assert [p.name for p in parse_all(two)] == ["f", "g"]
    with pytest.raises(ProgramSyntaxError, match="found 2"):
        parse(two)


def test_a_newer_version_is_refused_by_name():
    with pytest.raises(ProgramVersionError, match=r"version 2.*upgrade"):
        parse("pybridge 2\nsomething else entirely")


def around(equation: str) -> str:
    """A text whose third line is the equation, from column 3."""
    return f"pybridge 1\nprogram f(%0: f32[]) {{\n  {equation}\n  return %0\n}}\n"


@pytest.mark.parametrize(
    "text, line, column, message",
    [
        ("", 1, 1, "expected 'pybridge', found the end"),
        ("hello", 1, 1, "expected 'pybridge'"),
        ("pybridge x", 1, 10, "an integer"),
        ("pybridge 0", 1, 10, "no version 0"),
        ("pybridge 1", 1, 11, "expected 'program'"),
        ("pybridge 1\nprogram f", 2, 10, "expected '('"),
        ("pybridge 1\nprogram nan() {return}", 2, 9, "reserved"),
        ("pybridge 1\nprogram f(%0 f32[]) {}", 2, 14, "expected ':'"),
        ("pybridge 1\nprogram f(%0: f31[]) {}", 2, 15, "expected a dtype"),
        ("pybridge 1\nprogram f(%0: f32[-1]) {}", 2, 19, "expected a dimension"),
        ("pybridge 1\nprogram f(%0: f32[<>]) {}", 2, 19, "is empty"),
        ("pybridge 1\nprogram f(%0: f32[], %0: f32[]) {}", 2, 22, "bound twice"),
        ("pybridge 1\nprogram f(%0: f32[]) {\n return %0 ?", 3, 12, "unexpected character '?'"),
        (around("%1: f32[] = sin %1"), 3, 19, "%1 is used before it is bound"),
        (around("%0: f32[] = sin %0"), 3, 3, "%0 is bound twice"),
        (around("%1: f32[] = frobnicate %0"), 3, 15, "there is no primitive frobnicate"),
        (around("%1: f32[] = sin %0 {axes=[1]}"), 3, 23, "sin has no attribute axes"),
        (around("%1: f32[] = reduce_sum %0"), 4, 3, "the attribute axes of reduce_sum"),
        (around("%1: f32[] = iota {dim=0, dim=1}"), 3, 28, "given twice"),
        (around("%1: f32[] = sin 1:f32"), 3, 19, "1 is not a number of dtype f32"),
        (around("%1: f32[] = sin 300:u8"), 3, 19, "300 is not a number of dtype u8"),
        (around("%1: f32[] = sin 1.5:i8"), 3, 19, "not a number of dtype i8"),
        (around("%1: f32[] = sin 1e99:f32"), 3, 19, "not a number of dtype f32"),
        (around("%1: f32[] = sin (1.0,2.0):f32"), 3, 19, "not a number of dtype f32"),
        (around("%1: f32[] = sin 1.0:c64"), 3, 19, "not a number of dtype c64"),
        (around("%1: f32[] = sin true:f32"), 3, 19, "not a number"),
        (around("%1: f32[] = integer_pow %0 {y=99999999999999999999}"), 3, 33, "does not fit 64 bits"),
        (around(r'%1: f32[] = convert_element_type %0 {dtype="\q"}'), 3, 46, "not a JSON string"),
        (around("%1: f32[] = reduce_sum %0 {axes=[1,]}"), 3, 38, "expected a value"),
        (around("reduce_sum %0"), 3, 3, "an equation or 'return'"),
    ],
)  # fmt: skip
def test_errors_name_line_column_and_expectation(text, line, column, message):
    with pytest.raises(ProgramSyntaxError) as e:
        parse(text)
    assert str(e.value).startswith(f"line {line}, column {column}: "), e.value
    assert message in str(e.value)


@pytest.mark.parametrize("text", [None, 3, b"pybridge 1"])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(ProgramSyntaxError):
        parse(text)


@pytest.mark.parametrize("opening", ["[", "() { %0: f32[] = remat {body="])
def test_hostile_nesting_is_refused_not_a_crash(opening):
    text = "pybridge 1\nprogram f() {\n %0: f32[] = remat {body=" + opening * 5000
    with pytest.raises(ProgramSyntaxError, match="levels of nesting"):
        parse(text)


def test_deep_bodies_are_fine():
    depth = 90
    text = "pybridge 1\nprogram f() {\n"
    text += "%0: f32[] = remat {body=() {" * depth
    text += "return 1.0:f32 " + "}, barrier=true} return %0 " * depth + "}"
    program = parse(text)
    assert program.equation_count() == depth
    assert parse(str(program)) == program


def test_twenty_thousand_equations_are_quick():
    n = 20_000
    lines = [f"  %{i + 1}: f32[3,4] = add %{i} {i}.5:f32  # f.py:{i} (g)" for i in range(n)]
    text = "\n".join(["pybridge 1", "program f(%0: f32[3,4]) {", *lines, f"  return %{n}", "}", ""])
    gc.collect()
    gc.freeze()  # what other tests have left is not looked through by the collector meanwhile
    try:
        start = time.process_time()
        program = parse(text)
        parsed = time.process_time()
        assert str(program) == text
        printed = time.process_time()
    finally:
        gc.unfreeze()
    assert parsed - start < 2 and printed - parsed < 2


# Numbers

SINGLE = st.integers(0, 2**32 - 1).map(lambda n: float(np.uint32(n).view(np.float32)))
DOUBLE = st.integers(0, 2**64 - 1).map(lambda n: float(np.uint64(n).view(np.float64)))


@given(DOUBLE)
@example(1e-5)
@example(1e-6)
@example(1e15)
@example(1e16)
@example(5e-324)
@example(1.7976931348623157e308)
def test_float64_text_is_exact_and_shortest(x):
    text = format_float(x)
    assert np.float64(read_float(text)).tobytes() == np.float64(x).tobytes() or x != x
    if np.isfinite(x) and x:
        assert len(_digits(text)) == len(_digits(repr(x)))


@given(SINGLE)
@example(float(np.float32(1e-45)))
@example(float(np.float32(7.038531e-26)))
@example(float(np.float32(3.4028235e38)))
def test_float32_text_is_exact(x):
    assert np.float32(read_float(format_float(x, True), True)).tobytes() == np.float32(x).tobytes() or x != x


def _digits(text: str) -> str:
    return re.sub(r"e.*|[-.]", "", text).strip("0")


@pytest.mark.parametrize(
    "x, text",
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.00001, "0.00001"),
        (0.00000123, "1.23e-6"),
        (1234567890123456.0, "1234567890123456.0"),
        (1e16, "1.0e16"),
        (-1.5e-300, "-1.5e-300"),
        (float("inf"), "inf"),
        (-float("inf"), "-inf"),
        (-float("nan"), "nan"),
    ],
)
def test_the_normal_form_of_floats(x, text):
    assert format_float(x) == text


def test_float32_decimals_are_rounded_once():
    # Rounded to float64 first, this decimal would land on a tie and go down.
    text = "1.00000017881393432617187499"
    assert np.float32(read_float(text, True)) == np.float32(1.0000001)
    assert read_float("1.00000017881393432617187501", True) == float(
        np.nextafter(np.float32(1.0000001), np.float32(2))
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_has_literals_that_read_back(dtype):
    samples = {"bool": [True, False], "c64": [1j, -0.5], "c128": [1e300j]}
    if dtype[0] in "iu":
        info = np.iinfo(DTYPES[dtype])
        samples[dtype] = [info.min, info.max, 3]
    for value in samples.get(dtype, [0.1, -0.0, float("nan"), float("inf"), 1e-7, 3e4]):
        literal = Literal(value, dtype)
        text = f"pybridge 1\nprogram f() {{\n  return {literal}\n}}\n"
        (found,) = parse(text).outputs
        assert found == literal and str(parse(text)) == text


# Random Programs


@settings(max_examples=200 if FULL else 80, deadline=None)
@given(programs())
def test_random_programs_read_back_equal(program):
    text = str(program)
    again = parse(text, program.constants)
    assert again == program
    assert str(again) == text
    assert again.name == program.name
    assert [eq.source for eq in again.equations] == [eq.source for eq in program.equations]


@settings(max_examples=300 if FULL else 100, deadline=None)
@given(programs(), st.data())
def test_damaged_text_raises_errors_of_ours_alone(program, data):
    text = str(program)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 6))
        text = (
            text[:at]
            + data.draw(st.text('%:{}[]()=,#"<>\\ \n0123456789.-e_fnitru\x00\udc80é', max_size=4))
            + text[at + cut :]
        )
    with contextlib.suppress(ProgramSyntaxError, ProgramTypeError):
        parse(text)


@given(st.text())
def test_arbitrary_text_is_a_syntax_error(text):
    for candidate in (text, "pybridge 1\n" + text):
        with pytest.raises(ProgramSyntaxError):
            parse(candidate)
