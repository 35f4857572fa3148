"""Programs back in JAX: every case's Program computes what its function computes."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from casekit import Case, computed
from cases import BATCHES, CASES, by_op
from neighbours import neighbours

from pybridge.errors import ArgumentError, NotDifferentiable, ProgramTypeError, UnsupportedPrimitive
from pybridge.frontend.emission import to_jax
from pybridge.frontend.primitives import SPECS
from pybridge.frontend.tracing import trace
from pybridge.ir.parser import parse
from pybridge.ir.program import Equation, Program
from pybridge.ir.types import Literal, TensorType, Var

F32 = TensorType("f32", (2,))


def ops_of(program: Program) -> set[str]:
    """The primitives in a Program and its nested ones."""
    nested = (ops_of(body) for eq in program.equations for body in eq.bodies)
    return {eq.op for eq in program.equations}.union(*nested)


@pytest.mark.per_primitive
@pytest.mark.parametrize("cases", **BATCHES)
def test_traced_programs_compute_their_functions(cases):
    results = _results(_NEIGHBOURS[cases[0].name])
    for case in cases:
        arguments, y, x = results[case.name]
        assert jax.tree.structure(y) == jax.tree.structure(x), case
        for a, b in zip(jax.tree.leaves(y), jax.tree.leaves(x), strict=True):
            _assert_same(np.asarray(a), np.asarray(b), case.exact, str(case))
        for argument, original in zip(arguments, case.inputs(), strict=True):
            assert argument.tobytes() == original.tobytes(), f"{case}: an input was changed"


_NEIGHBOURS = neighbours(BATCHES["argvalues"])


@functools.cache
def _results(cases: tuple[Case, ...]) -> dict[str, list]:
    """The inputs of each case, its function's results and those of its Program."""
    with cases[0].context():
        arguments = [case.inputs() for case in cases]
        fs = [case.f for case in cases] + [_traced(case).to_jax() for case in cases]
        results = computed(fs, arguments * 2)
    expected, found = results[: len(cases)], results[len(cases) :]
    return {case.name: parts for case, *parts in zip(cases, arguments, expected, found, strict=True)}


def _traced(case) -> Program:
    program = trace(case.f)(*case.inputs())
    assert case.op == "program" or case.op in ops_of(program), case
    assert parse(str(program), program.constants) == program, case
    return program


def _assert_same(x: np.ndarray, y: np.ndarray, exact: bool, name: str = "") -> None:
    assert (x.dtype, x.shape) == (y.dtype, y.shape), name
    if exact or x.dtype.kind in "iub":
        assert x.tobytes() == y.tobytes(), (name, x, y)
    else:
        # A few units in the last place, of float32 for the smaller dtypes too.
        tolerance = (
            1e-13 if x.dtype in (np.float64, np.complex128) else 2e-2 if x.dtype.itemsize == 2 else 1e-5
        )
        kind = np.complex128 if x.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(y.astype(kind), x.astype(kind), tolerance, tolerance, err_msg=name)


def test_the_comparison_notices_one_bit():
    x = np.float32([1.0, 2.0])
    with pytest.raises(AssertionError):
        _assert_same(x, np.nextafter(x, np.float32(9)), exact=True)
    with pytest.raises(AssertionError):
        _assert_same(x, x.astype(np.float64), exact=False)
    with pytest.raises(AssertionError):
        _assert_same(x, x + np.float32(1e-3), exact=False)


# Primitives of JAX since 0.11.
_SINCE_0_11 = {
    "log2": (np.log2, lambda x: 1 / (x * np.log(2.0))),
    "one_minus_square": (lambda x: 1 - x**2, lambda x: -2 * x),
}


@pytest.mark.parametrize("op", _SINCE_0_11)
def test_operations_that_older_releases_lack(op, x64):
    program = parse(f"pybridge 1\nprogram f(%0: f64[3]) {{\n  %1: f64[3] = {op} %0\n  return %1\n}}\n")
    x, (value, slope) = np.array([0.25, 1.5, 3.0]), _SINCE_0_11[op]
    np.testing.assert_allclose(to_jax(program)(x)[0], value(x), rtol=1e-14)
    np.testing.assert_allclose(program.call(x)[0], value(x), rtol=1e-14)
    np.testing.assert_allclose(to_jax(program.vjp())(x, np.ones(3))[0], slope(x), rtol=1e-14)


def test_every_row_of_the_table_has_a_case():
    # custom_vjp_tangent has no value, dim_size needs symbolic dimensions, only transposition makes
    # while_passes: each of these has tests of its own.
    caseless = {"custom_vjp_tangent", "dim_size", "while_passes"}
    caseless |= {op for op in (*_SINCE_0_11, "mulhi") if not hasattr(jax.lax, op)}
    assert {op for op in SPECS if not by_op(op)} == caseless


def test_cases_have_unique_names_and_reproducible_inputs():
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        for x, y in zip(case.inputs(), case.inputs(), strict=True):
            assert x.tobytes() == y.tobytes()
        assert all(case.inputs()[i].dtype.kind in "fcV" for i in case.active)


# Types


def unary(op: str, out: TensorType, **attrs) -> Program:
    x, y = Var(0, F32), Var(1, out)
    return Program("p", (x,), (Equation(op, (x,), (y,), attrs, "model.py:7 (f)"),), (y,))


@pytest.mark.parametrize("out", [TensorType("f64", (2,)), TensorType("f32", (3,)), TensorType("f32")])
def test_a_result_of_another_type_than_declared_is_refused(out):
    with pytest.raises(ProgramTypeError, match=r"sin \(model.py:7 \(f\)\) gives f32\[2\]"):
        to_jax(unary("sin", out))(np.zeros(2, np.float32))


def test_operands_that_do_not_fit_name_the_equation():
    with pytest.raises(ProgramTypeError, match=r"reshape \(model.py:7"):
        to_jax(unary("reshape", TensorType("f32", (3,)), shape=(3,)))(np.zeros(2, np.float32))


def test_an_unknown_primitive_is_refused_before_anything_runs():
    with pytest.raises(UnsupportedPrimitive, match=r"frobnicate at model.py:7") as e:
        to_jax(unary("frobnicate", F32))
    assert e.value.primitive == "frobnicate" and e.value.source == "model.py:7 (f)"


@pytest.mark.parametrize(
    "args, message",
    [
        ((), "takes 1 array"),
        ((np.zeros(2, np.float32),) * 2, "takes 1 array"),
        ((np.zeros(2, np.int32),), "argument 0 is i32"),
        ((np.zeros(3, np.float32),), "size 3"),
        ((np.zeros((2, 1), np.float32),), r"shape \(2, 1\)"),
        (("x",), "no array but a str"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args, message):
    f = to_jax(unary("sin", F32))
    with pytest.raises(ArgumentError, match=message):
        f(*args)
    assert f(np.zeros(2, np.float32))[0].shape == (2,)  # and the next call works


def test_64_bit_programs_ask_for_64_bit_types():
    x = Var(0, TensorType("f64"))
    f = to_jax(Program("p", (x,), (), (x,)))
    with jax.enable_x64(False), pytest.raises(ArgumentError, match="jax_enable_x64"):
        f(np.float64(1))


def test_weak_types_do_not_enter(x64):
    x = Var(0, TensorType("bf16", (2,)))
    y = Var(1, TensorType("bf16", (2,)))
    f = to_jax(Program("p", (x,), (Equation("mul", (x, Literal(0.1, "bf16")), (y,)),), (y, Literal(3, "i8"))))
    product, three = f(jnp.ones(2, jnp.bfloat16))
    assert product.dtype == jnp.bfloat16 and three.dtype == jnp.int8
    assert f(2.0 * jnp.ones(2, jnp.bfloat16))[0].weak_type is False


def test_python_numbers_take_the_declared_dtype():
    program = trace(lambda x: x * 2)(np.float32(1))
    assert program.to_jax()(3).dtype == np.float32


def test_literals_alone_stand_for_arrays():
    y = Var(0, F32)
    f = to_jax(Program("p", (), (Equation("add", (Literal(1.0, "f32"), Literal(2.0, "f32")), (y,)),), (y,)))
    np.testing.assert_array_equal(f()[0], np.float32([3, 3]))


def test_missing_constants_are_named():
    program = trace(lambda x: x + np.arange(100.0, dtype=np.float32))(np.zeros(100, np.float32))
    bare = parse(str(program))
    assert bare == program and not bare.constants
    with pytest.raises(ProgramTypeError, match="missing"):
        to_jax(bare)(np.zeros(100, np.float32))
    again = parse(str(program), program.constants)
    np.testing.assert_array_equal(to_jax(again)(np.ones(100, np.float32))[0], 1 + np.arange(100))


def test_forward_mode_over_custom_vjp_says_why_not():
    from cases_control import powered

    x = np.float32([1, 2])
    program = trace(lambda x: jax.jvp(lambda x: powered(x, 3), (x,), (x,)))(x)
    (eq,) = [eq for eq in program.equations if eq.op == "custom_vjp_tangent"]
    assert eq.attrs["residuals"] == 1
    with pytest.raises(NotDifferentiable, match="custom_vjp"):
        program.to_jax()(x)


# JAX's transformations on the emitted function


@pytest.mark.parametrize("op", ["scan", "cond", "remat", "dot_general", "gather", "scatter_add", "sort"])
def test_emitted_functions_differentiate_as_their_originals(op):
    for case in by_op(op):
        if not case.active or case.dtype != "f32":
            continue
        args = [jnp.asarray(x) for x in case.inputs()]
        emitted = trace(case.f)(*args).to_jax()
        expected = jax.jit(lambda *a, f=case.reference or case.f, i=case.active: _gradient(f, i)(*a))(*args)
        found = jax.jit(lambda *a, f=emitted, i=case.active: _gradient(f, i)(*a))(*args)
        for x, y in zip(expected, found, strict=True):
            np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-5)


def _gradient(f, active):
    def total(*args):
        return sum(
            jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(f(*args)) if jnp.issubdtype(y.dtype, jnp.inexact)
        )

    return jax.grad(total, argnums=active)


def test_emitted_functions_vmap():
    program = trace(lambda x: jax.lax.while_loop(lambda c: c < 9, lambda c: c * 2, x))(np.float32(1))
    xs = np.float32([0.5, 3, 20])
    np.testing.assert_array_equal(jax.vmap(program.to_jax())(xs), [16, 12, 20])


def test_loops_stay_loops():
    program = trace(lambda x: jax.lax.scan(lambda c, _: (c * 2, None), x, length=7, unroll=3)[0])(1.0)
    (scan,) = [eq for eq in jax.make_jaxpr(program.to_jax())(1.0).eqns if str(eq.primitive) == "scan"]
    assert (scan.params["length"], scan.params["unroll"]) == (7, 3)


def test_a_remat_with_barrier_keeps_it():
    program = trace(jax.checkpoint(jnp.sin))(1.0)
    assert "optimization_barrier" in str(jax.make_jaxpr(program.to_jax())(1.0))
    program = trace(jax.checkpoint(jnp.sin, prevent_cse=False))(1.0)
    assert "optimization_barrier" not in str(jax.make_jaxpr(program.to_jax())(1.0))
