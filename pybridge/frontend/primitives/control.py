"""Control flow and rematerialisation: primitives with nested Programs.

The parameters of their equations are read in `adapter/equation_parameters.py`, for every version of JAX."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from ...ir import early_ends
from ...ir.program import Program
from ...ir.types import Literal, TensorType, Var
from ..adapter import checkpoints, devices, equation_parameters
from ..dimensions import is_symbolic
from .spec import Spec

_SCALAR_BOOL = TensorType("bool")


# Emission


def _remat(*xs, body, barrier, depth):
    # checkpoint is for transformations of the result, the barrier for running it: XLA would otherwise
    # merge a derivative Program's recomputation with what it recomputes.
    def with_barrier(*xs):
        return body(*(lax.optimization_barrier(xs) if barrier and xs else xs))

    marked = any(eq.op == "saveable" for eq in body.program.all_equations())
    policy = _KeepsMarked(depth) if marked else None
    return jax.checkpoint(with_barrier, prevent_cse=barrier, policy=policy)(*xs)


_MARK = "pybridge: may be kept by"


def _saveable(x, levels, depth):
    """Named by the checkpoints that may keep it, each by the number of those around it."""
    return checkpoint_name(x, " ".join([_MARK, *(str(depth - 1 - level) for level in levels)]))


@dataclass(frozen=True)
class _KeepsMarked:
    """The policy of the checkpoint that is in `depth` others."""

    depth: int

    def __call__(self, prim, *_, **params) -> bool:
        name = params.get("name", "") if prim.name == "name" else ""
        return name.startswith(_MARK) and str(self.depth) in name[len(_MARK) :].split()


def _cond(index, *operands, branches):
    return lax.switch(index, branches, *operands)


def _scan(*operands, length, reverse, consts, carry, unroll, body):
    constants, xs = operands[:consts], operands[consts + carry :]

    def step(carried, x):
        results = body(*constants, *carried, *x[: len(operands) - consts - carry])
        return results[:carry], results[carry:]

    init = operands[consts : consts + carry]
    if is_symbolic(length):  # which lax.scan takes from arrays alone
        xs, length = xs or (lax.iota("int32", length),), None
    last, ys = lax.scan(step, init, xs, length=length, reverse=reverse, unroll=unroll)
    return (*last, *ys)


def _while(*operands, cond_consts, body_consts, bound, cond, body):
    # `bound` is a promise about the number of trips, of use to reverse mode alone.
    of_cond = operands[:cond_consts]
    of_body = operands[cond_consts : cond_consts + body_consts]
    init = tuple(map(_of_unknown_value, operands[cond_consts + body_consts :]))
    return lax.while_loop(lambda c: cond(*of_cond, *c)[0], lambda c: body(*of_body, *c), init)


def _of_unknown_value(x):
    """Where a narrow counter starts. Of one that starts at a constant XLA computes the last value from the
    trips that it would take without wrapping around."""
    narrow = jnp.issubdtype(x.dtype, jnp.integer) and x.dtype.itemsize <= 2
    return lax.optimization_barrier(x) if narrow and not x.ndim else x


# Lowering


def _lower_remat(lowering, eqn, inputs):
    remat = equation_parameters.remat(eqn)
    if lowering.keeps_all or checkpoints.saves_everything(remat.policy):
        return lowering.inline_keeping_all(remat.body, inputs)
    body = lowering.body(remat.body, remat.policy or jax.checkpoint_policies.nothing_saveable)
    body = _without_barrier(body) if remat.barrier else body
    return lowering.emit("remat", inputs, eqn, body=body, barrier=remat.barrier)


def _without_barrier(body: Program) -> Program:
    """The body without the barrier that emission put in front, which the attribute `barrier` stands for."""
    first, *rest = body.equations or (None,)
    if first is None or first.op != "optimization_barrier" or first.inputs != body.inputs:
        return body
    behind = {a for eq in rest for a in eq.inputs if isinstance(a, Var)} | set(body.outputs)
    if not behind.isdisjoint(body.inputs):
        return body
    return replace(body, inputs=first.outputs, equations=tuple(rest))


def _lower_cond(lowering, eqn, inputs):
    cond = equation_parameters.cond(eqn)
    if cond.platforms is not None:
        return lowering.inline(_branch_of_platform(lowering, eqn, cond), inputs[1:])
    branches = tuple(map(lowering.body, cond.branches))
    return lowering.emit("cond", inputs, eqn, branches=branches)


def _branch_of_platform(lowering, eqn, cond):
    """Of a lax.platform_dependent the branch for the platforms that it is traced for."""
    found = cond.of_platforms()
    if found == {None}:
        names = ", ".join(devices.targets())
        raise lowering.unsupported(eqn, f"platform_dependent without a default branch or one for {names}")
    if len(found) > 1:
        raise lowering.unsupported(eqn, "platform_dependent that differs between the platforms")
    return cond.branches[found.pop()]


def _lower_scan(lowering, eqn, inputs):
    scan = equation_parameters.scan(eqn)
    length, body = lowering.dim(scan.length), lowering.body(scan.body)
    alone = len(inputs) == scan.consts + scan.carry and len(eqn.outvars) == scan.carry
    if alone and isinstance(length, int) and not lowering.package_rules:
        trip = early_ends.trip(body, scan.consts)
        if trip is not None:
            return _lower_ending_scan(lowering, inputs, scan.consts, length, trip)
    return lowering.emit(
        "scan",
        inputs,
        eqn,
        length=length,
        reverse=scan.reverse,
        consts=scan.consts,
        carry=scan.carry,
        unroll=scan.unroll,
        body=body,
    )


_COUNTER = TensorType("i32")


def _lower_ending_scan(lowering, inputs, consts: int, length: int, trip: early_ends.Trip):
    """The scan as a `while` loop, which carries the number of its trips in front."""
    constants, carried = inputs[:consts], inputs[consts:]
    types = [*(a.type for a in constants), _COUNTER, *(a.type for a in carried)]

    def operands(args):
        rest = [*args[:consts], *args[consts + 1 :]]
        return [rest[k] for k in trip.operands]

    def goes_on(inner, args):
        (positive,) = inner.inline_program(trip.condition, operands(args))
        flags = [_SCALAR_BOOL]
        (does,) = inner.append("gt", [positive, Literal(0, positive.type.dtype)], flags)
        (left,) = inner.append("lt", [args[consts], Literal(length, "i32")], flags)
        return inner.append("and", [does, left], flags)

    def step(inner, args):
        taken = [operands(args)[k] for k in trip.taken]
        (count,) = inner.append("add", [args[consts], Literal(1, "i32")], [_COUNTER])
        if trip.checkpoint is None:
            return [count, *inner.inline_program(trip.step, taken)]
        attrs = {**trip.checkpoint.attrs, "body": trip.step}
        return [count, *inner.append("remat", taken, [a.type for a in carried], **attrs)]

    _, *results = lowering.append(
        "while",
        [*constants, *constants, Literal(0, "i32"), *carried],
        types[consts:],
        cond_consts=consts,
        body_consts=consts,
        bound=length,
        cond=lowering.subprogram(types, goes_on),
        body=lowering.subprogram(types, step),
    )
    return results


def _lower_while(lowering, eqn, inputs):
    loop = equation_parameters.while_loop(eqn)
    if loop.cond.out_avals[0].shape:
        return _lower_batched_while(lowering, eqn, inputs, loop)
    return lowering.emit(
        "while",
        inputs,
        eqn,
        cond_consts=loop.cond_consts,
        body_consts=loop.body_consts,
        bound=None,
        cond=lowering.body(loop.cond),
        body=lowering.body(loop.body),
    )


def _lower_batched_while(lowering, eqn, inputs, loop):
    """A loop whose condition is an array, made by vmap: it runs while any element is true, and a trip
    changes the carries of those elements alone."""
    n, m = loop.cond_consts, loop.body_consts
    rank = len(loop.cond.out_avals[0].shape)
    types = [a.type for a in inputs]

    def any_left(inner, args):
        (pred,) = inner.inline(loop.cond, args)
        return inner.append("reduce_or", [pred], [_SCALAR_BOOL], axes=tuple(range(rank)))

    def masked_step(inner, args):
        carried = args[n + m :]
        (pred,) = inner.inline(loop.cond, [*args[:n], *carried])
        stepped = inner.inline(loop.body, [*args[n : n + m], *carried])
        return [
            inner.append("select_n", [inner.broadcast(pred, new.type.shape), old, new], [new.type])[0]
            for old, new in zip(carried, stepped, strict=True)
        ]

    # The condition's constants serve both bodies.
    return lowering.emit(
        "while",
        [*inputs[:n], *inputs],
        eqn,
        cond_consts=n,
        body_consts=n + m,
        bound=None,
        cond=lowering.subprogram([*types[:n], *types[n + m :]], any_left),
        body=lowering.subprogram(types, masked_step),
    )


SPECS = [
    Spec(
        "remat",
        _remat,
        lax=("remat2", "remat", "checkpoint"),
        lower=_lower_remat,
        counts_checkpoints=True,
    ),
    Spec("saveable", _saveable, lax=(), counts_checkpoints=True),
    Spec("cond", _cond, lower=_lower_cond),
    Spec(
        "scan",
        _scan,
        lower=_lower_scan,
    ),
    Spec(
        "while",
        _while,
        lower=_lower_while,
    ),
]
