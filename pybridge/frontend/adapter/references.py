"""Mutable references: those that a function makes and uses itself become values, others are refused."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import jax

from ...errors import SideEffectError
from . import internals, jaxprs, next_objects, source


def is_reference(aval: Any) -> bool:
    """Whether this is the type of a mutable reference."""
    return isinstance(aval, internals.AbstractRef)


def discharged(jaxpr: Any) -> Any:
    """The jaxpr, closed or without constants, without the references that it makes itself."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    if internals.internal_mutable_array_effect not in inner.effects:
        return jaxpr
    inner = inner.replace(eqns=list(map(_without_own_references, inner.eqns)))
    closed = jaxprs.ClosedJaxpr(inner, getattr(jaxpr, "consts", ()))
    try:
        return _values_for_references(closed)
    except NotImplementedError as e:
        made = _first_line(eqn for eqn in inner.eqns if any(is_reference(v.aval) for v in eqn.outvars))
        raise SideEffectError(f"a mutable reference{made} that JAX cannot make a value: {e}") from e


def _values_for_references(closed: Any) -> Any:
    """JAX's transformation. Primitives that are objects stay such, but in JAX 0.10.1, which expands them."""
    discharge = internals.discharge_state
    keeps_objects = "lower" in inspect.signature(discharge).parameters
    return discharge(closed, lower=False) if keeps_objects else discharge(closed)


def _without_own_references(eqn: Any) -> Any:
    """An equation that no reference enters does not have the effect of those in its bodies: they become
    values where the bodies are read. JAX has rules for fewer equations, none of them objects."""
    if any(is_reference(v.aval) for v in (*eqn.invars, *eqn.outvars)):
        return next_objects.counterpart_throughout(eqn)
    return eqn.replace(effects=eqn.effects - {internals.internal_mutable_array_effect})


def refuse_arguments(args: Any) -> None:
    """Raises SideEffectError for a mutable reference among the arguments."""
    if _holds_reference(args):
        raise SideEffectError(
            "an argument is a mutable reference: pass its value, ref[...], return the new value, and write "
            "that into the reference outside"
        )


def refuse_constants(closed: Any) -> None:
    """Raises SideEffectError for a mutable reference that the traced function closes over."""
    outside = {v for v, _ in jaxprs.constants(closed) if is_reference(v.aval)}
    if outside:
        eqns = getattr(closed, "jaxpr", closed).eqns
        used = _first_line(eqn for eqn in eqns if any(v in outside for v in eqn.invars if jaxprs.is_var(v)))
        raise SideEffectError(
            f"a mutable reference made outside of the function is used{used}: pass its value as an argument, "
            "return the new value, and write that into the reference outside"
        )


def refusing_results(f: Callable) -> Callable:
    """`f`, raising SideEffectError where it returns a mutable reference."""

    @functools.wraps(f)
    def checked(*args, **kwargs):
        results = f(*args, **kwargs)
        if _holds_reference(results):
            raise SideEffectError(
                f"a mutable reference is returned{_definition(f)}: return its value, ref[...] or "
                "jax.freeze(ref)"
            )
        return results

    return checked


def _holds_reference(tree: Any) -> bool:
    return any(isinstance(x, jax.Ref) for x in jax.tree.leaves(tree))


def _first_line(eqns: Iterable[Any]) -> str:
    return next((f" at {line}" for line in map(source.line_of, eqns) if line), "")


def _definition(f: Callable) -> str:
    code = getattr(inspect.unwrap(f), "__code__", None)
    if code is None:
        return ""
    return f" by {source.describe_frame(code.co_filename, code.co_firstlineno, code.co_qualname)}"
