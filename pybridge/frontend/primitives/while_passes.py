"""`while_passes`: what a while loop of unknown length becomes in reverse mode.

The loop runs again and leaves records of its trips, over which further passes go, backwards and forwards
in turn; julia/src/rules/while_passes.jl says more. A number of records that nobody knows takes memory that
grows, which XLA does not have: here there is only what it takes to batch such a Program, and a refusal to run
it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core
from jax.interpreters import batching, mlir

from ...errors import UnsupportedPrimitive
from ...ir.numerals import DTYPES
from ..adapter import eager
from .spec import Spec

passes_p = jex_core.Primitive("while_passes")
passes_p.multiple_results = True


def _cut(values: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    rest = iter(values)
    return [list(itertools.islice(rest, n)) for n in counts]


def _parts(values: Sequence[Any], cond_consts: int, consts: int, carry: Sequence[int]):
    """The condition's constants, the bodies', and the carries of each pass."""
    of_cond, shared, *carries = _cut(values, [cond_consts, consts, *carry])
    return of_cond, shared, carries


@passes_p.def_abstract_eval
def _abstract_eval(*avals, cond_consts, consts, carry, **_):
    carries = _parts(avals, cond_consts, consts, carry)[2]
    return [jax.core.ShapedArray(a.shape, a.dtype) for c in carries for a in c]


@passes_p.def_impl
def _impl(*args, **params):
    return eager.run(passes_p, args, **params)


def _refuse(ctx, *args, source, **params):
    at = f" at {source}" if source else ""
    raise UnsupportedPrimitive(
        f"reverse-mode differentiation of a while loop whose trip count is not known{at}: XLA has no memory "
        "that grows with the trips. Give bridge(..., while_bound=N) an upper bound on them, or run it "
        'natively on the CPU, bridge(..., execute="julia") or "auto"',
        primitive="while_passes",
        source=source,
    )


mlir.register_lowering(passes_p, _refuse)


# Batching. Where nothing of the first pass differs from item to item, it stays as it is, and so does every
# later pass that reads nothing that does. Else the loop runs until all items are done, and an item that is
# done keeps its carries, in all passes: whether it goes on is one more record of the first.


def _batch(args, dims, *, cond_consts, consts, carry, cond, passes, source):
    args = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    size = next(len(x) for x, d in zip(args, dims, strict=True) if d is not None)
    of_cond, shared, starts = _parts(args, cond_consts, consts, carry)
    marks_cond, marks, marks_starts = _parts([d is not None for d in dims], cond_consts, consts, carry)
    steps, test = [jex_core.jaxpr_as_fun(body) for body in passes], jex_core.jaxpr_as_fun(cond)
    masked = any((*marks_cond, *marks, *marks_starts[0]))
    if masked:
        tests = jax.vmap(test, [*_axes(marks_cond), *_axes([True] * carry[0])])
        steps, shared, marks = (
            _masked(test, steps, cond_consts, consts, carry),
            of_cond + shared,
            marks_cond + marks,
        )

    whole, bodies = [], []  # which passes are batched, and their bodies
    recorded: list[Any] = []  # the records so far
    marks_recorded: list[bool] = []
    for j, (step, count) in enumerate(zip(steps, carry, strict=True)):
        whole.append(masked or any((*marks, *marks_starts[j], *marks_recorded)))
        if whole[j]:
            axes = _axes([*marks, *([True] * count), *marks_recorded])
            step = jax.vmap(step, axes, axis_size=size)
            starts[j] = [
                x if mark else jnp.broadcast_to(x, (size, *jnp.shape(x)))
                for x, mark in zip(starts[j], marks_starts[j], strict=True)
            ]
        bodies.append(jax.make_jaxpr(step)(*map(_struct, [*shared, *starts[j], *recorded])))
        recorded += bodies[j].out_avals[count:]
        marks_recorded += [whole[j]] * (len(recorded) - len(marks_recorded))
    if masked:
        cond = jax.make_jaxpr(lambda *args: jnp.any(tests(*args)[0]))(*map(_struct, [*of_cond, *starts[0]]))
    results = passes_p.bind(
        *of_cond,
        *shared,
        *itertools.chain.from_iterable(starts),
        cond_consts=cond_consts,
        consts=len(shared),
        carry=carry,
        cond=cond,
        passes=tuple(bodies),
        source=source,
    )
    return results, [0 if w else None for w, count in zip(whole, carry, strict=True) for _ in range(count)]


def _masked(test: Callable, steps: Sequence[Callable], cond_consts: int, consts: int, carry: Sequence[int]):
    """The passes of one item, which may be done. The condition's constants come before the others."""

    def kept(alive, results, old):
        new, records = results[: len(old)], results[len(old) :]
        return [lax.select(alive, x, y) for x, y in zip(new, old, strict=True)], records

    def first(*args):
        of_cond, shared, now = _cut(args, [cond_consts, consts, carry[0]])
        (alive,) = test(*of_cond, *now)
        following, records = kept(alive, steps[0](*shared, *now), now)
        return [*following, alive, *records]

    def later(step, count, *args):
        _, shared, now, (alive,) = _cut(args, [cond_consts, consts, count, 1])
        records = args[cond_consts + consts + count + 1 :]
        following, left = kept(alive, step(*shared, *now, *records), now)
        return [*following, *left]

    rest = zip(steps[1:], carry[1:], strict=True)
    return [first, *(functools.partial(later, step, count) for step, count in rest)]


def _axes(marks: Sequence[bool]) -> list[int | None]:
    return [0 if mark else None for mark in marks]


def _struct(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(jnp.shape(x), x.dtype)


batching.primitive_batchers[passes_p] = _batch


# The spec


def _emit(*operands, cond_consts, consts, carry, cond, passes):
    def jaxpr(body):
        types = body.program.input_types
        return jax.make_jaxpr(body)(
            *(jax.ShapeDtypeStruct(body.context.dims.shape(t), DTYPES[t.dtype]) for t in types)
        )

    sources = (eq.source for body in passes for eq in body.program.equations if eq.source)
    return passes_p.bind(
        *operands,
        cond_consts=cond_consts,
        consts=consts,
        carry=carry,
        cond=jaxpr(cond),
        passes=tuple(map(jaxpr, passes)),
        source=next(sources, ""),
    )


def _lower(lowering, eqn, inputs):
    params = eqn.params
    return lowering.emit(
        "while_passes",
        inputs,
        eqn,
        cond_consts=params["cond_consts"],
        consts=params["consts"],
        carry=params["carry"],
        cond=lowering.body(params["cond"]),
        passes=tuple(map(lowering.body, params["passes"])),
    )


SPECS = [
    Spec("while_passes", _emit, lower=_lower),
]
