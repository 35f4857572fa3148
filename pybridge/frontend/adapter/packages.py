"""What packages add to JAX: primitives that are functions of JAX wherever nothing is batched, and loops.

Such a primitive exists for its rule under `vmap`: equinox's `unvmap_any` is `any` over the batch, too, so
that a loop of many items has one condition. Its value is that of its implementation, which its package lowers
by `mlir.lower_fun`, and its tangent is the implementation's. A Program has the implementation in its place,
and a batch of the Program is one of independent items, with the same results.

Others have a derivative of their own (package_rules.py): lineax's `linear_solve`, whose derivative is another
solve, and equinox's `nondifferentiable_backward`, which refuses reverse mode.

A loop with checkpoints is a `while` under a reverse rule, which says how that loop is differentiated where a
`while` has no reverse mode, and so has no forward mode.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import equation_parameters
from .jaxprs import ClosedJaxpr, bind, bodies, defined_by, inputs, interpreted, is_var, outputs, traced

_NAMES = {
    "equinox": frozenset(
        {"unvmap_any", "unvmap_all", "unvmap_max", "nonbatchable", "select_if_vmap", "maybe_set"}
    )
}
"""The primitives, by the package that defines them."""

_SOLVERS = {"equinox": frozenset({"linear_solve"})}
"""Those with a JVP and a transpose of their own, which are not those of how the value is computed: lineax's,
made by a function of equinox's."""

_ONE_WAY = {"equinox": frozenset({"nondifferentiable_backward"})}
"""Those that are their operand, in forward mode too, and an error in reverse mode."""

_UNTOUCHED = {"equinox": frozenset({"nontraceable"})}
"""Those that are their operand, and an error in any transformation."""

_BATCHED = "vprim"
"""equinox's batch of the primitive that its parameter `prim` names."""


def has_definition(eqn: Any) -> bool:
    """Whether a package defines the equation's primitive by other operations."""
    return _is_among(_NAMES, eqn)


def is_solver(eqn: Any) -> bool:
    """Whether its value is that of its definition, and its derivative the package's."""
    return _is_among(_SOLVERS, eqn)


def is_one_way(eqn: Any) -> bool:
    """Whether it is its operand, and refuses reverse mode."""
    return _is_among(_ONE_WAY, eqn)


def has_own_derivative(eqn: Any) -> bool:
    """Whether a package's primitive has one that is not that of its definition."""
    return is_solver(eqn) or is_one_way(eqn)


def is_pure(eqn: Any) -> bool:
    """Whether nothing happens but that a value is computed, in a time that does not depend on operands."""
    return has_definition(eqn) or has_own_derivative(eqn) or _is_among(_UNTOUCHED, eqn)


def _is_among(names: dict[str, frozenset[str]], eqn: Any) -> bool:
    primitive = eqn.primitive
    if primitive.name == _BATCHED and _package(primitive) == "equinox":
        primitive = eqn.params["prim"]
    return primitive.name in names.get(_package(primitive), ())


def ends_early(eqn: Any) -> bool:
    """Whether it is a loop of fixed length whose trips do nothing once a condition of all items is false.

    equinox's bounded loops are such: nested scans of `cond`, with a checkpoint in each. XLA skips the trips
    that do nothing. A Program keeps room for what each of them would leave for reverse mode, and where the
    condition is written out, a batch skips none.
    """
    return eqn.primitive.name == "scan" and any(map(_is_left_out, bodies(eqn)))


def _is_left_out(jaxpr: Any) -> bool:
    """Whether the body, or that of a checkpoint in it, has a `cond` on a value that batches share."""
    shared = {v for eqn in jaxpr.eqns if eqn.primitive.name == "nonbatchable" for v in eqn.outvars}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "convert_element_type" and not shared.isdisjoint(eqn.invars):
            shared.update(eqn.outvars)
        if eqn.primitive.name == "cond" and eqn.invars[0] in shared:
            return True
    calls = (eqn for eqn in jaxpr.eqns if eqn.primitive.name not in ("scan", "while", "cond"))
    return any(_is_left_out(body) for eqn in calls for body in bodies(eqn))


_CHECKPOINTED = "checkpointed-no-vjp"
"""equinox's name for the loop under the rule of its loops with checkpoints."""

_OF_BATCHES = ("broadcast_in_dim",)
"""What `vmap` puts in front of the loop under the rule."""

_LARGEST = 1 << 28
"""Bytes that a loop may carry in as many trips as it may make, to be differentiated as the loop that it is: a
record of each trip that it does make is some times as much. Chosen."""


def checkpointed_loop(eqn: Any) -> ClosedJaxpr | None:
    """The `while` that equinox's rule for loops with checkpoints is about.

    None if it is another equation, if no constant bounds the trips, or if memory may not hold them all, which
    is what checkpoints are for, or sizes are not known.
    """
    if eqn.primitive.name != "custom_vjp_call":
        return None
    call = eqn.params["call_jaxpr"]
    loops = [inner for inner in call.jaxpr.eqns if inner.primitive.name not in _OF_BATCHES]
    if [inner.primitive.name for inner in loops] != ["while"]:
        return None
    (loop,) = loops
    if not str(loop.source_info.name_stack).endswith(_CHECKPOINTED):
        return None
    trips = _most_trips(loop.params["cond_jaxpr"].jaxpr, loop.params["cond_nconsts"])
    known = all(isinstance(d, int) for v in loop.outvars for d in v.aval.shape)
    if trips is None or not known:
        return None
    carried = sum(math.prod(v.aval.shape) * v.aval.dtype.itemsize for v in loop.outvars)
    return call if trips * carried <= _LARGEST else None


def _most_trips(condition: Any, consts: int) -> int | None:
    """The constant below which the condition wants the counter, which equinox begins at 0 and carries before
    all else."""
    counter = condition.invars[consts]
    return next((int(top.val) for v, top in _limits(condition) if v is counter and not is_var(top)), None)


def _limits(condition: Any) -> Iterator[tuple[Any, Any]]:
    """Of which operand of the condition it wants that it is less than which."""
    made = {v: eqn for eqn in condition.eqns for v in eqn.outvars}
    atoms = list(condition.outvars)
    while atoms:
        eqn = made.get(atoms.pop())
        if eqn is None:
            continue
        if eqn.primitive.name in ("and", "convert_element_type", "nonbatchable"):
            atoms += [a for a in eqn.invars if is_var(a)]
        elif eqn.primitive.name == "lt":
            yield eqn.invars[0], eqn.invars[1]


def counts_up(eqn: Any) -> bool:
    """Whether a `while` counts its trips up to a limit that stays, and so ends whatever else it computes."""
    loop = equation_parameters.while_loop(eqn)
    condition, body = inputs(loop.cond), getattr(loop.body, "jaxpr", loop.body)
    constants, carried = condition[: loop.cond_consts], condition[loop.cond_consts :]
    made = {v: inner for inner in body.eqns for v in inner.outvars}
    return any(
        (not is_var(top) or top in constants)
        and any(
            v is counter and _adds_one(made.get(after), before)
            for v, before, after in zip(carried, body.invars[loop.body_consts :], body.outvars, strict=True)
        )
        for counter, top in _limits(getattr(loop.cond, "jaxpr", loop.cond))
    )


def _adds_one(eqn: Any, before: Any) -> bool:
    return (
        eqn is not None
        and eqn.primitive.name == "add"
        and eqn.invars[0] is before
        and not is_var(eqn.invars[1])
        and eqn.invars[1].val == 1
    )


# Errors

_RAISES = "equinox._errors", "_error.<locals>.raises"
"""Module and name of the function that raises, called by `pure_callback`."""


@dataclass(frozen=True)
class PackageError:
    """An equation that is some of its operands, and an error where the first of them is not 0.

    raise_: takes which of its messages it is. values, message: of the operands.
    """

    raise_: Callable[[Any], Any]
    values: Callable[[Sequence[Any]], list[Any]]
    message: Callable[[Sequence[Any]], list[Any]]

    def is_due(self, operands: Sequence[Any]) -> Any:
        return operands[0] != 0


def error(eqn: Any) -> PackageError | None:
    """What equinox's `error_if` becomes: a `cond` of nothing and of a call of Python that raises."""
    if eqn.primitive.name != "cond":
        return None
    branches = equation_parameters.cond(eqn).branches
    if len(branches) != 2 or branches[0].eqns:
        return None
    calls = [inner for inner in branches[1].eqns if inner.primitive.name == "pure_callback"]
    if not calls or _name(calls[0].params["callback"]) != _RAISES:
        return None
    values = _reader(outputs(branches[0]), inputs(branches[0]))
    message = _reader(calls[0].invars, inputs(branches[1]))
    if values is None or message is None:
        return None
    return PackageError(calls[0].params["callback"], values, message)


def _name(callback: Any) -> tuple[str | None, str | None]:
    function = getattr(callback, "callback_func", None)
    return getattr(function, "__module__", None), getattr(function, "__qualname__", None)


def _reader(atoms: Sequence[Any], variables: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]] | None:
    """The values of atoms by the operands of a `cond`, of which the branch has all but the first."""
    places = {v: i for i, v in enumerate(variables, 1)}
    if any(is_var(a) and a not in places for a in atoms):
        return None
    return lambda operands: [operands[places[a]] if is_var(a) else a.val for a in atoms]


def is_error_alone(eqn: Any) -> bool:
    """Whether it is the call under whose rule an `error_if` stands: its derivative is that of its values."""
    if eqn.primitive.name != "custom_jvp_call":
        return False
    inside = [
        inner for body in bodies(eqn) for inner in body.eqns if inner.primitive.name != "convert_element_type"
    ]
    return len(inside) == 1 and error(inside[0]) is not None


def inside(eqn: Any) -> list[Any]:
    """The equations in its bodies, or in what defines a solver."""
    held = [definition(eqn)] if is_solver(eqn) else bodies(eqn)
    return [inner for body in held for inner in body.eqns]


def holds_errors(eqn: Any) -> bool:
    """Whether it is an error, or has one in it."""
    return error(eqn) is not None or any(map(holds_errors, inside(eqn)))


def largest_of_batch(x: Any) -> Any:
    """The largest number, of the whole batch under `vmap`, which has it once."""
    return importlib.import_module("equinox.internal").unvmap_max(x)


@functools.lru_cache(maxsize=64)
def definition(eqn: Any) -> ClosedJaxpr:
    """What the equation does, in other operations; of a solver, without what refuses to be transformed."""
    found = defined_by(eqn, eqn.primitive.impl)
    if not is_solver(eqn):
        return found

    def apply(inner: Any, operands: list[Any]) -> list[Any]:
        return operands if _is_among(_UNTOUCHED, inner) else bind(inner, operands)

    return traced(lambda *xs: interpreted(found, xs, apply), found.in_avals)


def _package(primitive: Any) -> str:
    """The package whose code computes the primitive's value."""
    return getattr(primitive.impl, "__module__", "").partition(".")[0]
