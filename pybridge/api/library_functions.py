"""What a library for C holds: a function and its derivatives, as Programs of the leaves of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from ..errors import ArgumentError, NotDifferentiable
from ..frontend.tracing import trace
from ..ir.numerals import FLOATS
from ..ir.program import Program
from ..ir.types import TensorType
from .library_leaves import Flat, Parameter, struct
from .library_names import Names


@dataclass(frozen=True)
class Function:
    """A Program with names for what it takes and gives."""

    name: str
    program: Program
    arguments: tuple[Parameter, ...]
    results: tuple[Parameter, ...]


# Functions by name. Each takes a Flat, and gives a function of all arrays, the arrays that it takes after the
# arguments, and those that it gives.

_Made = tuple[Callable[..., Any], list[Parameter], list[Parameter]]


def _like(parameters: Iterable[Parameter], role: str) -> list[Parameter]:
    return [Parameter(f"{role}_{p.name}", p.type, role, p.python) for p in parameters]


def _inexact(parameters: Iterable[Parameter]) -> list[Parameter]:
    return [p for p in parameters if p.type.inexact]


def _value(flat: Flat) -> _Made:
    return flat.call, [], list(flat.results)


def _grad(flat: Flat) -> _Made:
    _check_number(flat)

    def grad(*xs):
        return jax.grad(flat.number(xs), tuple(range(len(flat.active))))(*_pick(flat, xs))

    return grad, [], _like(flat.by, "grad")


def _value_and_grad(flat: Flat) -> _Made:
    _check_number(flat)

    def value_and_grad(*xs):
        y, grads = jax.value_and_grad(flat.number(xs), tuple(range(len(flat.active))))(*_pick(flat, xs))
        return [y, *grads]

    return value_and_grad, [], [*flat.results, *_like(flat.by, "grad")]


def _jvp(flat: Flat) -> _Made:
    _check_active(flat)
    count = len(flat.arguments)

    def jvp(*given):
        xs, tangents = given[:count], given[count:]
        ys, dots = jax.jvp(flat.of_active(xs), _pick(flat, xs), list(tangents))
        return [*ys, *(dot for dot, p in zip(dots, flat.results, strict=True) if p.type.inexact)]

    results = [*flat.results, *_like(_inexact(flat.results), "tangent")]
    return jvp, _like(flat.by, "tangent"), results


def _vjp(flat: Flat) -> _Made:
    _check_active(flat)
    count = len(flat.arguments)

    def vjp(*given):
        xs, cotangents = given[:count], given[count:]

        def inexact(*moved):
            ys = flat.of_active(xs)(*moved)
            return [y for y, p in zip(ys, flat.results, strict=True) if p.type.inexact]

        return jax.vjp(inexact, *_pick(flat, xs))[1](list(cotangents))

    return vjp, _like(_inexact(flat.results), "cotangent"), _like(flat.by, "cotangent")


def _hvp(flat: Flat) -> _Made:
    _check_number(flat)
    count = len(flat.arguments)

    def hvp(*given):
        xs, vectors = given[:count], given[count:]
        gradient = jax.grad(flat.number(xs), tuple(range(len(flat.active))))
        return jax.jvp(gradient, _pick(flat, xs), list(vectors))[1]

    return hvp, _like(flat.by, "vector"), _like(flat.by, "hvp")


def _jacobian(flat: Flat) -> _Made:
    _check_real(flat)
    real = [i for i, p in enumerate(flat.results) if p.type.dtype in FLOATS]
    outputs = [flat.results[i] for i in real]
    wide = sum(p.size for p in outputs) < sum(p.size for p in flat.by)

    def jacobian(*xs):
        def of(*moved):
            ys = flat.of_active(xs)(*moved)
            return [ys[i] for i in real]

        by = tuple(range(len(flat.active)))
        return jax.tree.leaves((jax.jacrev if wide else jax.jacfwd)(of, by)(*_pick(flat, xs)))

    alone = len(flat.results) == 1
    named = [(p, q, q.name if alone else f"{p.name}_{q.name}") for p in outputs for q in flat.by]
    return jacobian, [], [_product(p, q, "jacobian", name) for p, q, name in named]


def _hessian(flat: Flat) -> _Made:
    _check_number(flat)

    def hessian(*xs):
        by = tuple(range(len(flat.active)))
        return jax.tree.leaves(jax.hessian(flat.number(xs), by)(*_pick(flat, xs)))

    pairs = [(p, q) for p in flat.by for q in flat.by]
    return hessian, [], [_product(p, q, "hessian", f"{p.name}_{q.name}") for p, q in pairs]


_MAKERS: dict[str, Callable[[Flat], _Made]] = {
    "value": _value,
    "grad": _grad,
    "value_and_grad": _value_and_grad,
    "jvp": _jvp,
    "vjp": _vjp,
    "hvp": _hvp,
    "jacobian": _jacobian,
    "hessian": _hessian,
}
FUNCTIONS = tuple(_MAKERS)


def made(name: str, flat: Flat) -> Function:
    """The function of that name, its Program simplified."""
    f, more, results = _MAKERS[name](flat)
    f.__name__ = f"{name}_{flat.name}"
    names = Names()

    def named(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
        return tuple(replace(p, name=names.unique(p.name)) for p in parameters)

    arguments = named([*flat.arguments, *more])
    program = trace(f)(*(struct(p.type) for p in arguments)).optimize()
    return Function(name, program, arguments, named(results))


def _pick(flat: Flat, xs: Sequence[Any]) -> list[Any]:
    return [xs[i] for i in flat.active]


def _product(p: Parameter, q: Parameter, role: str, name: str) -> Parameter:
    type_ = TensorType(p.type.dtype, p.type.shape + q.type.shape)
    return Parameter(f"{role}_{name}", type_, role, f"{p.python} by {q.python}")


def _check_active(flat: Flat) -> None:
    if not flat.active:
        raise NotDifferentiable(f"{flat.name} has no float argument to be differentiated by")


def _check_real(flat: Flat) -> None:
    _check_active(flat)
    for p in flat.by:
        if p.type.dtype not in FLOATS:
            raise NotDifferentiable(
                f"{p.python} is {p.type}, and gradients, Jacobians and Hessians are by real numbers: name "
                "other arguments in argnums, or take jvp or vjp"
            )


def _check_number(flat: Flat) -> None:
    _check_real(flat)
    types = [p.type for p in flat.results]
    if len(types) != 1 or types[0].shape or types[0].dtype not in FLOATS:
        raise ArgumentError(
            "gradients are defined for functions whose result is a float scalar, and that of "
            f"{flat.name} is {', '.join(map(str, types)) or 'nothing'}"
        )
