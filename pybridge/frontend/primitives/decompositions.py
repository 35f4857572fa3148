"""Primitives of lax that are no primitives of Programs but are made of them, and calls that are inlined.

Each is a function `(lowering, eqn, inputs) -> atoms`.
"""

from __future__ import annotations

import itertools

from ...ir.numerals import FLOATS
from ...ir.types import Literal, SymDim, TensorType
from ..adapter import definitions, equation_parameters
from .cholesky_update import lower_cholesky_update
from .custom import lower_custom_vmap, lower_high, lower_high_linear
from .folding import FOLDED
from .spec import dims, integers


def _identity(lowering, eqn, inputs):
    """For primitives that mean something to XLA or to a mesh but change no value."""
    return inputs


def _inlined(lowering, eqn, inputs):
    return lowering.inline(equation_parameters.called(eqn), inputs)


def _broadcast_in_dim(lowering, eqn, inputs):
    (x,), shape = inputs, dims(eqn.params["shape"])
    return [lowering.broadcast_in_dim(x, shape, integers(eqn.params["broadcast_dimensions"]))]


def _convert_element_type(lowering, eqn, inputs):
    """Nothing where only a weak type is made strong."""
    out = lowering.type_of(eqn.outvars[0].aval, "convert_element_type")
    return [lowering.convert(inputs[0], out.dtype)]


def _polynomial(lowering, eqn, inputs):
    """c0 + x (c1 + x (c2 + ...))."""
    out = lowering.type_of(eqn.outvars[0].aval)
    x = lowering.broadcast(inputs[0], out.shape)
    *coefficients, total = (
        c if isinstance(c, Literal) else lowering.broadcast(c, out.shape) for c in inputs[1:]
    )
    for c in reversed(coefficients):
        (product,) = lowering.append("mul", [total, x], [out])
        (total,) = lowering.append("add", [product, c], [out])
    return [total]


def _stack(lowering, eqn, inputs):
    out = lowering.type_of(eqn.outvars[0].aval)
    axis = eqn.params["axis"]
    each = TensorType(out.dtype, (*out.shape[:axis], 1, *out.shape[axis + 1 :]))
    rows = [lowering.append("reshape", [x], [each], shape=each.shape)[0] for x in inputs]
    return lowering.append("concatenate", rows, [out], dim=int(axis)) if len(rows) > 1 else rows


def _unstack(lowering, eqn, inputs):
    (x,), axis = inputs, eqn.params["axis"]
    outs = [lowering.type_of(v.aval) for v in eqn.outvars]
    if not outs:
        return []
    each = TensorType(x.type.dtype, (*x.type.shape[:axis], 1, *x.type.shape[axis + 1 :]))
    rows = [x]
    if len(outs) > 1:
        rows = lowering.append("split", [x], [each] * len(outs), axis=int(axis), sizes=(1,) * len(outs))
    return [
        lowering.append("squeeze", [r], [t], dims=(int(axis),))[0] for r, t in zip(rows, outs, strict=True)
    ]


def _tile(lowering, eqn, inputs):
    """Broadcasts (n, m, ...) to (r, n, s, m, ...) and joins the axes."""
    (x,), reps = inputs, eqn.params["reps"]
    sizes = tuple(itertools.chain(*zip(map(lowering.dim, reps), x.type.shape, strict=True)))
    places = tuple(range(1, len(sizes), 2))
    y = lowering.broadcast_in_dim(x, sizes, places)
    out = lowering.type_of(eqn.outvars[0].aval)
    return lowering.append("reshape", [y], [out], shape=out.shape)


def _reshape(lowering, eqn, inputs):
    """reshape with `dimensions`: a transposition first."""
    (x,), order = inputs, eqn.params.get("dimensions")
    if order is not None:
        moved = TensorType(x.type.dtype, tuple(x.type.shape[d] for d in order))
        (x,) = lowering.append("transpose", [x], [moved], perm=tuple(int(d) for d in order))
    out = lowering.type_of(eqn.outvars[0].aval)
    return lowering.append("reshape", [x], [out], shape=out.shape)


def _approx_top_k(lowering, eqn, inputs):
    """Exactly: the operation may miss some of the elements for speed, but need not."""
    (x,), p = inputs, eqn.params
    out, places = (lowering.type_of(v.aval) for v in eqn.outvars)
    axis = int(p["reduction_dimension"]) % len(out.shape)
    k = lowering.dim(p["k"]) if p["aggregate_to_topk"] else out.shape[axis]  # else the candidates are wanted
    (key,) = [x] if p["is_max_k"] else lowering.append("neg", [x], [x.type])
    values, found = lowering.append("top_k", [key], [out, places], k=k, axis=axis)
    return [values if p["is_max_k"] else lowering.append("neg", [values], [out])[0], found]


def _as_jax_defines_it(lowering, eqn, inputs):
    return lowering.inline(definitions.definition(eqn), inputs)


def _second(lowering, eqn, inputs):
    """`tie` only orders its two operands in time."""
    return inputs[1:]


def _empty(lowering, eqn, inputs):
    return [lowering.zeros(lowering.type_of(eqn.outvars[0].aval))]


def _dimension_size(lowering, eqn, inputs):
    out = lowering.type_of(eqn.outvars[0].aval)
    size = inputs[0].type.shape[eqn.params["dimension"]]
    if not isinstance(size, SymDim):
        return [Literal(size, out.dtype)]
    return lowering.append("dim_size", [], [out], dim=size, dtype=out.dtype)


def _total_order(op: str):
    """eq_to, lt_to and le_to order floats totally: -0.0 before 0.0, and NaN after everything.

    A Program keeps no NaN's sign or payload, so here all NaNs are one, as they are in sorting.
    """

    def compare(lowering, eqn, inputs):
        out = lowering.type_of(eqn.outvars[0].aval)
        x, y = (lowering.broadcast(a, out.shape) for a in inputs)
        if x.type.dtype not in FLOATS:
            return lowering.append(op, [x, y], [out])
        (less,) = _float_less(lowering, x, y, out)
        if op == "lt":
            return [less]
        (greater,) = _float_less(lowering, y, x, out)
        (le,) = lowering.append("not", [greater], [out])
        if op == "le":
            return [le]
        (ge,) = lowering.append("not", [less], [out])
        return lowering.append("and", [le, ge], [out])

    return compare


def _float_less(lowering, x, y, out):
    """x < y, or only y is NaN, or x is -0.0 and y is 0.0; the signs of zeros show in their reciprocals."""

    def do(op, *operands, type_=out):
        return lowering.append(op, list(operands), [type_])[0]

    dtype = x.type.dtype
    like = TensorType(dtype, out.shape)
    zero, one = Literal(0.0, dtype), Literal(1.0, dtype)
    only_y_nan = do("and", do("eq", x, x), do("ne", y, y))
    zeros = do("and", do("eq", x, zero), do("eq", y, zero))
    signs = do("lt", do("div", one, x, type_=like), do("div", one, y, type_=like))
    less = do("or", do("lt", x, y), only_y_nan)
    return [do("or", less, do("and", zeros, signs))]


def _platform_index(lowering, eqn, inputs):
    """Feeds only the cond of a lax.platform_dependent, of which one branch is taken."""
    return [Literal(0, "i32")]


def _bridged(lowering, eqn, inputs):
    """A bridged function inside the function at hand: its Program becomes part of this one."""
    return lowering.inline_program(eqn.params["program"], inputs)


def _bridged_in_halves(lowering, eqn, inputs):
    """As `_bridged`, together with tangents: what depends on primals alone can leave a loop around it."""
    return eqn.params["halves"].run(lowering.inline_program, inputs)


def _no_results(lowering, eqn, inputs):
    """A shape assertion states what the types of a Program state already."""
    return []


DECOMPOSITIONS = {
    **dict.fromkeys(equation_parameters.CALLS, _inlined),
    "julia_call": _bridged,
    "julia_jvp": _bridged_in_halves,
    "custom_vmap_call": lower_custom_vmap,
    "call_hi_primitive": lower_high,
    "call_hi_primitive_linearized": lower_high_linear,
    **{
        name: _identity
        for name in (
            *("name", "device_put", "sharding_constraint", "layout_constraint", "reshard", "pvary", "stage"),
            "relayout",
        )
    },
    "tie": _second,
    "broadcast_in_dim": _broadcast_in_dim,
    "convert_element_type": _convert_element_type,
    "polynomial": _polynomial,
    "stack": _stack,
    "unstack": _unstack,
    "tile": _tile,
    "reshape": _reshape,
    "approx_top_k": _approx_top_k,
    **dict.fromkeys(definitions.DEFINED, _as_jax_defines_it),
    "cholesky_update": lower_cholesky_update,
    "empty": _empty,
    "empty2": _empty,
    "dimension_size": _dimension_size,
    "eq_to": _total_order("eq"),
    "le_to": _total_order("le"),
    "lt_to": _total_order("lt"),
    "platform_index": _platform_index,
    "shape_assertion": _no_results,
    **FOLDED,
}
