"""Random control flow, checkpoints and derivative rules, with bodies that are random Programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from ...frontend.emission import to_jax
from ...frontend.tracing import trace
from ...ir.numerals import DTYPES
from ...ir.program import Equation, Program
from ...ir.types import Literal, TensorType, Var
from .growing import Growth, Unfit

_SCALE = 1.5
"""By this a derivative rule is off from the derivative, so that it shows whether it was used."""


def _operands(g: Growth, most: int = 3) -> list[Var]:
    return [g.pick() for _ in range(g.rng.randint(1, most))]


def _types(xs: list[Var]) -> list[TensorType]:
    return [x.type for x in xs]


def _cond(g: Growth) -> None:
    xs = _operands(g)
    wanted = [g.pick().type for _ in range(g.rng.randint(1, 2))]
    branches = tuple(g.body(_types(xs), wanted) for _ in range(g.rng.choice([1, 2, 2, 3])))
    g.add("cond", g.array(TensorType("i32")), *xs, branches=branches)


def _scan(g: Growth) -> None:
    row = g.pick(lambda t: t.rank > 0)
    length = row.type.shape[0] if g.chance(0.9) else g.rng.randint(0, 4)
    xs = [row] if length == row.type.shape[0] else []
    more = [v for v in g.scope if v.type.rank and v.type.shape[0] == length and v not in g.hidden]
    xs += g.rng.sample(more, min(len(more), g.rng.randint(0, 1)))
    consts, carry = _operands(g, 2), _operands(g, 3)
    rows = [TensorType(x.type.dtype, x.type.shape[1:]) for x in xs]
    inputs = [*_types(consts), *_types(carry), *rows]
    results = g.rng.sample(inputs, g.rng.randint(0, 1))
    body = g.body(inputs, [*_types(carry), *results])
    g.add(
        "scan",
        *consts,
        *carry,
        *xs,
        length=length,
        reverse=g.chance(0.4),
        consts=len(consts),
        carry=len(carry),
        unroll=g.rng.choice([1, 1, 2]),
        body=body,
    )


@dataclass(frozen=True)
class _Counter:
    """The counter of a loop, `start`, `start + step` and so on while less than `limit`, for so many trips."""

    type_: TensorType
    start: int
    step: int
    limit: int
    trips: int


def _counter(g: Growth) -> _Counter:
    """Of a narrow one the sum may wrap around, and the loop go on."""
    if g.chance(0.6):
        trips = g.rng.randint(0, 4)
        return _Counter(TensorType("i32"), 0, 1, trips, trips)
    info = np.iinfo(DTYPES[dtype := g.rng.choice(["i8", "u8", "i16"])])
    start, step = g.rng.randint(0, 90), g.rng.randint(info.max // 4, info.max // 2)
    limit = g.rng.randint(info.max - step, info.max)
    value, trips = start, 0
    while value < limit:
        value, trips = (value + step - info.min) % (info.max - info.min + 1) + info.min, trips + 1
        if trips > _MOST_TRIPS:
            raise Unfit
    return _Counter(TensorType(dtype), start, step, limit, trips)


_MOST_TRIPS = 12


def _while(g: Growth) -> None:
    """A counted loop; sometimes it may end before, as a number that it carries says."""
    carry, c = _operands(g, 2), _counter(g)
    reals = [k for k, x in enumerate(carry) if x.type.dtype in ("f32", "f64") and not x.type.shape]

    cond = Growth(g.rng, 0, g.make)
    inputs = [cond.input(t) for t in (c.type_, *_types(carry))]
    going = cond.one("lt", inputs[0], Literal(c.limit, c.type_.dtype))
    if reals and g.chance(0.5):
        x = inputs[1 + reals[0]]
        going = cond.one("and", going, cond.one("lt", x, Literal(1.25, x.type.dtype)))

    body = g.body([c.type_, *_types(carry)], [c.type_, *_types(carry)])
    count = Var(10**6, c.type_)
    step = Equation("add", (body.inputs[0], Literal(c.step, c.type_.dtype)), (count,))
    body = Program("", body.inputs, (*body.equations, step), (count, *body.outputs[1:]), body.constants)
    bound = c.trips if g.chance(0.5) else None
    g.add(
        "while",
        Literal(c.start, c.type_.dtype),
        *carry,
        cond_consts=0,
        body_consts=0,
        bound=bound,
        cond=cond.program([going]),
        body=body,
    )


def _remat(g: Growth) -> None:
    xs = _operands(g)
    g.add("remat", *xs, body=g.body(_types(xs)), barrier=g.chance(0.5))


def _saveable(g: Growth) -> None:
    x = g.pick(lambda t: t.dtype in ("f32", "f64"))
    policy = jax.checkpoint_policies.save_only_these_names("kept")

    def f(x):
        return checkpoint_name(lax.sin(x), "kept") * x

    g.inline(jax.checkpoint(f, policy=policy), x)


def _shapes(types) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(t.shape, DTYPES[t.dtype]) for t in types]


def _smooth(g: Growth) -> tuple[list[Var], Program]:
    """Operands and a body of them, all floats."""
    xs = [g.real() for _ in range(g.rng.randint(1, 2))]
    body = g.body(_types(xs), [g.real().type])
    return xs, body


def _rule(f: Callable, types: list[TensorType]) -> Program:
    try:
        return trace(f)(*_shapes(types))
    except Exception as refusal:
        raise Unfit(str(refusal)) from None


def _unnamed(program: Program) -> Program:
    return Program("", program.inputs, program.equations, program.outputs, program.constants)


def _custom_jvp(g: Growth) -> None:
    xs, body = _smooth(g)
    n = len(xs)

    def jvp(*both):
        values, tangents = jax.jvp(to_jax(body), both[:n], both[n:])
        return *values, *(t * _SCALE for t in tangents)

    g.add("custom_jvp", *xs, call=body, jvp=_unnamed(_rule(jvp, 2 * _types(xs))))


def _custom_vjp(g: Growth) -> None:
    """Some rules are not linear in their cotangent, as those that clip gradients."""
    xs, body = _smooth(g)
    n = len(xs)
    change = g.rng.choice([lambda ct: ct * _SCALE, jnp.tanh, lambda ct: jnp.clip(ct, -0.5, 0.5)])

    def bwd(*given):
        return tuple(change(ct) for ct in jax.vjp(to_jax(body), *given[:n])[1](tuple(given[n:])))

    fwd = Program("", body.inputs, body.equations, (*body.outputs, *body.inputs), body.constants)
    backward = _unnamed(_rule(bwd, [*_types(xs), *body.output_types]))
    g.add("custom_vjp", *xs, call=body, fwd=fwd, bwd=backward)


MAKERS: dict[str, Callable[[Growth], None]] = {
    "cond": _cond,
    "scan": _scan,
    "while": _while,
    "remat": _remat,
    "saveable": _saveable,
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
}
