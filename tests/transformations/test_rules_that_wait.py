"""Rules are traced when they are needed: what that must not mix up, and what is done where they cannot be."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed
from jax import lax

import pybridge as pb
from pybridge.engines.enzyme import call as enzyme_call
from pybridge.frontend.lowering import lower
from pybridge.ir.deferred import RULE_ORDER, activated, expanded, values
from pybridge.ir.program import Program
from pybridge.runtime import transforms

SymbolicZero = jax.custom_derivatives.SymbolicZero
X, Y = np.array([0.3, -0.4]), np.array([1.2, 0.5])


def total(f):
    return lambda *args: jnp.sum(f(*args))


def lowered(f, *args) -> Program:
    return lower(jax.make_jaxpr(f)(*args), name="f")


def scaled(factor):
    """sin, with a derivative that is wrong by the factor; a rule that uses its own function."""
    f = jax.custom_jvp(jnp.sin)
    f.defjvp(lambda primals, tangents: (f(*primals), factor * jnp.cos(primals[0]) * tangents[0]))
    return f


# What text does not tell apart


def test_functions_with_the_same_text_keep_their_own_rules(x64):
    programs = [lowered(scaled(factor), X) for factor in (2, 3)]
    assert programs[0] == programs[1] and str(programs[0]) == str(programs[1])
    transformations = [
        lambda f: jax.grad(total(f)),
        lambda f: jax.jit(jax.grad(total(f))),
        lambda f: jax.grad(lambda x: total(jax.vmap(f))(x[None])),
        lambda f: jax.grad(lambda x: total(lambda c: lax.scan(lambda c, _: (f(c), None), c, length=2)[0])(x)),
        lambda f: jax.hessian(total(f)),
    ]
    for transform in transformations:
        for factor in (2, 3):
            f = scaled(factor)
            assert_agree(transform(pb.bridge(f))(X), transform(f)(X), f"factor {factor}")


def test_a_function_traced_again_asks_julia_nothing_new(x64, monkeypatch):
    def differentiate():
        g = pb.bridge(scaled(7))
        return jax.grad(lambda x: jnp.sum(jax.grad(total(g))(x) ** 2))(X)

    first = differentiate()
    monkeypatch.setattr(transforms, "ask", lambda *_: pytest.fail("Julia was asked"))
    assert_agree(differentiate(), first, "again")


def test_derivatives_by_different_inputs_at_once(x64):
    """The residuals of the two differ in number, and both are taken before either is pulled back."""

    def make():
        f = jax.custom_vjp(lambda x, y: x * y**2)

        def forward(x, y):
            kept = {"y": y.value} if x.perturbed else {}
            kept |= {"x": x.value, "xy": x.value * y.value} if y.perturbed else {}
            return x.value * y.value**2, kept

        def backward(kept, ct):
            by_x = 3 * ct * kept["y"] ** 2 if "y" in kept else None
            by_y = (5 * ct * kept["xy"] + ct * kept["x"]) if "xy" in kept else None
            return by_x, by_y

        f.defvjp(forward, backward, symbolic_zeros=True)
        return f

    def both(f):
        _, by_x = jax.vjp(lambda x: f(x, Y), X)
        _, by_y = jax.vjp(lambda y: f(X, y), Y)
        _, again = jax.vjp(lambda x: f(x, Y), X)
        return by_x(X), by_y(X), again(Y), jax.grad(total(f), (0, 1))(X, Y), by_x(Y)

    assert_agree(both(pb.bridge(make())), both(make()), "pullbacks")


# Cotangents


def test_backward_rules_are_told_which_cotangents_are_zero(x64):
    told = []
    f = jax.custom_vjp(lambda x: (x * 2, x * 3, x + 1))

    def backward(_, cts):
        told.append(tuple(not isinstance(ct, SymbolicZero) for ct in cts))
        return (sum(k * ct for k, ct in enumerate(cts, 5) if not isinstance(ct, SymbolicZero)),)

    f.defvjp(lambda x: (f(x.value), None), backward, symbolic_zeros=True)
    for used in ([0], [1, 2], [0, 1, 2]):

        def loss(f, x, used=used):
            ys = f(x)
            return sum(jnp.sum(ys[k] ** 2) for k in used)

        for g in (pb.bridge(f), f):
            told.clear()
            found = jax.grad(functools.partial(loss, g))(X)
            assert told[0] == tuple(k in used for k in range(3))
        bridged = jax.grad(pb.bridge(functools.partial(loss, f)))(X)
        assert_agree(bridged, found, str(used))


def test_a_result_that_the_examples_of_vmap_share(x64):
    """Without a cotangent of it, though by y each example has its own part of the derivative."""
    f = jax.custom_vjp(lambda x, y: (jnp.sin(x) * y, jnp.cos(y), 3))

    def backward(res, cts):
        x, y = res
        assert cts[2].dtype == jax.dtypes.float0
        return 3 * jnp.cos(x) * y * cts[0], 5 * (jnp.sin(x) * cts[0] - jnp.sin(y) * cts[1])

    f.defvjp(lambda x, y: (f(x, y), (x, y)), backward)

    def loss(x, y):
        product, shared, _ = jax.vmap(f, in_axes=(0, None), out_axes=(0, None, None))(x, y)
        return jnp.sum(product**2) + lax.stop_gradient(shared)

    def apart(loss):
        _, by_x = jax.vjp(lambda x: loss(x, 0.7), X)
        _, by_y = jax.vjp(lambda y: loss(X, y), 0.7)
        return by_x(1.0), by_y(1.0)

    def by_rows(loss):
        return jax.vmap(jax.grad(loss, (0, 1)), in_axes=(0, None))(np.stack([X, Y]), 0.7)

    g = pb.bridge(loss)
    for derivative in (lambda h: jax.grad(h, (0, 1))(X, 0.7), apart, by_rows):
        assert_agree(derivative(g), derivative(loss), "the same")
        assert_agree(jax.jit(lambda d=derivative: d(g))(), derivative(loss), "compiled")


def test_a_backward_rule_that_raises_does_so_only_when_it_is_needed(x64):
    """An output that nothing depends on is no reason, nor is forward mode along another path."""
    f = jax.custom_vjp(lambda x: x * 1)

    def backward(_, ct):
        raise RuntimeError("no way back")

    f.defvjp(lambda x: (f(x), None), backward)

    def both(x):
        return f(x), jnp.sin(x)

    g = pb.bridge(both)
    assert_agree(jax.grad(lambda x: total(lambda x: g(x)[1])(x))(X), jnp.cos(X), "the other output")
    with pytest.raises(RuntimeError, match="no way back"):
        jax.grad(lambda x: total(lambda x: g(x)[0])(x))(X)


# Closures


def closing_over(y, kind):
    """Its rules do not: once the function is traced JAX has no use for such rules."""
    if kind == "jvp":
        f = jax.custom_jvp(lambda x: x * y)
        f.defjvp(lambda p, t: (jnp.sin(p[0]), 3 * jnp.cos(p[0]) * t[0]))
    else:
        f = jax.custom_vjp(lambda x: x * y)
        f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (3 * jnp.cos(x) * ct,))
    return f


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_what_a_function_closes_over(kind, x64):
    """As in JAX: a custom_jvp function forgets the tangent, a custom_vjp function refuses it, by name."""

    def whole(x, y):
        return lax.scan(lambda c, v: (closing_over(v * y, kind)(c), None), x, jnp.arange(1.0, 3))[0]

    g = pb.bridge(whole)
    assert_agree(jax.grad(total(g))(X, Y), jax.grad(total(whole))(X, Y), "by the argument")
    if kind == "jvp":
        assert_agree(jax.grad(total(g), 1)(X, Y), jax.grad(total(whole), 1)(X, Y), "by the other")
        return
    for refused in (jax.grad(total(g), 1), jax.jit(jax.grad(total(g), (0, 1)))):
        with pytest.raises(pb.NotDifferentiable, match="closes over"):
            refused(X, Y)
    # Of the derivative itself, which has no such call any more, there is one.
    mixed = jax.grad(lambda y: jnp.sum(jax.grad(total(g))(X, y) * Y))
    assert_agree(mixed(Y), jax.grad(lambda y: jnp.sum(jax.grad(total(whole))(X, y) * Y))(Y), "mixed")


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_rules_that_close_over_values_of_a_trace_around(kind, x64):
    """JAX makes these derivatives: a Program cannot hold what belongs to another trace."""

    def rule_over(y):
        f = (jax.custom_jvp if kind == "jvp" else jax.custom_vjp)(lambda x: jnp.sin(x))
        if kind == "jvp":
            f.defjvp(lambda p, t: (f(*p), 3 * y * t[0]))
        else:
            f.defvjp(lambda x: (f(x), x), lambda x, ct: (3 * y * jnp.cos(x) * ct,))
        return f

    def gradient(bridge):
        return lambda y: jax.grad(total(bridge(lambda x: rule_over(y)(x) ** 2)))(X)

    for transform in (jax.jit, lambda f: jax.vmap(f, in_axes=0), lambda f: jax.jacrev(f)):
        assert_agree(transform(gradient(pb.bridge))(Y), transform(gradient(lambda f: f))(Y), kind)


def test_a_rule_that_closes_over_a_value_of_its_own_function_says_so(x64):
    """The function's trace is over when the rule is traced; its value is there all the same."""

    def f(x, y):
        g = jax.custom_vjp(lambda x: x * 2)
        g.defvjp(lambda x: (x * 2, None), lambda _, ct: (y * ct,))
        return g(x)

    bridged = pb.bridge(f)
    assert_agree(bridged(X, Y), 2 * X, "value")
    with pytest.raises(pb.TracingError, match="closes over a traced value"):
        jax.grad(total(bridged))(X, Y)


# What Programs lack


def by_lineax(b):
    operator = lx.MatrixLinearOperator(jnp.array([[2.0, 1.0], [1.0, 3.0]]))
    return lx.linear_solve(operator, b).value


def solved_jvp():
    f = jax.custom_jvp(lambda b: jnp.linalg.solve(jnp.array([[2.0, 1.0], [1.0, 3.0]]), jnp.sin(b)))
    f.defjvp(lambda p, t: (f(*p), by_lineax(3 * jnp.cos(p[0]) * t[0])))
    return f


def solved_vjp():
    f = jax.custom_vjp(lambda b: jnp.linalg.solve(jnp.array([[2.0, 1.0], [1.0, 3.0]]), jnp.sin(b)))
    f.defvjp(lambda b: (f(b), jnp.cos(b)), lambda cos, ct: (3 * cos * by_lineax(ct),))
    return f


@pytest.mark.parametrize("make", [solved_jvp, solved_vjp])
def test_rules_in_primitives_of_other_packages_are_for_jax(make, x64):
    def loss(f):
        return lambda x: jnp.sum(lax.scan(lambda c, _: (f(c) + c, None), x, length=2)[0] ** 2)

    f = make()
    g = pb.bridge(loss(f))
    rows = jnp.stack([X, Y])

    def derivatives(f):
        return lambda x, rows: {
            "value": f(x),
            "gradient": jax.grad(f)(x),
            "vmap of grad": jax.vmap(jax.grad(f))(rows),
            "grad of vmap": jax.grad(lambda rows: jnp.sum(jax.vmap(f)(rows)))(rows),
        }

    found, expected = computed([derivatives(g), derivatives(loss(f))], [(X, rows)] * 2)
    for what, wanted in expected.items():
        assert_agree(found[what], wanted, what)
    assert_agree(jax.grad(g)(X), expected["gradient"], "eager")


# The ways to give rules


def test_other_ways_to_give_a_rule(x64):
    @jax.custom_gradient
    def by_custom_gradient(x):
        return jnp.sin(x), lambda ct: 3 * jnp.cos(x) * ct

    partial = jax.custom_jvp(lambda x, y: x * jnp.sin(y))
    partial.defjvps(lambda t, ans, x, y: 3 * jnp.sin(y) * t, None)
    remat = jax.custom_vjp(lambda x: jnp.sin(x) * x)
    remat.defvjp(
        lambda x: (remat(x), (x, jnp.cos(x))),
        lambda res, ct: (3 * res[0] * res[1] * ct,),
        optimize_remat=True,
    )

    for f in (by_custom_gradient, lambda x: partial(x, 2 * x), remat, jax.checkpoint(remat)):
        assert_agree(jax.grad(total(pb.bridge(f)))(X), jax.grad(total(f))(X), str(f))


def test_a_rule_that_was_applied_before_the_function_was_bridged(x64):
    """The tangent of a custom_vjp function is known by its transpose alone."""
    f = jax.custom_vjp(lambda x, y: (jnp.sin(x) * y, x + y))
    told = []

    def backward(res, cts):
        told.append(tuple(not isinstance(ct, SymbolicZero) for ct in cts))
        return (3 * cts[0] * res, None)

    f.defvjp(lambda x, y: (f(x.value, y.value), y.value), backward, symbolic_zeros=True)
    tangent = pb.bridge(lambda x, dx: jax.jvp(lambda x: f(x, Y), (x,), (dx,))[1][0])
    (found,) = jax.linear_transpose(lambda dx: tangent(X, dx), X)(Y)
    assert_agree(found, 3 * Y * Y, "transpose")
    assert told == [(True, False)]
    with pytest.raises(pb.NotDifferentiable, match="forward-mode"):
        tangent(X, Y)


def test_a_bridged_function_inside_another(x64):
    """The inner one's rules are told of what the outer one's derivative is by."""
    told = []
    f = jax.custom_jvp(lambda x, y: x * jnp.sin(y))

    def rule(primals, tangents):
        told.append(tuple(not isinstance(t, SymbolicZero) for t in tangents))
        (x, y), (dx, dy) = primals, tangents
        terms = [3 * jnp.sin(y) * dx] if told[-1][0] else []
        terms += [5 * x * jnp.cos(y) * dy] if told[-1][1] else []
        return f(x, y), sum(terms)

    f.defjvp(rule, symbolic_zeros=True)
    inner = pb.bridge(lambda x, y: f(x, y) ** 2)
    outer = pb.bridge(lambda x, y: inner(jnp.sin(x), y) + scaled(2)(x))
    plain = lambda x, y: f(jnp.sin(x), y) ** 2 + scaled(2)(x)  # noqa: E731
    assert_agree(jax.grad(total(outer))(X, Y), jax.grad(total(plain))(X, Y), "by x")
    assert set(told) == {(True, False)}
    mixed = lambda f: jax.grad(lambda y: jnp.sum(jax.grad(total(f))(X, y)))(Y)  # noqa: E731
    assert_agree(mixed(outer), mixed(plain), "mixed")


def test_results_without_tangents(x64):
    """A rule whose tangent is a symbolic zero stops the derivative, in loops too."""
    f = jax.custom_jvp(lambda x: (jnp.sin(x), jnp.cos(x)))

    def rule(primals, tangents):
        y, z = f(*primals)
        return (y, z), (3 * tangents[0], SymbolicZero(jax.typeof(z).to_tangent_aval()))

    f.defjvp(rule, symbolic_zeros=True)
    refusing = jax.custom_jvp(lambda x: x * 2)

    def refuse(primals, tangents):
        raise RuntimeError("not this one")

    refusing.defjvp(refuse)

    def loop(x):
        def step(c, _):
            y, z = f(c)
            return y, refusing(z)

        last, zs = lax.scan(step, x, length=3)
        return last + zs.sum(0)

    assert_agree(jax.grad(total(pb.bridge(loop)))(X), jax.grad(total(loop))(X), "scan")


def test_rules_in_a_linear_solve(x64):
    """The matrix is differentiated by what it is made of, and its product with a vector is not by that."""
    told = []
    times = jax.custom_jvp(lambda a, x: a * x)

    def rule(primals, tangents):
        told.append(tuple(not isinstance(t, SymbolicZero) for t in tangents))
        (a, x), (da, dx) = primals, tangents
        terms = [3 * da * x] if told[-1][0] else []
        return times(a, x), sum(terms + ([a * dx] if told[-1][1] else []))

    times.defjvp(rule, symbolic_zeros=True)

    def solved(a, b):
        scaled = lambda _, b: b / a  # noqa: E731
        return lax.custom_linear_solve(lambda x: times(a, x), b, scaled, scaled, symmetric=True) ** 2

    g = pb.bridge(solved)
    assert_agree(jax.grad(total(g), (0, 1))(Y, X), jax.grad(total(solved), (0, 1))(Y, X), "gradient")
    assert set(told) == {(True, False)}
    for first, then in [(0, 0), (0, 1), (1, 0)]:
        mixed = [
            jax.grad(lambda a, b, f=f: jnp.sum(jax.grad(total(f), first)(a, b) * X), then)(Y, X)  # noqa: B023
            for f in (g, solved)
        ]
        assert_agree(*mixed, f"{first} {then}")


def test_integer_results_alone(x64):
    """Nothing can be differentiated, whatever the rule says."""
    by_vjp = jax.custom_vjp(lambda x: jnp.floor(x).astype(int))
    by_vjp.defvjp(lambda x: (by_vjp(x), x), lambda x, ct: (0 * x,))
    by_jvp = jax.custom_jvp(lambda x: jnp.floor(x).astype(int))
    by_jvp.defjvp(lambda p, t: (by_jvp(*p), np.zeros(p[0].shape, jax.dtypes.float0)))
    for f in (by_vjp, by_jvp):
        loss = lambda x, f=f: x**2 * f(x)  # noqa: E731
        assert_agree(jax.grad(total(pb.bridge(loss)))(5 * Y), jax.grad(total(loss))(5 * Y), "gradient")


# Programs by themselves


def test_a_program_of_its_own_has_all_rules_in_its_text():
    program = pb.trace(scaled(2))(X)
    assert not program.rule_names and pb.parse(str(program)) == program
    eq, depth = program.equations[0], 1
    while any(e.op == "custom_jvp" for e in eq.attrs["jvp"].equations):
        eq = next(e for e in eq.attrs["jvp"].equations if e.op == "custom_jvp")
        depth += 1
    assert depth == RULE_ORDER


def test_a_rule_that_refuses_is_a_reason_in_the_text():
    f = jax.custom_vjp(lambda x, y: x * y)

    def forward(x, y):
        if y.perturbed:
            raise ValueError("y is fixed")
        return x.value * y.value, y.value

    f.defvjp(forward, lambda y, ct: (3 * ct * y, None), symbolic_zeros=True)
    program = pb.trace(lambda x, y: f(x, y) + jnp.sin(y))(X, Y)
    assert "ValueError: y is fixed" in str(program)
    again = pb.parse(str(program))
    assert again == program
    for p in (program, again):
        x, y = jnp.float32(X), jnp.float32(Y)
        assert_agree(p.to_jax()(x, y), x * y + jnp.sin(y), "value")
        for derivative in (p.jvp, p.linearize, p.vjp, lambda: p.vjp(active=[0])):  # noqa: B023
            with pytest.raises(pb.NotDifferentiable, match=r"y is fixed.*test_rules_that_wait"):
                derivative()
        with pytest.raises(pb.NotDifferentiable, match="y is fixed"):
            jax.grad(lambda x: jnp.sum(p.to_jax()(x, y)))(x)  # noqa: B023


def test_a_value_closed_over_is_refused_in_the_text_too():
    program = pb.trace(lambda x, y: closing_over(jnp.sin(y), "vjp")(x))(X, Y)
    back, _ = program.vjp(active=[0]).to_jax()(*map(jnp.float32, (X, Y)), jnp.ones(2))
    assert_agree(back, 3 * jnp.cos(jnp.float32(X)), "by the argument")
    with pytest.raises(pb.NotDifferentiable, match="closes over"):
        pb.parse(str(program)).vjp(active=[1])


def test_what_runs_has_no_rules_and_the_same_text_again():
    f = lambda x: lax.scan(lambda c, _: (scaled(2)(c), None), x, length=2)[0]  # noqa: E731
    first, second = lowered(f, X), lowered(f, X)
    assert first.rules and first == second
    running = values(first)
    assert not running.rule_names and "custom_jvp" not in str(running) and running == values(second)
    assert_agree(running.to_jax()(X), first.to_jax()(X), "value")


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_what_enzyme_gets_has_rules_of_first_order(kind, x64):
    """For the active inputs, in plain text; nested ones are their functions' own code."""
    f = solved_own(kind)
    program = lowered(lambda x, y: f(x, y) * scaled(2)(y), X, Y)
    for active in ((0,), (1,), (0, 1)):
        made = enzyme_call._with_rules(program, active)
        assert not made.rule_names and pb.parse(str(made), made.constants) == made
        found = transforms.vjp(made, active).to_jax()(*map(jnp.asarray, (X, Y)), jnp.ones(2))
        expected = jax.grad(total(lambda x, y: f(x, y) * scaled(2)(y)), active)(X, Y)
        assert_agree(found, expected, str(active))


def solved_own(kind):
    if kind == "jvp":
        f = jax.custom_jvp(lambda x, y: jnp.sin(x) * y)
        f.defjvp(lambda p, t: (f(*p), 3 * t[0] * f(*p) + 5 * t[1] * p[0]))
    else:
        f = jax.custom_vjp(lambda x, y: jnp.sin(x) * y)
        f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (3 * ct * f(*r), 5 * ct * r[0]))
    return f


def test_an_activated_program_says_what_is_perturbed():
    told = []
    f = jax.custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        told.append(tuple(not isinstance(t, SymbolicZero) for t in tangents))
        return f(*primals), sum(3 * t for t in tangents if not isinstance(t, SymbolicZero))

    f.defjvp(rule, symbolic_zeros=True)
    program = lowered(lambda x, y: f(lax.stop_gradient(x), y) + f(x, jnp.floor(y)), X, Y)
    both = activated(program, (True, True))
    assert told == [(False, True), (True, False)]
    assert len(both.rule_names) > 2  # of the calls, and of those in their rules
    assert activated(program, (False, False)) == program and activated(program, (True, True)) is both
    assert not expanded(both).rule_names
