"""Jaxprs, their variables and equations.

Up to JAX 0.10 a jaxpr is open (`Jaxpr`, whose constants are variables) or closed (`ClosedJaxpr`, with their
values); from 0.11 on one class is both. What is here treats them alike.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import internals
from .extend import ClosedJaxpr, Jaxpr, Literal, Var, jaxpr_as_fun, jaxprs_in_params

Tracer = jax.core.Tracer
float0 = jax.dtypes.float0


# Values


def is_float0(aval: Any) -> bool:
    """Whether this is the type of an integer's tangent."""
    return getattr(aval, "dtype", None) == float0


def is_zero(tangent: Any) -> bool:
    """Whether a tangent or cotangent that JAX gives to a rule, or a rule to JAX, is zero by its type."""
    return isinstance(tangent, internals.Zero | internals.SymbolicZero) or is_float0(tangent)


def no_tangent(y: Any) -> Any:
    """The tangent of a value that has none."""
    return internals.Zero(jax.typeof(y).to_tangent_aval())


def at_places(f: Callable, places: Sequence[int], args: Sequence[Any]) -> Callable:
    """f as a function of the arguments at these places; the others are as given."""

    def of_some(*given: Any) -> Any:
        by_place = dict(zip(places, given, strict=True))
        return f(*(by_place.get(i, x) for i, x in enumerate(args)))

    return of_some


def jvp(f: Callable, primals: Sequence[Any], dots: Sequence[Any]) -> tuple[Any, Any]:
    """The results and their tangents, where some tangents are zero by their type."""
    active = [i for i, t in enumerate(dots) if not is_zero(t)]
    return jax.jvp(at_places(f, active, primals), [primals[i] for i in active], [dots[i] for i in active])


def no_cotangent(aval: Any) -> Any:
    """The cotangent of a value of this type on which nothing depends."""
    return internals.Zero(aval.to_ct_aval())


def instantiated(tangent: Any, like: Any = None) -> Any:
    """The tangent or cotangent as an array, of zeros where it is zero by its type.

    like: what has the shape and dtype, such as the primal or its type. Tangents of integers do not know
    them, and users' rules may give another dtype.
    """
    if is_zero(tangent):
        known = tangent.aval if like is None else like
        return jnp.zeros(known.shape, known.dtype)
    return tangent if like is None else jax.lax.convert_element_type(tangent, like.dtype)


def is_inexact(aval: Any) -> bool:
    return hasattr(aval, "dtype") and jnp.issubdtype(aval.dtype, np.inexact)


def is_array(x: Any) -> bool:
    """Whether it is neither a random key nor an object."""
    return isinstance(getattr(jax.typeof(x), "dtype", None), np.dtype)


def known_value(x: Any) -> Any:
    """The array, or the one at which is differentiated; None where there is none, as under `jit`."""
    return internals.to_concrete_value(x) if isinstance(x, Tracer) else x


def any_tracer(values) -> bool:
    return any(isinstance(v, Tracer) for v in values)


def batch_axis(x: Any) -> int | None:
    """Where a value in `jax.vmap` has its batch axis; what depends on no batched argument has none.

    What is traced there and is the same for the whole batch gets one in front.
    """
    return (x.batch_dim or 0) if isinstance(x, internals.BatchTracer) else None


def is_dead(value: Any) -> bool:
    """Whether this is a traced value, and not of one of the traces at work."""
    if not isinstance(value, Tracer):
        return False
    at_work = internals.unsafe_get_trace_stack(internals.trace_ctx.trace)
    return all(trace is not value._trace for trace in at_work)


def runs_once() -> bool:
    """Whether what is traced runs as often as the function around it: it is in no body, but of a `jit`."""
    at_work = internals.unsafe_get_trace_stack(internals.trace_ctx.trace)
    infos = [getattr(getattr(trace, "frame", None), "debug_info", None) for trace in at_work]
    return all(info is None or info.traced_for == "jit" for info in infos)


def with_weak_type(x: Any, weak: bool) -> Any:
    """The array with the given weak type, differentiably: its cotangent has the type that `x` has."""
    return x if jax.typeof(x).weak_type == weak else internals.convert_element_type(x, weak_type=weak)


# What tracing depends on


def signature(x: Any) -> tuple:
    """Of an argument: shape, dtype and weak type, and over which mesh axes it varies."""
    aval = jax.typeof(x)
    return aval.shape, aval.dtype, aval.weak_type, getattr(aval, "mat", None)


def trace_context() -> tuple:
    """What a trace depends on apart from arguments: named axes, the mesh, 64-bit types, other settings."""
    return internals.trace_context()


# Jaxprs


def is_var(atom: Any) -> bool:
    """Whether an operand or output of an equation is a variable, not a literal."""
    return not isinstance(atom, Literal)


def opened(jaxpr: Any) -> Any:
    """The jaxpr, open or closed, with its constants as leading inputs."""
    return internals.convert_constvars_jaxpr(getattr(jaxpr, "jaxpr", jaxpr))


def inputs(jaxpr: Any) -> list[Var]:
    return getattr(jaxpr, "jaxpr", jaxpr).invars


def outputs(jaxpr: Any) -> list[Any]:
    return getattr(jaxpr, "jaxpr", jaxpr).outvars


def constants(jaxpr: Any) -> list[tuple[Var, Any]]:
    """The constants of a closed jaxpr; none of one whose inputs they are."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return list(zip(inner.constvars, getattr(jaxpr, "consts", ()), strict=True))


def jaxpr_of(eqns: Sequence[Any], invars: Sequence[Var], outvars: Sequence[Any], like: Any) -> Any:
    """A jaxpr of some of the equations of the jaxpr `like`."""
    debug_info = like.debug_info.with_unknown_names()
    return Jaxpr((), list(invars), list(outvars), list(eqns), debug_info=debug_info)


def function_of(eqn: Any, like: Any) -> Callable[..., list[Any]]:
    """One equation of the jaxpr `like` as a function of its operands, with the derivatives that it has."""
    known = {i: atom.val for i, atom in enumerate(eqn.invars) if not is_var(atom)}
    atoms = dict.fromkeys(v for v in eqn.invars if is_var(v))
    alone = jaxpr_as_fun(ClosedJaxpr(jaxpr_of([eqn], list(atoms), eqn.outvars, like), ()))

    def run(*operands: Any) -> list[Any]:
        given = {v: x for i, (v, x) in enumerate(zip(eqn.invars, operands, strict=True)) if i not in known}
        return alone(*(given[v] for v in atoms))

    return run


def without_dead_code(jaxpr: Any) -> Any:
    """The jaxpr, which has no constants, without what its outputs do not need; the inputs stay."""
    alive, _ = internals.dce_jaxpr(jaxpr, True, instantiate=True)
    return alive


def traced(f: Callable, avals: Sequence[Any]) -> ClosedJaxpr:
    return jax.make_jaxpr(f)(*avals)


def defined_by(eqn: Any, f: Callable) -> ClosedJaxpr:
    """What the equation does where that is what `f` does with its operands and, by name, its parameters."""
    operands = (jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars)
    return jax.make_jaxpr(functools.partial(f, **eqn.params))(*operands)


def has_high_types(eqn: Any) -> bool:
    """Whether an operand or a result is an object of the user's, in which arrays are hidden."""
    return any(isinstance(v.aval, internals.HiType) for v in (*eqn.invars, *eqn.outvars))


def bodies(eqn: Any) -> list[Any]:
    """The jaxprs in the parameters of an equation."""
    return list(jaxprs_in_params(eqn.params))


def all_equations(jaxpr: Any) -> Iterator[Any]:
    """Those of a jaxpr, open or closed, and of all that are nested in it."""
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield eqn
        for body in bodies(eqn):
            yield from all_equations(body)


def with_bodies(eqn: Any, rebuilt: Callable[[Any, Sequence[Any]], ClosedJaxpr]) -> Any:
    """The equation with `rebuilt(jaxpr, constants)` in the place of each body."""
    open_bodies = eqn.primitive.name in _WITH_OPEN_BODIES

    def of(value: Any) -> Any:
        if hasattr(value, "eqns"):
            closed = rebuilt(value, [c for _, c in constants(value)])
            return without_constants(closed) if open_bodies else closed
        if isinstance(value, tuple) and any(True for _ in jaxprs_in_params({"": value})):
            found = map(of, value)
            return type(value)(*found) if hasattr(value, "_fields") else tuple(found)
        return value

    return eqn.replace(params={name: of(value) for name, value in eqn.params.items()})


_WITH_OPEN_BODIES = ("remat2", "remat", "checkpoint", "shard_map")
"""The primitives whose bodies have no constants."""


def without_constants(closed: ClosedJaxpr) -> Any:
    """A jaxpr that does the same; constants stay in a `jit` inside."""
    if closed.consts:
        closed = traced(jax.jit(jaxpr_as_fun(closed)), closed.in_avals)
    return closed.jaxpr


def bind(eqn: Any, operands: Sequence[Any]) -> list[Any]:
    """The results of an equation for these operands, in whatever transformation is at work."""
    params = eqn.primitive.get_bind_params(eqn.params)
    source = eqn.source_info
    name_stack = internals.current_name_stack() + source.name_stack
    with internals.user_context(source.traceback, name_stack=name_stack), eqn.ctx.manager:
        results = eqn.primitive.bind(*operands, **params)
    return list(results) if eqn.primitive.multiple_results else [results]


def interpreted(
    jaxpr: Any, args: Sequence[Any], apply: Callable[[Any, list[Any]], Sequence[Any]]
) -> list[Any]:
    """The results of a jaxpr, closed or without constants; of each equation `apply(equation, operands)`."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    values = dict(constants(jaxpr)) | dict(zip(inner.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return values[atom] if is_var(atom) else atom.val

    for eqn in inner.eqns:
        values.update(zip(eqn.outvars, apply(eqn, list(map(read, eqn.invars))), strict=True))
    return list(map(read, inner.outvars))


def jvp_of(eqn: Any, perturbed: Sequence[bool]) -> ClosedJaxpr:
    """(x..., tangents of the perturbed x...) -> (y..., tangents of the inexact y...).

    By the equation's JVP rule. The y do not come from the rule, so that they do not depend on tangents.
    """
    places = [i for i, p in enumerate(perturbed) if p]
    avals = [v.aval for v in eqn.invars]

    def run(*args: Any) -> list[Any]:
        xs, dots = list(args[: len(avals)]), list(args[len(avals) :])
        of_perturbed = at_places(lambda *every: bind(eqn, every), places, xs)
        ys, tangents = bind(eqn, xs), jax.jvp(of_perturbed, [xs[i] for i in places], dots)[1]
        return [*ys, *(t for t, y in zip(tangents, ys, strict=True) if is_inexact(y))]

    return traced(run, [*avals, *(avals[i].to_tangent_aval() for i in places)])


# Dead code

_LIVE_INPUTS_SINCE = (0, 12)
"""From this JAX on a rule is also told which mutable inputs are read afterwards."""


def register_dead_code_rule(
    primitive: Any, rule: Callable[[list[bool], Any], tuple[list[bool], Any]]
) -> None:
    """rule: (which results are used, equation) -> (which operands it needs, the equation or None)."""
    takes_live_inputs = jax.__version_info__[:2] >= _LIVE_INPUTS_SINCE
    internals.dce_rules[primitive] = (lambda used, _, eqn: rule(used, eqn)) if takes_live_inputs else rule
