"""Convolutions and reductions over windows that slide over an array."""

from __future__ import annotations

from jax import lax

from ...errors import UnsupportedPrimitive
from ...ir.numerals import DTYPES, dtype_name
from .linalg import _precision, _precision_text
from .spec import Spec, dims, integers

_CONVOLUTION = (
    *("strides", "low", "high", "lhs_dilation", "rhs_dilation", "lhs_spec", "rhs_spec", "out_spec"),
    *("feature_groups", "batch_groups", "dtype", "precision"),
)


def _padding(eqn) -> dict:
    pairs = eqn.params["padding"]
    return {"low": dims(low for low, _ in pairs), "high": dims(high for _, high in pairs)}


def _convolution(x, w, *, strides, low, high, lhs_dilation, rhs_dilation, dtype, precision, **more):
    return lax.conv_general_dilated(
        x,
        w,
        window_strides=strides,
        padding=list(zip(low, high, strict=True)),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=lax.ConvDimensionNumbers(more["lhs_spec"], more["rhs_spec"], more["out_spec"]),
        feature_group_count=more["feature_groups"],
        batch_group_count=more["batch_groups"],
        precision=_precision(precision),
        preferred_element_type=DTYPES[dtype],
    )


def _convolving(eqn):
    numbers = eqn.params["dimension_numbers"]
    if eqn.params.get("out_sharding") is not None:
        raise UnsupportedPrimitive(f"{eqn.primitive} with an out_sharding", primitive=str(eqn.primitive))
    return {
        "strides": integers(eqn.params["window_strides"]),
        **_padding(eqn),
        "lhs_dilation": integers(eqn.params["lhs_dilation"]),
        "rhs_dilation": integers(eqn.params["rhs_dilation"]),
        **{name: integers(getattr(numbers, name)) for name in ("lhs_spec", "rhs_spec", "out_spec")},
        "feature_groups": int(eqn.params["feature_group_count"]),
        "batch_groups": int(eqn.params["batch_group_count"]),
        "dtype": dtype_name(eqn.outvars[0].aval.dtype),
        "precision": _precision_text(eqn.params["precision"]),
    }


_SELECTION = ("select", "window", "strides", "low", "high")
_SLIDING = (*_SELECTION[1:], "base_dilation", "window_dilation")
_SELECT = {"ge": lax.ge_p, "le": lax.le_p}


def _reducer(op: str):
    primitive = getattr(lax, f"{op}_p")

    def reduce(*operands, window, strides, low, high, **more):
        padding = tuple(zip(low, high, strict=True))
        return primitive.bind(
            *operands, window_dimensions=window, window_strides=strides, padding=padding, **more
        )

    return reduce


def _selector(op: str):
    reduce = _reducer(op)

    def select_from(first, operand, *, select, **more):
        return reduce(first, operand, select_prim=_SELECT[select], **more)

    return select_from


def _sliding(eqn):
    return {
        "window": dims(eqn.params["window_dimensions"]),
        "strides": integers(eqn.params["window_strides"]),
        **_padding(eqn),
        **{
            name: integers(eqn.params[name])
            for name in ("base_dilation", "window_dilation")
            if name in eqn.params
        },
    }


def _selecting(eqn):
    return {"select": str(eqn.params["select_prim"]), **_sliding(eqn)}


SPECS = [
    Spec("conv_general_dilated", _convolution, _convolving),
    *(
        Spec(op, _reducer(op), _sliding)
        for op in ("reduce_window_sum", "reduce_window_max", "reduce_window_min")
    ),
    Spec("select_and_gather_add", _selector("select_and_gather_add"), _selecting),
    Spec("select_and_scatter_add", _selector("select_and_scatter_add"), _selecting),
]
