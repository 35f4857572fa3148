"""Detected patterns have every entry of the derivative: of each primitive, and of random Programs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from cases import FULL
from covering import some
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

import pybridge as pb
from pybridge.frontend.emission import to_jax
from pybridge.fuzz.making import sample

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def in_64_bits(x64):
    pass


def dense(f, argnum, args):
    """The Jacobian by JAX, flat; by reverse mode where there is no other."""
    try:
        parts = jax.jacfwd(f, argnum)(*args)
    except (TypeError, ValueError):
        parts = jax.jacrev(f, argnum)(*args)
    n = args[argnum].size
    return np.concatenate([np.asarray(p, np.float64).reshape(-1, n) for p in jax.tree.leaves(parts)])


def of_floats(f, args):
    """`f` with its real results alone, or None where it has none."""
    results = jax.tree.leaves(jax.eval_shape(f, *args))
    places = [k for k, y in enumerate(results) if y.dtype.kind == "f"]
    if not places or any(y.dtype.kind == "c" for y in results):
        return None
    return lambda *xs: [jax.tree.leaves(f(*xs))[k] for k in places]


def check(f, reference, argnum, args):
    """The pattern everywhere has that at the point, and this has the entries that are not zero."""
    derivative = pb.sparse_jacobian(f, argnum)
    everywhere = derivative.pattern(*args).csr.toarray()
    here = derivative.pattern(*args, at_point=True).csr.toarray()
    nonzero = np.abs(dense(reference, argnum, args)) > 1e-9
    assert not (nonzero & ~here).any()
    assert not (here & ~everywhere).any()


_CASES = [
    (case, i)
    for case in FULL
    for i in case.active
    if case.inputs()[i].dtype.kind == "f" and case.inputs()[i].size
]
_WITHOUT_JAX = ("zeta", "linear_call", "program_reduce_pairs")
"""What JAX has no derivative of."""
_CHOSEN = some([(c, i) for c, i in _CASES if not c.name.startswith(_WITHOUT_JAX)], 100)


@pytest.mark.per_primitive
@pytest.mark.parametrize(
    ("case", "argnum"),
    [pytest.param(c, i, id=f"{c.name}-{i}") for c, i in _CHOSEN],
)
def test_no_entry_of_a_primitive_is_missing(case, argnum):
    args = case.inputs()
    f, reference = (of_floats(g, args) for g in (case.f, case.reference or case.f))
    if f is not None:
        check(f, reference, argnum, args)


@pytest.mark.parametrize("number", some(range(400), 40))
def test_no_entry_of_a_random_program_is_missing(number):
    made = sample(7, number)
    types = (*made.program.input_types, *made.program.output_types)
    if any(t.dtype in ("c64", "c128") for t in types):
        return
    f = of_floats(to_jax(made.program), made.inputs)
    for k, x in enumerate(made.inputs):
        if f is not None and x.dtype.kind == "f" and x.size:
            try:
                dense(f, k, made.inputs)
            except NotImplementedError:  # JAX has no rule
                return
            check(f, f, k, made.inputs)


# Exactly which entries

X = RNG.uniform(0.5, 1.5, 12)
SPARSE = sp.random_array((9, 12), density=0.2, rng=np.random.default_rng(3)).toarray()


def stepped(x):
    def step(carry, _):
        return carry + 0.1 * (jnp.roll(carry, 1) - carry) * carry, carry[0]

    return lax.scan(step, x, None, length=2)[0]


def written_in_a_loop(x):
    return lax.fori_loop(1, 12, lambda i, y: y.at[i].set(x[i] * x[i - 1]), x)


def neighbours(x):
    return lax.map(lambda pair: pair[0] * pair[1], (x[1:], x[:-1]))


def straight_through(x):
    @jax.custom_jvp
    def rounded(x):
        return jnp.round(x)

    rounded.defjvp(lambda primals, tangents: (rounded(*primals), tangents[0]))
    return rounded(x)


def reverse_rule(x):
    @jax.custom_vjp
    def shifted(x):
        return jnp.sin(x)

    shifted.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (jnp.roll(ct, 1) * jnp.cos(x),))
    return shifted(x)


def band(*offsets):
    return sum(np.eye(12, k=k) for k in offsets) != 0


EXACT = {
    "elementwise": (lambda x: jnp.sin(x) * x, band(0)),
    "difference": (lambda x: x[1:] - x[:-1], (band(0, 1))[:-1]),
    "roll": (lambda x: jnp.roll(x, 1), np.roll(np.eye(12), 1, 0) != 0),
    "constant indices": (lambda x: x[jnp.array([3, 3, 0])], np.eye(12)[[3, 3, 0]] != 0),
    "constant writes": (lambda x: x.at[jnp.array([1, 2])].set(x[0]), None),
    "constant matrix": (lambda x: SPARSE @ x, SPARSE != 0),
    "matrix of numpy": (lambda x: jnp.sin(jnp.asarray(SPARSE) @ x), SPARSE != 0),
    "constant mask": (lambda x: x * (jnp.arange(12) % 2), np.diag(np.arange(12) % 2) != 0),
    "constant condition": (lambda x: jnp.where(jnp.arange(12) < 6, x, x[::-1]), None),
    "rows": (lambda x: x.reshape(3, 4).sum(1), np.kron(np.eye(3), np.ones(4)) != 0),
    "convolution": (lambda x: jnp.convolve(x, jnp.array([1.0, 0.0, 2.0]), "same"), band(-1, 1)),
    "two steps of a scan": (stepped, None),
    "a loop that writes": (written_in_a_loop, None),
    "map": (neighbours, band(0, 1)[:-1]),
    "rule by JVP": (straight_through, band(0)),
    "rule by VJP": (reverse_rule, np.roll(np.eye(12), 1, 1) != 0),
    "remat": (jax.checkpoint(lambda x: jnp.sin(x) * x), band(0)),
    "cumulative sum": (jnp.cumsum, np.tril(np.ones((12, 12))) != 0),
}


@pytest.mark.parametrize("name", EXACT)
def test_patterns_are_exact_where_all_that_matters_is_constant(name):
    f, expected = EXACT[name]
    derivative = pb.sparse_jacobian(f)
    found = derivative.pattern(X).csr.toarray()
    if expected is None:
        expected = dense(f, 0, (X,)) != 0
    np.testing.assert_array_equal(found, expected)


def test_at_a_point_branches_and_indices_are_those_taken():
    def f(x, i, flag):
        return lax.cond(flag, lambda: x * x, lambda: x[::-1] * x) + x[i]

    derivative = pb.sparse_jacobian(f)
    args = X, jnp.asarray(3), jnp.asarray(True)
    assert derivative.pattern(*args).entries == 12 * 12
    here = derivative.pattern(*args, at_point=True)
    np.testing.assert_array_equal(here.csr.toarray(), band(0) | (np.arange(12) == 3))
    values = pb.sparse_jacobian(f, pattern=here)(*args)
    np.testing.assert_allclose(values.todense(), dense(f, 0, args), rtol=1e-12)


def test_other_arguments_are_not_taken_for_constants():
    def f(x, w):
        return x * w

    derivative = pb.sparse_jacobian(f)
    assert derivative.pattern(X, jnp.zeros(12)).entries == 12
    np.testing.assert_allclose(derivative(X, jnp.zeros(12)).todense(), np.zeros((12, 12)))
    np.testing.assert_allclose(derivative(X, X).todense(), np.diag(X))


@pytest.mark.parametrize("bound", [3, 100_000])
def test_long_loops_have_what_any_iteration_reaches(bound):
    def f(x):
        def step(carry, shift):
            return carry.at[:2].set(jnp.sin(carry[:2][::-1])), carry[2:] * shift

        return lax.scan(step, x, jnp.ones(bound))

    if bound == 3:
        check(f, f, 0, (X,))
    else:
        found = pb.sparse_jacobian(f).pattern(X)
        assert found.shape == (12 + bound * 10, 12)
        assert found.entries == 4 + 10 + bound * 10


def test_while_loops_have_what_any_number_of_iterations_reaches():
    def f(x):
        return lax.while_loop(lambda x: x[0] < 100, lambda x: jnp.concatenate([2 * x[:1], x[:-1]]), x)

    expected = np.tril(np.ones((12, 12))) != 0
    np.testing.assert_array_equal(pb.sparse_jacobian(f).pattern(X).csr.toarray(), expected)
    check(f, f, 0, (X,))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["roll", "flip", "pick", "write", "sum", "square", "mix"]), max_size=6))
def test_no_entry_of_a_chain_is_missing(names):
    steps = {
        "roll": lambda x: jnp.roll(x, 2),
        "flip": lambda x: x[::-1],
        "pick": lambda x: x[jnp.array([0, 0, 5, 3, 7, 1, 11, 10, 9, 2, 4, 6])],
        "write": lambda x: x.at[1:3].set(x[7]),
        "sum": lambda x: x.at[4].add(x[:3].sum()),
        "square": lambda x: x * x,
        "mix": lambda x: jnp.concatenate([x[6:], jnp.zeros(2), x[:4]]),
    }

    def f(x):
        for name in names:
            x = steps[name](x)
        return x

    pattern = pb.sparse_jacobian(f).pattern(X).csr.toarray()
    np.testing.assert_array_equal(pattern, dense(f, 0, (X,)) != 0)
