"""Random Programs for the round trip: every kind of type, literal, attribute and nesting of the grammar.

They are well formed, not meaningful: attributes hold whatever the grammar allows.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from pybridge.ir.numerals import COMPLEX, DTYPES, INTEGERS, integer_range
from pybridge.ir.program import Equation, Program, constant_ref
from pybridge.ir.schema import OPERATIONS
from pybridge.ir.types import Literal, SymDim, TensorType, Var

SYMBOLIC = st.sampled_from(["b", "2*b + 1", "floordiv(b, 2)", "b^2"]).map(SymDim)
DIMS = st.one_of(st.integers(0, 7), SYMBOLIC)
TYPES = st.builds(TensorType, st.sampled_from(sorted(DTYPES)), st.lists(DIMS, max_size=3).map(tuple))
NAMES = st.sampled_from(["f", "loss_2", "_g", "return", "program", "true_division"])
SOURCES = st.sampled_from(["", "model.py:12 (f)", "a b.py:3 (<lambda>)", "x.py:1 (é # {)"])
FLOATS = st.floats(allow_nan=True, allow_infinity=True)
STRINGS = st.one_of(
    st.sampled_from(["clip", "none", "true", "inf", "highest,default", 'a "b"\\', "\n\t\u2028", ""]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
)

# Attributes whose meaning the reader checks; every other may hold any value.
_NESTED = {"body", "call", "jvp", "fwd", "bwd", "cond", "branches"}


@st.composite
def literals(draw) -> Literal:
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    if dtype == "bool":
        return Literal(draw(st.booleans()), dtype)
    if dtype in INTEGERS:
        return Literal(draw(st.integers(*integer_range(dtype))), dtype)
    if dtype in COMPLEX:
        return Literal(complex(draw(FLOATS), draw(FLOATS)), dtype)
    return Literal(draw(FLOATS), dtype)


def values(depth: int):
    plain = st.one_of(
        st.integers(-(2**63), 2**63 - 1), st.booleans(), st.none(), FLOATS, STRINGS, SYMBOLIC, st.just(())
    )
    nested = st.recursive(plain, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
    return nested if not depth else st.one_of(nested, programs(depth - 1, name=""))


@st.composite
def programs(draw, depth: int = 2, name: str | None = None) -> Program:
    count = 0

    def fresh(type_: TensorType) -> Var:
        nonlocal count
        count += draw(st.integers(1, 3))  # numbers with gaps: construction normalises them
        return Var(count, type_)

    scope = [fresh(t) for t in draw(st.lists(TYPES, max_size=3))]
    inputs, constants, equations = tuple(scope), {}, []

    def atoms(limit: int):
        choices = [literals()] + ([st.sampled_from(scope)] if scope else [])
        return tuple(draw(st.lists(st.one_of(*choices), max_size=limit)))

    for _ in range(draw(st.integers(0, 4))):
        op = draw(st.sampled_from(sorted(OPERATIONS)))
        operands = atoms(3)
        outputs = tuple(fresh(t) for t in draw(st.lists(TYPES, min_size=1, max_size=2)))
        attrs = {attr: draw(_attribute(attr, depth)) for attr in OPERATIONS[op].attributes}
        if op == "constant":
            attrs = draw(_constant(constants))
        equations.append(Equation(op, operands, outputs, attrs, draw(SOURCES)))
        scope.extend(outputs)
    title = draw(NAMES) if name is None else name
    return Program(title, inputs, tuple(equations), atoms(3), constants)


def _attribute(attr: str, depth: int):
    if attr in _NESTED and depth:
        bodies = programs(depth - 1, name="")
        return st.lists(bodies, max_size=2).map(tuple) if attr == "branches" else bodies
    return values(depth)


@st.composite
def _constant(draw, constants: dict[str, np.ndarray]) -> dict:
    if draw(st.booleans()):
        return {"value": tuple(draw(st.lists(FLOATS, max_size=4)))}
    data = np.asarray(draw(st.lists(st.integers(-9, 9), max_size=3)), np.float32)
    ref = constant_ref(data, TensorType("f32", data.shape))
    constants[ref] = data
    return {"ref": ref}
