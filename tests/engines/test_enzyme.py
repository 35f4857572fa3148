"""Engine `enzyme`: Programs differentiated by Enzyme.jl, held against JAX."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from cases import FULL

import pybridge as pb
from pybridge.engines import ENGINES

sys.path.append(str(Path(__file__).parents[1] / "derivatives"))
from harness import Setup, measured, reference

MISSING = ENGINES["enzyme"].unavailable()
pytestmark = [
    pytest.mark.enzyme,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
    pytest.mark.usefixtures("x64"),
]

EVERY = 1 if os.environ.get("PYBRIDGE_ENZYME_CASES") == "all" else 16
"""Enzyme takes seconds to compile a case: of the table one in so many."""

SECONDS = float(os.environ.get("PYBRIDGE_STRESS_SECONDS", "4"))


@pytest.mark.parametrize("case", [case for case in FULL if case.active][::EVERY], ids=str)
def test_table(case):
    with case.context():
        setups = [Setup.of(case)]
        (expected,) = measured(setups, [reference(case)], Setup.everything)
        (found,) = measured(setups, [pb.bridge(case.f, engine="enzyme")], Setup.everything)
        for name, y in expected.items():
            assert_agree(found[name], y, f"{case}: {name}")


def waves(a, x):
    return jnp.sin(a * x) ** 2 / a


A, X = np.arange(1.0, 5.0), np.linspace(-1, 1, 12).reshape(3, 4)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: jax.grad(lambda a, x: f(a, x).sum(), (0, 1)),
        lambda f: jax.jit(jax.grad(lambda a, x: f(a, x).sum())),
        lambda f: jax.jacfwd(f, (0, 1)),
        lambda f: jax.jacrev(f, (0, 1)),
        lambda f: jax.hessian(lambda a, x: f(a, x).sum(), (0, 1)),
        lambda f: jax.vmap(jax.grad(lambda a, x: f(a, x).sum()), (None, 0)),
        lambda f: jax.grad(lambda a, x: jax.vmap(f, (None, 0))(a, x).sum()),
        lambda f: jax.vmap(jax.vmap(lambda a, x: jax.linearize(f, a, x)[1](a, x), (0, None)), (None, 1)),
        lambda f: jax.grad(lambda a, x: jax.grad(lambda b: f(b, x).sum())(a).sum()),
        lambda f: jax.grad(lambda a, x: jax.lax.scan(lambda c, r: (f(c, r), c.sum()), a, x)[1].sum()),
    ],
    ids=[
        "grad",
        "jit_grad",
        "jacfwd",
        "jacrev",
        "hessian",
        "vmap_grad",
        "grad_vmap",
        "vmap_linearize",
        "grad_grad",
        "in_scan",
    ],
)
def test_transformations(transformed):
    expected = transformed(waves)(A, X)
    assert_agree(transformed(pb.bridge(waves, engine="enzyme"))(A, X), expected, "enzyme")


def test_large_arrays_go_by_kernels():
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    a = np.linspace(1, 2, 64, dtype=np.float32)

    def pulled(f):
        return jax.jit(lambda a, x: jax.vjp(f, a, x)[1](x))(a, x)

    assert_agree(pulled(pb.bridge(waves, engine="enzyme")), pulled(waves), "vjp")


@pytest.mark.parametrize("n", [4, 32], ids=["by loops", "by BLAS"])
def test_matrix_products_in_a_loop(n):
    a = np.random.default_rng(n).standard_normal((n, n)) / n

    def power(a):
        return jnp.sum(jax.lax.fori_loop(0, 5, lambda _, y: jnp.sin(a @ y), a) ** 2)

    assert_agree(jax.grad(pb.bridge(power, engine="enzyme"))(a), jax.grad(power)(a), "gradient")


def test_a_loop_of_unknown_length_in_reverse():
    """Which JAX refuses, and transposition with it."""

    def halved(x):
        return jax.lax.while_loop(lambda y: y > 1.0, lambda y: y * jnp.cos(x) / 2, x * x)

    x, trips = 5.0, 0
    y = x * x
    while y > 1:
        y, trips = y * np.cos(x) / 2, trips + 1
    assert trips > 1

    def unrolled(x):
        return x * x * (jnp.cos(x) / 2) ** trips

    assert_agree(jax.grad(pb.bridge(halved, engine="enzyme"))(x), jax.grad(unrolled)(x), "gradient")


# Custom rules that are wrong by a factor of three show that they are what is used.


@jax.custom_jvp
def forward_rule(x):
    return jnp.sin(x)


forward_rule.defjvp(lambda primals, tangents: (forward_rule(*primals), 3 * jnp.cos(primals[0]) * tangents[0]))


@jax.custom_vjp
def reverse_rule(x):
    return jnp.sin(x)


reverse_rule.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (3 * jnp.cos(x) * ct,))


@pytest.mark.parametrize("rule", [forward_rule, reverse_rule])
@pytest.mark.parametrize("looped", [False, True], ids=["once", "in a loop"])
def test_custom_rules_are_honoured(rule, looped):
    def f(x):
        return jax.lax.fori_loop(0, 3, lambda _, y: rule(y) * x, x).sum() if looped else rule(x).sum()

    x = np.array([0.3, 0.5])
    found = jax.grad(pb.bridge(f, engine="enzyme"))(x)
    assert_agree(found, jax.grad(f)(x), "gradient")
    if not looped:
        np.testing.assert_allclose(found, 3 * np.cos(x))


def test_forward_mode_of_a_reverse_rule_is_refused_and_the_next_call_works():
    f = pb.bridge(lambda x: reverse_rule(x).sum(), engine="enzyme")
    with pytest.raises(pb.NotDifferentiable, match="custom_vjp"):
        jax.jvp(f, (A,), (A,))
    assert_agree(jax.grad(f)(A), 3 * np.cos(A), "gradient")


def test_what_enzyme_says_is_an_enzyme_error(monkeypatch):
    """Told by Julia, since no Program is known that Enzyme refuses."""

    def refuse(command, *rest, **options):
        raise pb.JuliaError("it is beyond me", kind="EnzymeFailed", stacktrace="somewhere in differentiated")

    gradient = jax.grad(pb.bridge(lambda a: waves(a, 3.0).sum(), engine="enzyme"))
    with monkeypatch.context() as patched, pytest.raises(pb.EnzymeError, match="beyond me") as refused:
        patched.setattr("pybridge.runtime.requests.julia.request", refuse)
        gradient(A)
    assert "differentiated" in refused.value.stacktrace
    assert_agree(gradient(A), jax.grad(lambda a: waves(a, 3.0).sum())(A), "gradient")


def test_an_exception_at_run_time_is_an_error_and_the_next_call_works():
    """Here for want of memory: as many bytes as there are addresses."""

    def summed(x):
        return jnp.cumsum(jnp.broadcast_to(x, (2**44,)))[-1]

    gradient = jax.jit(jax.grad(pb.bridge(summed, engine="enzyme")))
    for _ in range(2):
        with pytest.raises(jax.errors.JaxRuntimeError, match="OutOfMemoryError"):
            gradient(1.0).block_until_ready()
    assert_agree(jax.grad(pb.bridge(jnp.sin, engine="enzyme"))(1.0), np.cos(1.0), "gradient")


def test_integer_powers():
    x, k = np.array([-1.5, 0.0, 2.0, 3.0]), np.array([3, 2, 0, -1])

    def powers(x):
        return (x**k * jnp.arange(4.0)).sum()

    f = pb.bridge(powers, engine="enzyme")
    assert_agree(jax.grad(f)(x), jax.grad(powers)(x), "gradient")
    assert_agree(jax.jacfwd(f)(x), jax.jacfwd(powers)(x), "tangent")


def test_functions_with_rules_take_integers_too():
    """The greater of two places, in a loop."""

    def looked_up(x):
        return jnp.interp(x, jnp.arange(4.0), jnp.array([0.0, 1.0, 4.0, 9.0])) * x

    x = np.array([-1.0, 0.5, 2.2])
    found = jax.grad(lambda x: pb.bridge(looked_up, engine="enzyme")(x).sum())(x)
    assert_agree(found, jax.grad(lambda x: looked_up(x).sum())(x), "gradient")


def test_other_execute_modes_are_refused():
    with pytest.raises(pb.UnknownOption, match="julia"):
        pb.bridge(waves, engine="enzyme", execute="xla")


def test_inputs_and_cotangents_are_only_read():
    a, x = jnp.asarray(A), jnp.asarray(X)
    ct = jnp.ones_like(x)
    pull = jax.vjp(pb.bridge(waves, engine="enzyme"), a, x)[1]
    first, again = pull(ct), pull(ct)
    assert_agree(first, again, "again", tolerance=0)
    assert (a == A).all() and (x == X).all() and (ct == 1).all()


def test_threads_while_julia_collects_garbage():
    """Reverse passes that allocate, on Python's threads and XLA's; collections all the while."""

    @jax.jit
    @jax.grad
    def gradient(a):
        def step(y, _):
            y = jnp.sin(forward_rule(y) * a)
            return y, y.sum()

        return f_scan(step, a)

    def f_scan(step, a):
        return pb.bridge(lambda a: jax.lax.scan(step, a, None, length=50)[1].sum(), engine="enzyme")(a)

    collect = pb.julia_function(
        "collected", source="collected(x) = (GC.gc(); x)", result=jax.ShapeDtypeStruct((), jnp.float64)
    )
    expected = np.asarray(gradient(A))
    end, done, wrong = time.monotonic() + SECONDS, [0] * 4, []

    def work(k):
        with jax.enable_x64(True):  # a setting of each thread's own
            while time.monotonic() < end:
                if not np.array_equal(gradient(A), expected):
                    wrong.append(k)
                done[k] += 1

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    while time.monotonic() < end:
        collect(0.0)
    for t in threads:
        t.join(timeout=60)
    assert not any(t.is_alive() for t in threads)
    assert not wrong and min(done) > 0


def test_compare_and_doctor_know_it():
    assert "engine enzyme" in str(pb.doctor())
    report = pb.compare(lambda x: waves(2.0, x).sum(), X, engines=("enzyme", "jax"))
    assert "enzyme" in str(report)


def test_the_logarithm_of_a_bounded_number():
    """What Enzyme.jl on Julia 1.10 has had wrong in Julia code of its users (its issue 2987)."""

    def transformed(x, upper):
        return jnp.where(jnp.isfinite(upper), jnp.log(x / upper), jnp.log(x))

    f = pb.bridge(transformed, engine="enzyme", verify=True)
    for upper in (1.0, 3.0):
        for derivative in (jax.grad, jax.jacfwd):
            np.testing.assert_allclose(derivative(f)(0.5, upper), 2.0, rtol=1e-12)
