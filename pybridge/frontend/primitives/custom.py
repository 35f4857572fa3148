"""The user's derivative rules, of custom_jvp and custom_vjp functions and of primitives that are objects.

A rule is traced when it is known which operands are perturbed, so that equations have names in the place of
rules, see `pending`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.interpreters import ad, batching, mlir

from ...errors import NotDifferentiable
from ...ir.deferred import BatchRule, Body, ClosedOver, NoProgram, Pullback, Rule, Traced
from ...ir.numerals import DTYPES
from ...ir.program import Program
from ...ir.types import TensorType
from .. import keys
from ..adapter import (
    custom_rules,
    devices,
    equation_parameters,
    high_primitives,
    jaxprs,
    package_rules,
    packages,
)
from ..adapter.extend import Primitive
from .spec import Spec

# Emission


def _custom_jvp(*xs, call, jvp):
    if isinstance(jvp, BatchRule):
        return jvp.bind(*xs)
    f = jax.custom_jvp(call.__call__)
    if isinstance(jvp, Rule):
        f.defjvp(_jvp_by_name(call, jvp), symbolic_zeros=True)
    elif isinstance(jvp, str):
        f.defjvp(_refusing(jvp))
    else:
        f.defjvp(_jvp_by_body(call, jvp))
    return f(*xs)


def _jvp_by_name(call, rule: Rule):
    def jvp(primals, tangents):
        traced = rule.traced(tuple(not jaxprs.is_zero(t) for t in tangents))
        inexact = [t.inexact for t in call.program.input_types]
        given = map(jaxprs.instantiated, itertools.compress(tangents, inexact))
        results = _applied(call, traced.bodies["jvp"], [*primals, *given], whole=False)
        values, dots = results[: len(traced.active)], iter(results[len(traced.active) :])
        tangents_out = []
        for y, type_, active in zip(values, call.program.output_types, traced.active, strict=True):
            dot = next(dots) if type_.inexact else None
            tangents_out.append(dot if active else jax.custom_derivatives.SymbolicZero.from_primal_value(y))
        return tuple(values), tuple(tangents_out)

    return jvp


def _applied(call, body: Body, args: Sequence[Any], whole: bool = True) -> Sequence[Any]:
    """A body of the rule of a function whose value is `call`.

    whole: all results need all arguments. Where tangents are among these, values do not wait for them.
    """
    try:
        program = body.program
    except NoProgram:
        return body.run(*args)
    return call.by_rule(program, args, whole)


def _jvp_by_body(call, jvp):
    inexact = [t.inexact for t in call.program.input_types]
    results = [t.inexact for t in call.program.output_types]

    def rule(primals, tangents):
        given = jvp(*primals, *itertools.compress(tangents, inexact))
        values, dots = given[: len(results)], iter(given[len(results) :])
        return values, tuple(
            next(dots) if inexact else np.zeros(y.shape, jaxprs.float0)
            for inexact, y in zip(results, values, strict=True)
        )

    return rule


def _refusing(reason: str):
    def rule(primals, tangents):
        raise NotDifferentiable(reason)

    return rule


def _custom_vjp(*xs, call, fwd, bwd):
    f = jax.custom_vjp(call.__call__)
    if isinstance(fwd, Rule):
        f.defvjp(*_vjp_by_name(call, fwd), symbolic_zeros=True)
    else:
        f.defvjp(*_vjp_by_body(call, fwd, bwd))
    return f(*xs)


def _vjp_by_name(call, rule: Rule):
    inexact = [t.inexact for t in call.program.input_types]
    results = [t.inexact for t in call.program.output_types]

    def forward(*primals):
        perturbed = tuple(p.perturbed for p in primals)
        fwd = rule.traced(perturbed).bodies["fwd"]
        given = tuple(_applied(call, fwd, [p.value for p in primals]))
        # A tree without leaves keeps what is perturbed.
        return given[: len(results)], (given[len(results) :], tuple(() if p else None for p in perturbed))

    def backward(residuals, cotangents):
        known, marks = residuals
        bwd = rule.traced(tuple(mark is not None for mark in marks)).bodies["bwd"].program
        cotangents = list(itertools.compress(cotangents, results))
        found = iter(_pulled_back(call, bwd, bwd.rules, known, cotangents))
        return tuple(next(found) if has else None for has in inexact)

    return forward, backward


def _pulled_back(body, bwd: Program, rules: Mapping[str, Any], residuals, cotangents) -> Sequence[Any]:
    """By a backward rule that waits; `rules` has it."""
    (applied,) = bwd.equations
    assert applied.rule_name is not None
    given = (*(True for _ in residuals), *(not jaxprs.is_zero(ct) for ct in cotangents))
    pullback = rules[applied.rule_name].traced(given)
    return _applied(body, pullback, [*residuals, *map(jaxprs.instantiated, cotangents)])


def _vjp_by_body(call, fwd, bwd):
    inexact = [t.inexact for t in call.program.input_types]
    results = [t.inexact for t in call.program.output_types]

    def forward(*xs):
        given = fwd(*xs)
        return given[: len(results)], given[len(results) :]

    def backward(residuals, cotangents):
        found = iter(bwd(*residuals, *itertools.compress(cotangents, results)))
        return tuple(next(found) if has else None for has in inexact)

    return forward, backward


def lacks_forward_mode(program: Program) -> bool:
    """Whether the Program, made for forward mode, has tangents of functions with a VJP rule alone."""
    return any(eq.op == tangent_p.name for eq in program.all_equations())


tangent_p = Primitive("custom_vjp_tangent")
tangent_p.multiple_results = True


def _custom_vjp_tangent(*xs, bwd, residuals):
    return tangent_p.bind(*xs, bwd=bwd, residuals=residuals)


@tangent_p.def_abstract_eval
def _tangent_types(*avals, bwd, residuals):
    types = bwd.program.input_types[residuals:]
    return [devices.result_aval(bwd.shape(t), DTYPES[t.dtype], avals) for t in types]


def _no_forward_mode(*_, **__):
    raise NotDifferentiable(
        "forward-mode differentiation of a custom_vjp function: its rule says only how cotangents are pulled "
        "back. Use reverse mode (jax.grad, jax.vjp), or give the function a rule with jax.custom_jvp"
    )


def _transpose_tangent(cotangents, *xs, bwd, residuals):
    known = xs[:residuals]
    if bwd.program.rule_names:
        found = _pulled_back(bwd, bwd.program, bwd.rules, known, cotangents)
    else:
        found = bwd(*known, *map(jaxprs.instantiated, cotangents))
    return [*(None for _ in known), *found]


tangent_p.def_impl(_no_forward_mode)
ad.primitive_jvps[tangent_p] = _no_forward_mode
ad.primitive_transposes[tangent_p] = _transpose_tangent
batching.primitive_batchers[tangent_p] = _no_forward_mode
mlir.register_lowering(tangent_p, _no_forward_mode)


# Lowering


def _lower_custom_jvp(lowering, eqn, inputs):
    return _with_jvp_rule(lowering, eqn, inputs, custom_rules.custom_jvp(eqn))


def _with_jvp_rule(lowering, eqn, inputs, custom: custom_rules.CustomJvp):
    if not eqn.outvars:
        return []
    rule = lowering.names.add(Rule(_jvp_tracer(lowering, eqn, inputs, custom)))
    return lowering.emit("custom_jvp", inputs, eqn, call=lowering.body(custom.call), jvp=rule)


def _jvp_tracer(lowering, eqn, inputs, custom: custom_rules.CustomJvp):
    body, consts = lowering.later(), custom.consts
    types = [a.type for a in inputs]
    out_types = [lowering.type_of(v.aval) for v in eqn.outvars]
    inexact = [jaxprs.is_inexact(v.aval) for v in eqn.invars]

    def trace(perturbed):
        # As in JAX, the rule does not see tangents of closed-over values.
        seen = list(perturbed[consts:] if custom.symbolic_zeros else inexact[consts:])
        jaxpr, zeros = custom.rule(seen)
        known = len(types) - consts
        taken = list(itertools.compress([*(False for _ in range(consts)), *seen], inexact))

        def build(inner, args):
            primals, tangents = args[: len(types)], args[len(types) :]
            operands = [*primals[consts:], *itertools.compress(tangents, taken)]
            results = inner.inline_rule(jaxpr, operands, known)
            values, given = results[: len(zeros)], iter(results[len(zeros) :])
            _check_values(eqn, values, out_types)
            found = [None if zero else next(given) for zero in zeros]
            dots = [inner.zeros(t) if dot is None else dot for t, dot in zip(out_types, found, strict=True)]
            return [*values, *(dot for t, dot in zip(out_types, dots, strict=True) if t.inexact)]

        active = tuple(t.inexact and not zero for t, zero in zip(out_types, zeros, strict=True))
        return Traced({"jvp": body([*types, *itertools.compress(types, inexact)], build)}, active)

    return trace


def _check_values(eqn, values: Sequence[Any], types: Sequence[TensorType]) -> None:
    """values: atoms, or arrays where JAX runs the rule, which checks them itself."""
    for value, theirs in zip(values, types, strict=True):
        ours = getattr(value, "type", theirs)
        if ours != theirs:
            raise NotDifferentiable(
                f"the rule at {custom_rules.line_of_rule(eqn)} gives a result of type {ours} where the "
                f"function gives {theirs}. Under jax.vmap that is so where the function's result does not "
                "depend on its argument and the tangent does, and jax.jit refuses it too: let the result "
                "depend on the argument, as by adding 0 * x"
            )


def lower_custom_vmap(lowering, eqn, inputs):
    """A function with a rule for batches, which waits: see `BatchRule`."""
    if not eqn.outvars:
        return []
    rule = BatchRule(_jvp_of_batches(lowering, eqn, inputs), bind=_on_raw_keys(eqn))
    call = lowering.body(equation_parameters.called(eqn))
    return lowering.emit("custom_jvp", inputs, eqn, call=call, jvp=lowering.names.add(rule))


def _jvp_of_batches(lowering, eqn, inputs):
    """As `_jvp_tracer`: JAX's JVP, which has a rule for batches again."""
    body, types = lowering.later(), [a.type for a in inputs]
    inexact = [t.inexact for t in types]

    def trace(perturbed):
        perturbed = [p and i for p, i in zip(perturbed, inexact, strict=True)]
        jaxpr = jaxprs.jvp_of(eqn, perturbed)

        def build(inner, args):
            tangents = itertools.compress(args[len(types) :], itertools.compress(perturbed, inexact))
            return inner.inline(jaxpr, [*args[: len(types)], *tangents])

        active = tuple(jaxprs.is_inexact(v.aval) for v in eqn.outvars)
        return Traced({"jvp": body([*types, *itertools.compress(types, inexact)], build)}, active)

    return trace


def _on_raw_keys(eqn):
    """The equation bound by JAX, for arrays as Programs have them."""

    def bind(*xs):
        operands = [keys.restored(x, v.aval) for x, v in zip(xs, eqn.invars, strict=True)]
        return [keys.raw(y) for y in jaxprs.bind(eqn, operands)]

    return bind


def _lower_custom_vjp(lowering, eqn, inputs):
    loop = None if lowering.package_rules else packages.checkpointed_loop(eqn)
    if loop is not None:
        return lowering.inline(loop, inputs)
    return _with_vjp_rule(lowering, eqn, inputs, custom_rules.custom_vjp(eqn))


def _with_vjp_rule(lowering, eqn, inputs, custom: custom_rules.CustomVjp):
    name = lowering.names.add(Rule(_vjp_tracer(lowering, eqn, inputs, custom)))
    return lowering.emit("custom_vjp", inputs, eqn, call=lowering.body(custom.call), fwd=name, bwd=name)


def _vjp_tracer(lowering, eqn, inputs, custom: custom_rules.CustomVjp):
    body, consts = lowering.later(), custom.consts
    types = [a.type for a in inputs]
    out_types = [lowering.type_of(v.aval) for v in eqn.outvars]
    cotangents = [t for t in out_types if t.inexact]
    in_checkpoint = bool(lowering.policies) or lowering.keeps_all

    def trace(perturbed):
        _refuse(perturbed, [k < consts for k in range(len(perturbed))])
        rule = custom.rule(list(perturbed[consts:]))
        _refuse(perturbed, [*(True for _ in range(consts)), *rule.closed_over])
        residuals = rule.residuals
        own = sum(r is None for r in residuals)

        def forward(inner, args):
            results = inner.inline(rule.forward, args[rule.skipped :])
            values, rest = results[own:], iter(results[:own])
            if in_checkpoint and rule.for_residuals:
                values = inner.inline(custom.call, args)
            return [*values, *(next(rest) if r is None else args[r] for r in residuals)]

        known = [lowering.type_of(a) for a in rule.residual_avals]
        results = [(t, p) for t, p in zip(types, perturbed, strict=True) if t.inexact]
        pullback = _pullback(body, rule, [*known, *cotangents], results)
        bwd = body([*known, *cotangents], _waiting(pullback, [t for t, _ in results]))
        return Traced({"fwd": body(types, forward), "bwd": bwd}, tuple(t.inexact for t in out_types))

    return trace


def _refuse(perturbed, closed_over) -> None:
    """JAX, too, refuses derivatives by what a custom_vjp function closes over: its rule is not about it."""
    operands = [k for k, (p, c) in enumerate(zip(perturbed, closed_over, strict=True)) if p and c]
    if operands:
        raise ClosedOver(operands)


def _pullback(body, rule, operands, results) -> Pullback:
    """The backward rule, a function of residuals and cotangents.

    operands: their types. results: for each the type, and whether the rule gives it; it is zero otherwise.
    """
    known = len(rule.residual_avals)

    def trace(given):
        jaxpr, taken = rule.backward(list(given[known:]))

        def build(inner, args):
            found = iter(inner.inline(jaxpr, [*args[:known], *itertools.compress(args[known:], taken)]))
            return [next(found) if is_wanted else inner.zeros(t) for t, is_wanted in results]

        return body(operands, build)

    return Pullback(trace)


def _waiting(pullback: Pullback, results: Sequence[TensorType]):
    """One equation in the place of a pullback; to compute it before that is there would be an error."""

    def build(inner, args):
        types = [a.type for a in args]
        nothing = inner.subprogram(types, lambda body, _: [body.full(t, float("nan")) for t in results])
        return inner.append("custom_jvp", args, results, call=nothing, jvp=inner.names.add(pullback))

    return build


def lower_with_own_derivative(lowering, eqn, inputs):
    """A primitive of a package's, with its rule if there is anything to differentiate."""
    if not any(jaxprs.is_inexact(v.aval) for v in eqn.outvars):
        return lowering.inline(packages.definition(eqn), inputs)
    return _with_jvp_rule(lowering, eqn, inputs, package_rules.rules(eqn))


def lower_high(lowering, eqn, inputs):
    """A primitive that is an object: its value in other primitives, with the derivative that it has."""
    name = high_primitives.name(eqn)
    if jaxprs.has_high_types(eqn):
        raise lowering.unsupported(eqn, f"the primitive {name}, an operand or result of which is no array,")
    if not high_primitives.has_value(eqn):
        raise lowering.unsupported(eqn, f"the primitive {name}, which has no `expand`,")
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
    return _tangents(lowering, custom_rules.custom_lin(eqn), inputs, [v.aval for v in eqn.outvars])


def lower_high_linear(lowering, eqn, inputs):
    """The linear part of a primitive that is an object, which was differentiated before it was traced."""
    operands = [a for a in inputs if a is not None]
    inexact = [not jaxprs.is_float0(v.aval) for v in eqn.outvars]
    outs = [v.aval for v in itertools.compress(eqn.outvars, inexact)]
    results = iter(_tangents(lowering, high_primitives.linear_part(eqn), operands, outs))
    return [next(results) if has else None for has in inexact]


def _tangents(lowering, linear: custom_rules.CustomLin, inputs, outs):
    count = len(linear.residual_avals)
    known, tangents = [a.type for a in inputs[:count]], [a.type for a in inputs[count:]]
    results = [lowering.type_of(aval) for aval in outs]
    pullback = _pullback(lowering.later(), linear, [*known, *results], [(t, True) for t in tangents])
    bwd = lowering.subprogram([*known, *results], _waiting(pullback, tangents))
    return lowering.append("custom_vjp_tangent", inputs, results, bwd=bwd, residuals=count)


SPECS = [
    Spec("custom_jvp", _custom_jvp, lax=("custom_jvp_call",), lower=_lower_custom_jvp),
    Spec("custom_vjp", _custom_vjp, lax=("custom_vjp_call",), lower=_lower_custom_vjp),
    Spec(
        "custom_vjp_tangent",
        _custom_vjp_tangent,
        lax=("custom_lin",),
        lower=_lower_custom_lin,
    ),
]
