"""Linear maps with the user's own inverses and transposes: `custom_linear_solve` and `linear_call`."""

from __future__ import annotations

import itertools

from jax import lax

from ...ir.numerals import is_inexact
from ..adapter import equation_parameters
from ..adapter.linear_map import linear_map
from .spec import Spec


def _custom_linear_solve(*operands, consts, matvec, vecmat, solve, transpose_solve):
    # JAX makes vecmat itself, by transposing matvec.
    of_matvec, _, of_solve, of_transpose, b = _groups(operands, consts)
    size = len(b)
    has_aux = len(solve.program.outputs) > size

    def solver(body, closed_over):
        def run(_, right):
            results = body(*closed_over, *right)
            return (results[:size], results[size:]) if has_aux else results

        return run if body is not None else None

    results = lax.custom_linear_solve(
        lambda x: matvec(*of_matvec, *x),
        b,
        solve=solver(solve, of_solve),
        transpose_solve=solver(transpose_solve, of_transpose),
        has_aux=has_aux,
    )
    return (*results[0], *results[1]) if has_aux else results


def _groups(operands, counts):
    rest = iter(operands)
    return [*(tuple(itertools.islice(rest, n)) for n in counts), tuple(rest)]


def _lower_custom_linear_solve(lowering, eqn, inputs):
    solve = equation_parameters.linear_solve(eqn)
    bodies = {name: None if body is None else lowering.body(body) for name, body in solve.functions.items()}
    consts = tuple(solve.consts.values())
    return lowering.emit("custom_linear_solve", inputs, eqn, consts=consts, **bodies)


def _linear_call(*operands, residuals, call, transpose):
    return linear_map(call, transpose, operands[:residuals], operands[residuals:])


def _lower_linear_call(lowering, eqn, inputs):
    linear = equation_parameters.linear_call(eqn)
    if not any(is_inexact(a.type.dtype) for a in inputs[linear.residuals :]):
        # Integers have no cotangents, and the transpose may give others, such as quotients.
        return lowering.inline(linear.call, inputs)
    call = lowering.body(linear.call)

    def back(inner, args):
        made = [inner.constant(c) for c in linear.transpose_consts]
        return inner.inline(linear.transpose, [*made, *args[linear.consts :]])

    known = [a.type for a in inputs[: linear.residuals]]
    return lowering.append(
        "linear_call",
        inputs,
        call.output_types,
        residuals=linear.residuals,
        call=call,
        transpose=lowering.subprogram([*known, *call.output_types], back),
    )


SPECS = [
    Spec(
        "custom_linear_solve",
        _custom_linear_solve,
        lower=_lower_custom_linear_solve,
    ),
    Spec(
        "linear_call",
        _linear_call,
        lax=("linear_call", "linear_map"),
        lower=_lower_linear_call,
    ),
]
