"""Sparse Jacobians and Hessians have the values of dense ones, in all formats and under transformations."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from jax.experimental.sparse import BCOO

import pybridge as pb

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 1.5, 12)
PARAMETERS = {"w": RNG.uniform(0, 0.5, (2, 3)), "b": RNG.uniform(0, 0.5, 2)}


@pytest.fixture(autouse=True)
def in_64_bits(x64):
    pass


def reaction(u):
    left, right = u.reshape(2, -1)
    laplacian = lambda w: jnp.roll(w, 1) - 2 * w + jnp.roll(w, -1)  # noqa: E731
    rate = left * right**2
    return jnp.concatenate([16 * laplacian(left) - rate, 8 * laplacian(right) + rate])


def stepped(x):
    return lax.scan(lambda c, t: (c + 0.1 * t * jnp.sin(jnp.roll(c, 1)), c[0]), x, jnp.arange(3.0))


def written(x):
    return lax.fori_loop(1, 12, lambda i, y: y.at[i].multiply(y[i] * x[i - 1]), x)


def layer(parameters, x):
    return jnp.tanh(parameters["w"] @ x + parameters["b"])


def reverse_rule(x):
    @jax.custom_vjp
    def shifted(x):
        return jnp.roll(jnp.sin(x), -1)

    shifted.defvjp(lambda x: (shifted(x), x), lambda x, ct: (jnp.roll(ct, 1) * jnp.cos(x),))
    return shifted(x) * x


@jax.custom_jvp
def swapped(x):
    """The identity, whose rule makes second derivatives that are not symmetric."""
    return x


swapped.defjvp(lambda primals, tangents: (primals[0], jnp.cos(primals[0]) * tangents[0]))


JACOBIANS = {
    "reaction and diffusion": (reaction, (X,), 0),
    "all constant": (lambda x: 2 * x[1:] - x[:-1], (X,), 0),
    "constant": (lambda x: jnp.ones(3), (X,), 0),
    "constant results and others": (lambda x: (3 * x, x * x, jnp.zeros(2)), (X,), 0),
    "constants that meet": (lambda x: jnp.cos(x) * x + 5 * x - x[::-1], (X,), 0),
    "one number": (lambda x: jnp.sum(x**2), (X,), 0),
    "of one number": (lambda x: jnp.arange(5.0) * x**2, (np.float64(2),), 0),
    "matrix argument": (lambda x: x[1:] * x[:-1], (X.reshape(4, 3),), 0),
    "a scan": (stepped, (X,), 0),
    "a loop that writes": (written, (X,), 0),
    "the second argument": (lambda a, x: a * x**2, (X, X + 1), 1),
    "the last argument": (lambda a, x: a * x**2, (X, X + 1), -1),
    "an unknown factor": (lambda x, a: a * (x[1:] - x[:-1]), (X, np.float64(3)), 0),
    "reverse rule": (reverse_rule, (X,), 0),
    "no elements": (lambda x: x * 2, (np.zeros(0),), 0),
    "an index by a power": (lambda x: x[lax.integer_pow(jnp.full(3, 0.5), -2).astype(int)] ** 2, (X,), 0),
    "integers": (lambda x, i: x[i] ** 2, (X, np.array([3, 1, 1])), 0),
}

HESSIANS = {
    "Rosenbrock": lambda x: jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2),
    "Brown": lambda x: jnp.sum((x[:-1] ** 2) ** (x[1:] ** 2 + 1) + (x[1:] ** 2) ** (x[:-1] ** 2 + 1)),
    "arrow": lambda x: jnp.sum(x[0] * x**2),
    "quadratic": lambda x: jnp.sum((x[1:] - x[:-1]) ** 2) + x[0] * x[5],
    "linear": lambda x: jnp.sum(3 * x),
    "products in a scan": lambda x: lax.scan(lambda c, t: (jnp.sin(c) + t * t, None), x[0], x[1:4])[0],
    "gathered": lambda x: jnp.sum(jnp.exp(x[jnp.array([0, 2, 2])]) * x[jnp.array([1, 1, 7])]),
    "a while loop": lambda x: jnp.sum(lax.while_loop(lambda x: x[0] < 3, lambda x: x * x + 1, x)),
    "a rule without symmetry": lambda x: jnp.sum(swapped(x[1:]) * x[:-1] ** 2),
    "relu": lambda x: jnp.sum(jax.nn.relu(x[1:] * x[:-1]) ** 2),
}


def flat(f, argnum, args):
    if not np.size(args[argnum]):
        return np.zeros((0, 0))
    parts = jax.tree.leaves(jax.jacrev(f, argnum)(*args))
    return np.concatenate([np.asarray(p).reshape(-1, np.size(args[argnum])) for p in parts])


@pytest.mark.parametrize("constant_part", [True, False])
@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobians(name, constant_part):
    f, args, argnum = JACOBIANS[name]
    derivative = pb.sparse_jacobian(f, argnum, constant_part=constant_part)
    np.testing.assert_allclose(derivative(*args).todense(), flat(f, argnum, args), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mode", ["jvp", "vjp"])
def test_both_modes(mode):
    derivative = pb.sparse_jacobian(reaction, mode=mode)
    assert derivative.plan(X).mode == mode
    np.testing.assert_allclose(derivative(X).todense(), flat(reaction, 0, (X,)), rtol=1e-12, atol=1e-14)


def by_differences(f, x, step=1e-5):
    columns = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))]
    return np.stack(columns, 1)


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians(name):
    f = HESSIANS[name]
    found = pb.sparse_hessian(f)(X).todense()
    if name == "a while loop":  # JAX has no reverse mode of it
        expected = by_differences(jax.grad(pb.bridge(f)), X)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    else:
        np.testing.assert_allclose(found, jax.hessian(f)(X), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["reaction and diffusion", "a scan", "constants that meet"])
def test_jacobians_are_those_of_difference_quotients(name):
    f, (x,), _ = JACOBIANS[name]
    of = lambda x: np.concatenate([np.asarray(y).reshape(-1) for y in jax.tree.leaves(f(x))])  # noqa: E731
    found = pb.sparse_jacobian(f)(x).todense()
    np.testing.assert_allclose(found, by_differences(of, x), rtol=1e-7, atol=1e-7)


LINEAR = {
    "roll": lambda x: jnp.roll(x, 2),
    "scale": lambda x: x * jnp.arange(1.0, 13.0),
    "halve": lambda x: x / 2,
    "matrix": lambda x: jnp.asarray(np.triu(np.ones((12, 12)), 9)) @ x,
    "pick": lambda x: x[jnp.array([0, 0, 5, 3, 7, 1, 11, 10, 9, 2, 4, 6])],
    "write": lambda x: x.at[1:3].set(x[7]),
    "shift": lambda x: x + 3,
    "select": lambda x: jnp.where(jnp.arange(12) % 3 == 0, x, -x),
}
OTHER = {"square": lambda x: x * x, "sine": jnp.sin, "stop": lambda x: lax.stop_gradient(x) * x}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([*LINEAR, *OTHER]), st.integers(0, 9), st.integers(0, 9)),
        min_size=1,
        max_size=7,
    )
)
def test_the_constant_part_and_the_rest_are_the_whole(steps):
    def f(x):
        values = [x]
        for name, a, b in steps:
            made = (LINEAR | OTHER)[name](values[a % len(values)])
            values.append(made - values[b % len(values)])
        return jnp.concatenate(values[-2:])

    # At zero every square has the derivative 0, and at any point no other.
    derivative = pb.sparse_jacobian(f, execute="xla")
    np.testing.assert_allclose(derivative(X).todense(), flat(f, 0, (X,)), rtol=1e-10, atol=1e-10)


def test_constant_entries_are_computed_once_and_save_colours():
    plan = pb.sparse_jacobian(reaction).plan(X)
    whole = pb.sparse_jacobian(reaction, constant_part=False).plan(X)
    assert (plan.colours, plan.constant_entries, plan.pattern.entries) == (2, 24, 48)
    assert whole.colours >= 4
    assert whole.constant_entries == 0
    assert "24 of them constant, 2 JVPs" in repr(plan)


def test_the_cost_is_that_of_the_colours():
    """A hundred thousand unknowns: a dense Hessian would have 80 GB."""
    x = jnp.linspace(0.5, 1.5, 100_000)
    for name, entries in (("Rosenbrock", 299_998), ("Brown", 299_998)):
        derivative = pb.sparse_hessian(HESSIANS[name])
        plan = derivative.plan(x)
        assert plan.colours == 3
        assert plan.pattern.entries == entries
        v = jnp.cos(jnp.arange(100_000.0))
        expected = jax.jvp(jax.grad(HESSIANS[name]), (x,), (v,))[1]
        np.testing.assert_allclose(derivative(x) @ v, expected, rtol=1e-9, atol=1e-9)


def test_many_colours_are_computed_in_turn(monkeypatch):
    monkeypatch.setattr("pybridge.sparse._plan.BATCH_BYTES", 1000)
    for mode in ("jvp", "vjp"):
        derivative = pb.sparse_jacobian(jnp.cumprod, mode=mode)
        assert derivative.plan(X).colours == 12
        expected = jax.jacobian(jnp.cumprod)(X)
        np.testing.assert_allclose(derivative(X).todense(), expected, rtol=1e-12)


# Arguments and formats


def test_pytrees_are_in_the_order_of_their_leaves():
    x = RNG.uniform(1, 2, 3)
    found = pb.sparse_jacobian(layer)(PARAMETERS, x)
    dense = jax.jacobian(layer)(PARAMETERS, x)
    expected = np.concatenate([np.asarray(dense[k]).reshape(2, -1) for k in ("b", "w")], 1)
    np.testing.assert_allclose(found.todense(), expected, rtol=1e-12)
    assert found.nse == 8  # of 16: an output has a row of w and its own b


def test_arguments_by_name():
    f = lambda x, *, scale: scale * x**2  # noqa: E731
    found = pb.sparse_jacobian(f)(X, scale=3.0).todense()
    np.testing.assert_allclose(found, np.diag(6 * X))


@pytest.mark.parametrize(
    ("format", "kind"),
    [("bcoo", BCOO), ("csr", sp.csr_array), ("csc", sp.csc_array), ("coo", sp.coo_array)],
)
def test_formats(format, kind):
    found = pb.sparse_jacobian(reaction, format=format)(X)
    assert isinstance(found, kind)
    dense = found.todense()
    np.testing.assert_allclose(dense, jax.jacobian(reaction)(X), rtol=1e-12, atol=1e-14)
    if format != "bcoo":
        assert found.has_canonical_format


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtypes(dtype):
    x = jnp.asarray(X, dtype)
    for f, derivative in ((reaction, pb.sparse_jacobian), (HESSIANS["Rosenbrock"], pb.sparse_hessian)):
        found = derivative(f)(x)
        dense = jax.hessian(f)(x) if derivative is pb.sparse_hessian else jax.jacobian(f)(x)
        assert found.dtype == dense.dtype == x.dtype
        tolerance = 200 * np.finfo(dtype).eps
        np.testing.assert_allclose(found.todense(), dense, rtol=tolerance, atol=tolerance)


def test_under_jit_grad_and_in_loops():
    derivative = pb.sparse_jacobian(reaction)
    expected = np.asarray(jax.jacobian(reaction)(X))

    @jax.jit
    def product(x, v):
        return derivative(x) @ v

    np.testing.assert_allclose(product(X, X), expected @ X, rtol=1e-11)
    gradient = jax.grad(lambda x: jnp.sum(derivative(x).data ** 2))(jnp.asarray(X))
    right = jax.grad(lambda x: jnp.sum(jax.jacobian(reaction)(x) ** 2))(jnp.asarray(X))
    np.testing.assert_allclose(gradient, right, rtol=1e-10)
    last = lax.fori_loop(0, 3, lambda i, x: x + 1e-3 * (derivative(x) @ x), jnp.asarray(X))
    slow = jnp.asarray(X)
    for _ in range(3):
        slow = slow + 1e-3 * (jax.jacobian(reaction)(slow) @ slow)
    np.testing.assert_allclose(last, slow, rtol=1e-12)


def test_batches_of_values():
    derivative, xs = pb.sparse_jacobian(reaction), np.stack([X, X + 1])
    found = jax.vmap(lambda x: derivative(x).data)(xs)
    for x, data in zip(xs, found, strict=True):
        np.testing.assert_allclose(data, derivative(x).data, rtol=1e-12)


def test_a_closure_over_a_traced_value():
    def total(a):
        return jnp.sum(pb.sparse_jacobian(lambda x: a * (x[1:] - x[:-1]) + a * x[1:] ** 2)(X).data)

    dense = lambda a: jnp.sum(jax.jacobian(lambda x: a * (x[1:] - x[:-1]) + a * x[1:] ** 2)(X))  # noqa: E731
    a = jnp.asarray(2.0)
    np.testing.assert_allclose(jax.jit(total)(a), dense(a))
    np.testing.assert_allclose(jax.grad(total)(a), jax.grad(dense)(a))


@pytest.mark.parametrize("options", [{"engine": "jax"}, {"execute": "xla"}, {"execute": "julia"}])
def test_engines(options):
    found = pb.sparse_jacobian(reaction, **options)(X).todense()
    np.testing.assert_allclose(found, jax.jacobian(reaction)(X), rtol=1e-12, atol=1e-14)


# Given patterns


def test_given_patterns():
    dense = np.asarray(jax.jacobian(reaction)(X))
    pattern = dense != 0
    for given_pattern in (pattern, sp.csc_array(pattern), sp.coo_matrix(pattern), BCOO.fromdense(dense)):
        derivative = pb.sparse_jacobian(reaction, pattern=given_pattern)
        np.testing.assert_allclose(derivative(X).todense(), dense, rtol=1e-12, atol=1e-14)
    f = HESSIANS["Rosenbrock"]
    triangle = np.triu(np.asarray(jax.hessian(f)(X))) != 0
    found = pb.sparse_hessian(f, pattern=triangle)(X).todense()
    np.testing.assert_allclose(found, jax.hessian(f)(X), rtol=1e-11, atol=1e-12)


def test_a_given_pattern_does_not_make_a_hessian_symmetric():
    f = HESSIANS["a rule without symmetry"]
    dense = np.asarray(jax.hessian(f)(X))
    assert not np.allclose(dense, dense.T)
    found = pb.sparse_hessian(f, pattern=dense != 0)(X).todense()
    np.testing.assert_allclose(found, dense, rtol=1e-11, atol=1e-12)


def test_a_pattern_that_lacks_an_entry_is_refused():
    pattern = np.asarray(jax.jacobian(reaction)(X)) != 0
    pattern[5, 11] = False
    with pytest.raises(pb.WrongPattern, match="row 5"):
        pb.sparse_jacobian(reaction, pattern=pattern)(X)


def test_what_detection_cannot_follow_can_have_a_pattern():
    def f(x):
        return jnp.cumsum(x) - jnp.concatenate([jnp.zeros(1), jnp.cumsum(x)[:-1]]) + x**2

    assert pb.sparse_jacobian(f).pattern(X).entries == 78
    found = pb.sparse_jacobian(f, pattern=np.eye(12))
    assert found.plan(X).colours == 1
    np.testing.assert_allclose(found(X).todense(), np.diag(1 + 2 * X), rtol=1e-12)


# What is refused

NUMBER = functools.partial(jnp.asarray, 1.0)
BAD = {
    "complex": (lambda: pb.sparse_jacobian(jnp.sin)(X * 1j), pb.NotDifferentiable, "complex"),
    "complex result": (lambda: pb.sparse_jacobian(lambda x: x * 1j)(X), pb.NotDifferentiable, "a result of"),
    "integers": (lambda: pb.sparse_jacobian(jnp.sin)(np.arange(3)), pb.NotDifferentiable, "int64"),
    "integer result": (
        lambda: pb.sparse_jacobian(lambda x: jnp.argmax(x))(X),
        pb.NotDifferentiable,
        "a result of",
    ),
    "no array": (lambda: pb.sparse_jacobian(jnp.sin)("x"), pb.ArgumentError, "str"),
    "no argument": (lambda: pb.sparse_jacobian(jnp.sin, 1)(X), pb.ArgumentError, "argument 1"),
    "by name": (lambda: pb.sparse_jacobian(lambda x: x)(x=X), pb.ArgumentError, "by position"),
    "several arguments": (lambda: pb.sparse_jacobian(jnp.add, (0, 1)), pb.UnknownOption, "one argument"),
    "two dtypes": (
        lambda: pb.sparse_jacobian(lambda p: p[0])((X, X.astype("float32"))),
        pb.ArgumentError,
        "float32, float64",
    ),
    "empty pytree": (lambda: pb.sparse_jacobian(lambda p: X)(()), pb.ArgumentError, "no arrays"),
    "no result": (lambda: pb.sparse_jacobian(lambda x: ())(X), pb.ArgumentError, "returns no arrays"),
    "format": (lambda: pb.sparse_jacobian(jnp.sin, format="bsr"), pb.UnknownOption, "'bcoo', 'csr'"),
    "mode": (lambda: pb.sparse_jacobian(jnp.sin, mode="fwd"), pb.UnknownOption, "'jvp', 'vjp'"),
    "engine": (lambda: pb.sparse_jacobian(jnp.sin, engine="none"), pb.UnknownOption, "engine"),
    "pattern of three dimensions": (
        lambda: pb.sparse_jacobian(jnp.sin, pattern=np.ones((2, 2, 2))),
        pb.ArgumentError,
        "two dimensions",
    ),
    "pattern that is text": (
        lambda: pb.sparse_jacobian(jnp.sin, pattern="dense"),
        pb.ArgumentError,
        "a pattern is",
    ),
    "pattern of another shape": (
        lambda: pb.sparse_jacobian(jnp.sin, pattern=np.eye(3))(X),
        pb.WrongPattern,
        r"\(3, 3\).*\(12, 12\)",
    ),
    "Hessian of a vector": (lambda: pb.sparse_hessian(jnp.sin)(X), pb.ArgumentError, "one number"),
    "scipy under jit": (
        lambda: jax.jit(pb.sparse_jacobian(jnp.sin, format="csr"))(X),
        pb.ArgumentError,
        "csr",
    ),
    "a point under jit": (
        lambda: jax.jit(lambda x: pb.sparse_jacobian(jnp.sin).pattern(x, at_point=True).entries)(X),
        pb.ArgumentError,
        "outside of jit",
    ),
    "no function": (lambda: pb.sparse_jacobian(3), pb.UnknownOption, "takes a function"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_by_name(name):
    run, error, message = BAD[name]
    with pytest.raises(error, match=message):
        run()


def test_what_is_too_dense_is_refused_with_its_line():
    def f(x):
        return jnp.sin(x * jnp.cumsum(x))

    with pytest.raises(pb.DensePattern, match=r"cumsum at .*test_derivatives\.py.*pattern=") as caught:
        pb.sparse_jacobian(f)(jnp.ones(20_000))
    assert "test_derivatives.py" in caught.value.source
