"""Control flow, rematerialisation and the user's own derivative rules: primitives with nested Programs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import jax
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from ..errors import NotDifferentiable
from ..frontend import checkpoints, custom_rules, equations, high_primitives, jaxprs
from ..program import Program, TensorType, Var
from .row import Row

RULE_ORDER = 3
"""Derivatives up to this order use the user's rules; beyond it they go through the functions' own code."""

_SCALAR_BOOL = TensorType("bool")


# Emission


def _remat(*xs, body, barrier, depth):
    # checkpoint for whoever transforms the result; the barrier for whoever runs it, since XLA would otherwise
    # merge a derivative Program's recomputation with what it recomputes.
    def walled(*xs):
        return body(*(lax.optimization_barrier(xs) if barrier and xs else xs))

    policy = _KeepsMarked(depth) if _marks(body.program) else None
    return jax.checkpoint(walled, prevent_cse=barrier, policy=policy)(*xs)


def _marks(program: Program) -> bool:
    return any(eq.op == "saveable" or any(map(_marks, eq.bodies)) for eq in program.equations)


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


def _custom_jvp(*xs, call, jvp):
    moving = [t.inexact for t in call.program.input_types]
    results = [t.inexact for t in call.program.output_types]

    def rule(primals, tangents):
        given = jvp(*primals, *itertools.compress(tangents, moving))
        values, dots = given[: len(results)], iter(given[len(results) :])
        return values, tuple(
            next(dots) if inexact else np.zeros(y.shape, jaxprs.float0)
            for inexact, y in zip(results, values, strict=True)
        )

    f = jax.custom_jvp(call.__call__)
    f.defjvp(rule)
    return f(*xs)


def _custom_vjp(*xs, call, fwd, bwd):
    moving = [t.inexact for t in call.program.input_types]
    results = [t.inexact for t in call.program.output_types]

    def forward(*xs):
        given = fwd(*xs)
        return given[: len(results)], given[len(results) :]

    def backward(residuals, cotangents):
        found = iter(bwd(*residuals, *itertools.compress(cotangents, results)))
        return tuple(next(found) if inexact else None for inexact in moving)

    f = jax.custom_vjp(call.__call__)
    f.defvjp(forward, backward)
    return f(*xs)


def _custom_vjp_tangent(*_, bwd, residuals):
    raise NotDifferentiable(
        "forward-mode differentiation of a custom_vjp function: its rule says only how cotangents are pulled "
        "back. Use reverse mode (jax.grad, jax.vjp), or give the function a rule with jax.custom_jvp"
    )


def _cond(index, *operands, branches):
    return lax.switch(index, branches, *operands)


def _scan(*operands, length, reverse, consts, carry, unroll, body):
    constants, xs = operands[:consts], operands[consts + carry :]

    def step(carried, x):
        results = body(*constants, *carried, *x)
        return results[:carry], results[carry:]

    init = operands[consts : consts + carry]
    last, ys = lax.scan(step, init, xs, length=length, reverse=reverse, unroll=unroll)
    return (*last, *ys)


def _while(*operands, cond_consts, body_consts, bound, cond, body):
    # `bound` is a promise about the number of trips, of use to reverse mode alone.
    of_cond = operands[:cond_consts]
    of_body = operands[cond_consts : cond_consts + body_consts]
    init = operands[cond_consts + body_consts :]
    return lax.while_loop(lambda c: cond(*of_cond, *c)[0], lambda c: body(*of_body, *c), init)


# Lowering


def _lower_remat(lowering, eqn, inputs):
    remat = equations.remat(eqn)
    if lowering.keeps_all or checkpoints.saves_everything(remat.policy):
        return lowering.inline_keeping_all(remat.body, inputs)
    body = lowering.body(remat.body, remat.policy or jax.checkpoint_policies.nothing_saveable)
    body = _unwalled(body) if remat.barrier else body
    return lowering.emit("remat", inputs, eqn, body=body, barrier=remat.barrier)


def _unwalled(body: Program) -> Program:
    """The body without the wall that emission built in front, which the attribute `barrier` stands for."""
    first, *rest = body.equations or (None,)
    if first is None or first.op != "optimization_barrier" or first.inputs != body.inputs:
        return body
    behind = {a for eq in rest for a in eq.inputs if isinstance(a, Var)} | set(body.outputs)
    if not behind.isdisjoint(body.inputs):
        return body
    return replace(body, inputs=first.outputs, equations=tuple(rest))


def _lower_custom_jvp(lowering, eqn, inputs):
    return _with_jvp_rule(lowering, eqn, inputs, custom_rules.custom_jvp(eqn))


def _with_jvp_rule(lowering, eqn, inputs, custom: custom_rules.CustomJvp):
    if lowering.order >= RULE_ORDER or not eqn.outvars:
        return lowering.inline(custom.call, inputs)
    consts = custom.consts
    inexact = [jaxprs.is_inexact(v.aval) for v in eqn.invars]
    out_inexact = [jaxprs.is_inexact(v.aval) for v in eqn.outvars]
    rule, zeros = custom.rule(inexact[consts:])
    types = [a.type for a in inputs]

    def build(inner, args):
        # As in JAX, the rule does not see tangents of closed-over values.
        primals, tangents = args[: len(types)], args[len(types) + sum(inexact[:consts]) :]
        results = inner.inline(rule, [*primals[consts:], *tangents])
        values, given = results[: len(zeros)], iter(results[len(zeros) :])
        found = [None if zero else next(given) for zero in zeros]
        out_types = [lowering.type_of(v.aval) for v in eqn.outvars]
        tangents_out = [
            inner.zeros(t) if dot is None else dot
            for t, dot, i in zip(out_types, found, out_inexact, strict=True)
            if i
        ]
        return [*values, *tangents_out]

    tangent_types = [t for t, i in zip(types, inexact, strict=True) if i]
    jvp = lowering.subprogram([*types, *tangent_types], build, rule=True)
    return lowering.emit("custom_jvp", inputs, eqn, call=lowering.body(custom.call), jvp=jvp)


def _lower_custom_vjp(lowering, eqn, inputs):
    return _with_vjp_rule(lowering, eqn, inputs, custom_rules.custom_vjp(eqn))


def _with_vjp_rule(lowering, eqn, inputs, custom: custom_rules.CustomVjp):
    if lowering.order >= RULE_ORDER:
        return lowering.inline(custom.call, inputs)
    consts = custom.consts
    avals = [v.aval for v in eqn.invars]
    outs = [v.aval for v in eqn.outvars]
    rule = custom.rule([jaxprs.is_inexact(a) for a in avals[consts:]])
    residuals = rule.residuals
    own = sum(r is None for r in residuals)

    def build_fwd(inner, args):
        results = inner.inline(rule.forward, args[rule.skipped :])
        rest = iter(results[:own])
        return [*results[own:], *(next(rest) if r is None else args[r] for r in residuals)]

    def build_bwd(inner, args):
        # JAX refuses to differentiate with respect to closed-over values, which no rule covers; whether that
        # happens shows only later, so such a derivative is NaN rather than a silent zero.
        given = iter(inner.inline(rule.backward, args))
        return [
            next(given) if covered else inner.full(lowering.type_of(a), float("nan"))
            for covered, a in zip(rule.covered, avals, strict=True)
            if jaxprs.is_inexact(a)
        ]

    out_types = [lowering.type_of(a) for a in outs if jaxprs.is_inexact(a)]
    bwd_types = [*(lowering.type_of(a) for a in rule.backward.in_avals[: len(residuals)]), *out_types]
    return lowering.emit(
        "custom_vjp",
        inputs,
        eqn,
        call=lowering.body(custom.call),
        fwd=lowering.subprogram([a.type for a in inputs], build_fwd, rule=True),
        bwd=lowering.subprogram(bwd_types, build_bwd, rule=True),
    )


def lower_high(lowering, eqn, inputs):
    """A primitive that is an object: its value in other primitives, with the derivative that it has."""
    rules = high_primitives.rules(eqn)
    if isinstance(rules, custom_rules.CustomJvp):
        return _with_jvp_rule(lowering, eqn, inputs, rules)
    if isinstance(rules, custom_rules.CustomVjp):
        return _with_vjp_rule(lowering, eqn, inputs, rules)
    return lowering.inline(high_primitives.expansion(eqn), inputs)


def _lower_custom_lin(lowering, eqn, inputs):
    """The linear part of a custom_vjp function that was differentiated before it was traced."""
    if not all(jaxprs.is_inexact(v.aval) for v in eqn.outvars):
        raise lowering.unsupported(eqn, "the derivative of a custom_vjp function with integer results")
    linear = custom_rules.custom_lin(eqn)
    bwd = lowering.body(linear.backward)
    return lowering.emit("custom_vjp_tangent", inputs, eqn, bwd=bwd, residuals=linear.residuals)


def _lower_cond(lowering, eqn, inputs):
    cond = equations.cond(eqn)
    if cond.platforms is not None:
        return lowering.inline(_portable_branch(lowering, eqn, cond), inputs[1:])
    branches = tuple(map(lowering.body, cond.branches))
    return lowering.emit("cond", inputs, eqn, branches=branches)


def _portable_branch(lowering, eqn, cond):
    """Of a lax.platform_dependent the default branch: a Program is for every platform."""
    for names, branch in zip(cond.platforms, cond.branches, strict=True):
        if names is None:
            return branch
    raise lowering.unsupported(eqn, "platform_dependent without a default branch")


def _lower_scan(lowering, eqn, inputs):
    scan = equations.scan(eqn)
    return lowering.emit(
        "scan",
        inputs,
        eqn,
        length=lowering.dim(scan.length),
        reverse=scan.reverse,
        consts=scan.consts,
        carry=scan.carry,
        unroll=scan.unroll,
        body=lowering.body(scan.body),
    )


def _lower_while(lowering, eqn, inputs):
    loop = equations.while_loop(eqn)
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


ROWS = [
    Row(
        "remat",
        _remat,
        ("body", "barrier"),
        lax=("remat2", "remat", "checkpoint"),
        lower=_lower_remat,
        counts_checkpoints=True,
    ),
    Row("saveable", _saveable, ("levels",), lax=(), counts_checkpoints=True),
    Row("custom_jvp", _custom_jvp, ("call", "jvp"), lax=("custom_jvp_call",), lower=_lower_custom_jvp),
    Row("custom_vjp", _custom_vjp, ("call", "fwd", "bwd"), lax=("custom_vjp_call",), lower=_lower_custom_vjp),
    Row(
        "custom_vjp_tangent",
        _custom_vjp_tangent,
        ("bwd", "residuals"),
        lax=("custom_lin",),
        lower=_lower_custom_lin,
    ),
    Row("cond", _cond, ("branches",), lower=_lower_cond),
    Row(
        "scan",
        _scan,
        ("length", "reverse", "consts", "carry", "unroll", "body"),
        lower=_lower_scan,
    ),
    Row(
        "while",
        _while,
        ("cond_consts", "body_consts", "bound", "cond", "body"),
        lower=_lower_while,
    ),
]
