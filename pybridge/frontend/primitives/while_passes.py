"""`while_passes`: what a while loop of unknown length becomes in reverse mode.

The loop runs again and leaves records of its trips, over which further passes go, backwards and forwards
in turn; julia/src/rules/while_passes.jl says more. XLA has no memory that grows with the trips: the records
have room for as many as there are at most, if the equation has such a bound. Where there are more, which is
seen by the condition that still holds, the results are NaN.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import checkify
from jax.interpreters import batching, mlir

from ...errors import UnsupportedPrimitive
from ...ir.numerals import DTYPES
from ..adapter import checks, devices, eager, jaxprs
from ..adapter.extend import Primitive, jaxpr_as_fun
from .spec import Spec

passes_p = Primitive("while_passes")
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
    return [devices.result_aval(a.shape, a.dtype, avals) for c in carries for a in c]


@passes_p.def_impl
def _impl(*args, **params):
    return eager.run(passes_p, args, "a while loop", **params)


# Running

_MOST_TRIPS = 2**31 - 1
"""As many as 32 bits count; no memory has room for the records of more."""


def _run(*args, cond_consts, consts, carry, cond, passes, bound, source, at_end=None):
    """at_end: is told whether the loop would go on."""
    records = [body.out_avals[count:] for body, count in zip(passes, carry, strict=True)]
    if not any(records):
        bound = None  # which is not needed
    elif bound is None or bound > _MOST_TRIPS:
        raise _refused(bound, source)
    of_cond, shared, starts = _parts(args, cond_consts, consts, carry)
    test, steps = jaxpr_as_fun(cond), [jaxpr_as_fun(body) for body in passes]
    tapes = [[_tape(bound, aval) for aval in avals] for avals in records]

    def goes_on(now):
        return test(*of_cond, *now)[0]

    def trip(j, t, now, tape):
        earlier = [lax.dynamic_index_in_dim(x, t, keepdims=False) for x in itertools.chain(*tapes[:j])]
        following, left = _cut(steps[j](*shared, *now, *earlier), [carry[j], len(tape)])
        return following, [
            lax.dynamic_update_index_in_dim(x, y, t, 0) for x, y in zip(tape, left, strict=True)
        ]

    def first(state):
        t, now, tape = state
        return t + 1, *trip(0, t, now, tape)

    def stays(state):
        t, now, _ = state
        return goes_on(now) if bound is None else (t < bound) & goes_on(now)

    trips, starts[0], tapes[0] = lax.while_loop(stays, first, (jnp.int32(0), starts[0], tapes[0]))

    def later(j, i, state):
        return trip(j, i if j % 2 == 0 else trips - 1 - i, *state)

    for j in range(1, len(passes)):
        step = functools.partial(later, j)
        starts[j], tapes[j] = lax.fori_loop(0, trips, step, (starts[j], tapes[j]))
    results = [*itertools.chain.from_iterable(starts)]
    if bound is None:
        return results
    broken = goes_on(starts[0])
    if at_end is not None:
        at_end(broken)
    return [jnp.where(broken, jnp.nan, y) if jaxprs.is_inexact(y) else y for y in results]


def _tape(bound, aval):
    return devices.varying_like(jnp.zeros((max(bound, 1), *aval.shape), aval.dtype), aval)


def _refused(bound, source):
    at = f" at {source}" if source else ""
    known = "is not known" if bound is None else f"is only known to be at most {bound}"
    return UnsupportedPrimitive(
        f"reverse-mode differentiation of a while loop whose trip count {known}{at}: XLA has no memory "
        "that grows with the trips. Give bridge(..., while_bound=N) an upper bound on them, or run it "
        'natively on the CPU, bridge(..., execute="julia") or "auto"',
        primitive="while_passes",
        source=source,
    )


mlir.register_lowering(passes_p, mlir.lower_fun(_run, multiple_results=True))


def _check(broken):
    checkify.check(~broken, "a while loop runs longer than its while_bound")


checks.register(passes_p, functools.partial(functools.partial, _run, at_end=_check), checks=True)


# Batching. Where nothing of the first pass differs from item to item, it stays as it is, and so does every
# later pass that reads nothing that does. Else the loop runs until all items are done, and an item that is
# done keeps its carries, in all passes: whether it goes on is one more record of the first.


def _batch(args, dims, *, cond_consts, consts, carry, cond, passes, bound, source):
    args = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    size = next(len(x) for x, d in zip(args, dims, strict=True) if d is not None)
    of_cond, shared, starts = _parts(args, cond_consts, consts, carry)
    marks_cond, marks, marks_starts = _parts([d is not None for d in dims], cond_consts, consts, carry)
    steps, test = [jaxpr_as_fun(body) for body in passes], jaxpr_as_fun(cond)
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
        bodies.append(jax.make_jaxpr(step)(*map(_aval, [*shared, *starts[j], *recorded])))
        recorded += bodies[j].out_avals[count:]
        marks_recorded += [whole[j]] * (len(recorded) - len(marks_recorded))
    if masked:
        cond = jax.make_jaxpr(lambda *args: jnp.any(tests(*args)[0]))(*map(_aval, [*of_cond, *starts[0]]))
    results = passes_p.bind(
        *of_cond,
        *shared,
        *itertools.chain.from_iterable(starts),
        cond_consts=cond_consts,
        consts=len(shared),
        carry=carry,
        cond=cond,
        passes=tuple(bodies),
        bound=bound,
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


def _aval(x: Any) -> Any:
    aval = x if isinstance(x, jax.core.ShapedArray) else jax.typeof(x)
    return devices.result_aval(aval.shape, aval.dtype, [aval])


batching.primitive_batchers[passes_p] = _batch


# The spec


def _emit(*operands, cond_consts, consts, carry, bound, cond, passes):
    avals = list(map(jax.typeof, operands))

    def jaxpr(body):
        types = body.program.input_types
        return jaxprs.traced(
            body, [devices.result_aval(body.shape(t), DTYPES[t.dtype], avals) for t in types]
        )

    sources = (eq.source for body in passes for eq in body.program.equations if eq.source)
    return passes_p.bind(
        *operands,
        cond_consts=cond_consts,
        consts=consts,
        carry=carry,
        cond=jaxpr(cond),
        passes=tuple(map(jaxpr, passes)),
        bound=bound,
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
        bound=params["bound"],
        cond=lowering.body(params["cond"]),
        passes=tuple(map(lowering.body, params["passes"])),
    )


SPECS = [
    Spec("while_passes", _emit, lower=_lower),
]
