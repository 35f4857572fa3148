"""The JAX primitive `foreign_function`: a function of another system, or a derivative that the system made.

A derivative of a foreign function is one again, so that derivatives nest as deep as the system lets them.
What is linear is transposed by the system's own reverse mode, whose result does not depend on where it is
taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

from ..errors import ArgumentError
from ..frontend.adapter import devices, jaxprs
from ..frontend.adapter.extend import Primitive

Types = tuple[jax.ShapeDtypeStruct, ...]


class Function(Protocol):
    """A function of arrays in the other system. Places number the operands that are differentiated."""

    @property
    def name(self) -> str: ...

    def run(self, operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]: ...

    def pushed(self, places: tuple[int, ...], results: tuple[int, ...]) -> Function:
        """Its JVP: takes tangents at the places too, after all else, and gives those of these results."""

    def pulled(self, places: tuple[int, ...], results: tuple[int, ...]) -> Function:
        """Its VJP: takes cotangents of these results too, after all else, and gives those at the places."""


@dataclass(frozen=True)
class Call:
    """A function at operands of certain types. `inexact` are the places of the results that have tangents."""

    function: Function
    operands: Types
    results: Types

    @property
    def inexact(self) -> tuple[int, ...]:
        return tuple(i for i, t in enumerate(self.results) if jaxprs.is_inexact(t))

    @property
    def _inexact_results(self) -> Types:
        return tuple(self.results[i] for i in self.inexact)

    def pushed(self, places: tuple[int, ...]) -> Call:
        tangents = tuple(self.operands[i] for i in places)
        function = self.function.pushed(places, self.inexact)
        return Call(function, (*self.operands, *tangents), self._inexact_results)

    def pulled(self, places: tuple[int, ...]) -> Call:
        cotangents = tuple(self.operands[i] for i in places)
        function = self.function.pulled(places, self.inexact)
        return Call(function, (*self.operands, *self._inexact_results), cotangents)

    def run(self, *operands: Any) -> list[np.ndarray]:
        found = self.function.run([np.asarray(x) for x in operands])
        return [np.asarray(y, t.dtype).reshape(t.shape) for y, t in zip(found, self.results, strict=True)]


foreign_function_p = Primitive("foreign_function")
foreign_function_p.multiple_results = True


def apply(function: Function, operands: Sequence[Any], results: Any) -> Any:
    """The function's results. results: the tree of `jax.ShapeDtypeStruct` of what it returns."""
    types, outline = jax.tree.flatten(results)
    structs = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands)
    return jax.tree.unflatten(outline, bind(Call(function, structs, tuple(types)), *operands))


def array(name: str, leaf: Any) -> Any:
    """An argument of the function of that name as an array. Raises ArgumentError for what is none."""
    try:
        return jnp.asarray(leaf)
    except TypeError:
        raise ArgumentError(f"{name} takes arrays and numbers, not {type(leaf).__name__}") from None


def bind(call: Call, *operands: Any) -> list[Any]:
    return foreign_function_p.bind(*operands, call=call)


@foreign_function_p.def_abstract_eval
def _abstract_eval(*avals, call):
    return [devices.result_aval(t.shape, t.dtype, avals) for t in call.results]


@foreign_function_p.def_impl
def _impl(*operands, call):
    return jax.pure_callback(call.run, list(call.results), *operands)


mlir.register_lowering(foreign_function_p, mlir.lower_fun(_impl, multiple_results=True))


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call: Call):
    results = bind(call, *primals)
    places = tuple(i for i, t in enumerate(tangents) if not jaxprs.is_zero(t))
    found = iter(bind(call.pushed(places), *primals, *(tangents[i] for i in places)) if places else [])
    return results, [
        next(found) if places and i in call.inexact else jaxprs.no_tangent(y) for i, y in enumerate(results)
    ]


def _transpose(cotangents: Sequence[Any], *operands, call: Call):
    places = tuple(i for i, x in enumerate(operands) if ad.is_undefined_primal(x))
    given = [
        jnp.zeros(t.shape, t.dtype) if i in places else x
        for i, (x, t) in enumerate(zip(operands, call.operands, strict=True))
    ]
    cotangents = [jaxprs.instantiated(cotangents[i], call.results[i]) for i in call.inexact]
    found = iter(bind(call.pulled(places), *given, *cotangents))
    return [next(found) if i in places else None for i in range(len(operands))]


def _batch(operands: Sequence[Any], dims: Sequence[Any], *, call: Call):
    """One call after another."""
    pairs = enumerate(zip(operands, dims, strict=True))
    mapped = {i: jnp.moveaxis(x, d, 0) for i, (x, d) in pairs if d is not None}

    def one(items: dict[int, Any]) -> list[Any]:
        return bind(call, *(items.get(i, x) for i, x in enumerate(operands)))

    return jax.lax.map(one, mapped), [0] * len(call.results)


ad.primitive_jvps[foreign_function_p] = _jvp
ad.primitive_transposes[foreign_function_p] = _transpose
batching.primitive_batchers[foreign_function_p] = _batch
