"""Programs as values: single assignment, numbering, equality, exact literals."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

from pybridge.errors import ProgramTypeError
from pybridge.frontend.tracing import trace
from pybridge.ir.program import Equation, Program, constant_ref
from pybridge.ir.types import Literal, SymDim, TensorType, Var

F = TensorType("f32", (3,))
X, Y, Z = Var(7, F), Var(4, F), Var(9, F)


def sine(x: Var, y: Var, **more) -> Equation:
    return Equation("sin", (x,), (y,), **more)


def test_variables_are_renumbered_in_order_of_binding():
    p = Program("p", (X,), (sine(X, Z), Equation("add", (Z, X), (Y,))), (Y, X))
    assert [v.id for v in p.inputs] == [0]
    assert [v.id for eq in p.equations for v in eq.outputs] == [1, 2]
    assert [a.id for a in p.equations[1].inputs] == [1, 0]
    assert [a.id for a in p.outputs] == [2, 0]


@pytest.mark.parametrize(
    "inputs, equations, outputs, message",
    [
        ((), (sine(X, Y),), (Y,), "%7 is used by sin before"),
        ((X,), (sine(X, X),), (X,), "%7 is bound twice"),
        ((X, X), (), (), "%7 is bound twice"),
        ((X,), (sine(X, Y),), (Z,), "%9 is used by return before"),
        ((X,), (sine(X, Y), sine(Z, Z)), (), "%9 is used by sin before"),
        ((X,), (sine(Var(7, TensorType("f64", (3,))), Y),), (), "bound as f32"),
        ((X,), (Equation("sin", (X,), ()),), (), "binds no variable"),
    ],
)
def test_ill_typed_programs_are_refused(inputs, equations, outputs, message):
    with pytest.raises(ProgramTypeError, match=message):
        Program("p", inputs, equations, outputs)


@pytest.mark.parametrize("dtype, shape", [("f8", ()), ("f32", (-1,)), ("f32", (True,)), ("f32", (2.0,))])
def test_types_outside_the_language_are_refused(dtype, shape):
    TensorType("f32", (1,))  # True equals 1 but is no dimension
    with pytest.raises(ProgramTypeError, match="is not a d"):
        TensorType(dtype, shape)


@pytest.mark.parametrize("text", ["", " ", "a>b", "a\nb"])
def test_symbolic_dimensions_fit_the_grammar(text):
    with pytest.raises(ProgramTypeError, match="not a symbolic dimension"):
        SymDim(text)


@pytest.mark.parametrize(
    "text",
    [
        "b^300000000",
        "(a+b+c+d+e)^60",
        "9^9^9",
        "(-2)^64 * b",
        "b^33",
        "b^99999999999999999999",
        "9223372036854775807 + b + 1 + 9223372036854775807 - b",
        "(" * 30 + "b" + ")" * 30,
        " + ".join(f"n{k}" for k in range(400)),
        "f(" + "*".join(f"(a + b{k})" for k in range(9)) + ")",
        "(0-1)^300000000",
    ],
)
def test_symbolic_dimensions_have_bounds(text):
    with pytest.raises(ProgramTypeError, match="symbolic dimension"):
        SymDim(text)


@pytest.mark.parametrize(
    "text", ["(-1)^300000001 * b", "(0-1)^300000000 + b", "0^7 + b", "b^32", "(a + b)^8"]
)
def test_symbolic_dimensions_within_the_bounds(text):
    assert SymDim(text).text == text


@pytest.mark.parametrize("name", ["a b", "1f", "<lambda>", "ä"])
def test_names_fit_the_grammar(name):
    with pytest.raises(ProgramTypeError, match="name"):
        Program(name, (), (), ())


def test_names_and_sources_do_not_count():
    p = Program("p", (X,), (sine(X, Y, source="a.py:1 (f)"),), (Y,))
    q = Program("q", (Y,), (sine(Y, Z, source="b.py:2 (g)"),), (Z,))
    assert p == q and hash(p) == hash(q) and p.digest == q.digest
    assert p.equations[0] == q.equations[0] and hash(p.equations[0]) == hash(q.equations[0])


def test_contents_count():
    base = Program("p", (X,), (sine(X, Y),), (Y,))
    others = [
        Program("p", (X,), (Equation("cos", (X,), (Y,)),), (Y,)),
        Program("p", (X,), (sine(X, Y),), (X,)),
        Program("p", (X, Z), (sine(X, Y),), (Y,)),
        Program("p", (X,), (sine(X, Y), sine(X, Z)), (Y,)),
    ]
    assert all(base != other and base.digest != other.digest for other in others)
    assert base != "p"


def with_attr(value) -> Equation:
    return Equation("f", (X,), (Y,), {"a": value})


@pytest.mark.parametrize(
    "x, y", [(1, True), (1, 1.0), (0.0, -0.0), ("1", 1), (None, "none"), ((1,), (1, 1)), ((), None)]
)
def test_attributes_that_print_apart_are_apart(x, y):
    assert with_attr(x) != with_attr(y)
    assert Program("", (X,), (with_attr(x),), ()) != Program("", (X,), (with_attr(y),), ())


def test_attributes_that_print_alike_are_equal():
    assert with_attr(float("nan")) == with_attr(-float("nan"))
    assert with_attr([1, [2.0]]) == with_attr((np.int64(1), (np.float32(2),)))
    assert with_attr(np.bool_(True)) == with_attr(True)
    assert type(with_attr(np.int32(3)).attrs["a"]) is int


@pytest.mark.parametrize("value", [object(), {1: 2}, np.zeros(3), b"x", 1j])
def test_attributes_of_other_types_are_refused(value):
    with pytest.raises(ProgramTypeError, match="attribute"):
        with_attr(value)


def test_nothing_can_be_changed():
    p = Program("p", (X,), (with_attr([1]),), (Y,))
    with pytest.raises(AttributeError):
        p.name = "q"
    with pytest.raises(TypeError):
        p.equations[0].attrs["a"] = 2
    with pytest.raises(TypeError):
        p.constants["r"] = np.zeros(3)


def test_literals_compare_by_bits_but_nans_are_one():
    assert Literal(math.nan, "f32") == Literal(-math.nan, "f32")
    assert hash(Literal(math.nan, "f32")) == hash(Literal(-math.nan, "f32"))
    assert Literal(0.0, "f32") != Literal(-0.0, "f32")
    assert Literal(1.0, "f32") != Literal(1.0, "f64")
    assert Literal(1, "i32") != Literal(True, "bool")
    assert Literal(complex(0.0, -0.0), "c64") != Literal(0j, "c64")


def test_literals_are_rounded_to_their_dtype():
    assert Literal(0.1, "f32").value == float(np.float32(0.1))
    assert Literal(0.1, "f64").value == 0.1
    assert Literal(1e6, "f16").value == math.inf
    assert Literal(3, "f32").value == 3.0 and type(Literal(3, "f32").value) is float
    assert Literal(np.int8(3), "i8").value == 3


@pytest.mark.parametrize("value, dtype", [(256, "u8"), (-1, "u8"), (2**31, "i32"), (1.0, "f8")])
def test_literals_that_do_not_fit_are_refused(value, dtype):
    with pytest.raises(ProgramTypeError):
        Literal(value, dtype)


def test_equations_are_counted_inside_bodies():
    inner = Program("", (X,), (sine(X, Y), sine(Y, Z)), (Z,))
    pred = Var(1, TensorType("i32"))
    p = Program("p", (pred, X), (Equation("cond", (pred, X), (Z,), {"branches": (inner, inner)}),), (Z,))
    assert (p.equation_count(), p.equation_count(recursive=False)) == (5, 1)


def test_constants_of_nested_programs_are_at_hand_and_others_dropped():
    data = np.arange(100, dtype=np.float32)
    type_ = TensorType("f32", (100,))
    ref = constant_ref(data, type_)
    inner = Program("", (), (Equation("constant", (), (Var(0, type_),), {"ref": ref}),), (), {ref: data})
    out = Var(1, F)
    p = Program(
        "p", (), (Equation("remat", (), (out,), {"body": inner, "barrier": True}),), (), {"unused": data}
    )
    assert set(p.constants) == {ref}


def test_constant_refs_tell_dtype_shape_and_content_apart():
    data = np.arange(4, dtype=np.float32)
    refs = {
        constant_ref(data, TensorType("f32", (4,))),
        constant_ref(data.reshape(2, 2), TensorType("f32", (2, 2))),
        constant_ref(data.view(np.int32), TensorType("i32", (4,))),
        constant_ref(data + 1, TensorType("f32", (4,))),
    }
    assert len(refs) == 4
    assert constant_ref(data.astype(">f4"), TensorType("f32", (4,))) in refs
    assert constant_ref(np.repeat(data, 2)[::2], TensorType("f32", (4,))) in refs


def test_a_users_rule_is_not_counted_among_the_equations_that_run():
    p = trace(jax.nn.relu)(np.ones(3))
    (call,) = [eq for eq in p.equations if eq.op == "custom_jvp"]
    assert p.equation_count() == len(p.equations) + call.attrs["call"].equation_count()
