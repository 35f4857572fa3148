"""Random numbers: `threefry2x32` is a primitive, all else is made of it while tracing.

A key is its raw data, unsigned integers along a last axis.
"""

from __future__ import annotations

from ...errors import UnsupportedPrimitive
from .. import keys
from .spec import Spec


def _on_raw_keys(lowering, eqn, inputs):
    """The operation as JAX itself computes it from the data of its keys."""
    try:
        definition = keys.random_jaxpr(eqn)
    except UnsupportedPrimitive as e:
        raise lowering.unsupported(eqn, str(e)) from None
    return lowering.inline(definition, inputs)


def _same_data(lowering, eqn, inputs):
    return inputs


SPECS = [Spec("threefry2x32", keys.threefry2x32)]

DECOMPOSITIONS = {
    **dict.fromkeys(("random_wrap", "random_unwrap", "random_clone"), _same_data),
    **dict.fromkeys(keys.DEFINED, _on_raw_keys),
}
