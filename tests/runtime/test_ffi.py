"""Native kernels as XLA calls them: what fits, what is refused, and where in a computation they may stand."""

from __future__ import annotations

import functools
import resource
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import pybridge as pb
from pybridge.runtime import native

RNG = np.random.default_rng(20261121)
X = RNG.uniform(-1, 1, (2, 3)).astype(np.float32)
Y = RNG.uniform(-1, 1, (2, 3)).astype(np.float32)


def wave(x, y):
    return jnp.sin(x) * y + x


def spacious(x):
    """Has a value that a kernel keeps in its workspace."""
    return jnp.exp(x) @ jnp.sin(x).T


def natively(f, **options):
    return pb.bridge(f, execute="julia", **options)


def targets(f, *args) -> set[str]:
    """The kernels that a jitted function calls."""
    text = jax.jit(f).lower(*args).as_text()
    return {word.split("(")[0] for word in text.split("@") if word.startswith("pybridge_")}


def caller(program: pb.Program, results=None):
    """A call of the Program's kernel by hand, with results of any types."""
    made = native.kernel(program)
    if results is None:
        results = [
            jax.ShapeDtypeStruct(t.shape, t.dtype.replace("f32", "float32")) for t in program.output_types
        ]
    return jax.ffi.ffi_call(made.target, results)


def test_the_kernel_runs_eager_and_jitted():
    g = natively(wave)
    expected = wave(X, Y)
    assert targets(g, X, Y)
    np.testing.assert_allclose(g(X, Y), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(g)(X, Y), expected, rtol=1e-6)


STRUCT = jax.ShapeDtypeStruct
WRONG = {
    "dtype": ([X, Y.astype(np.int32)], None, r"operand 1 must be f32\[2,3\], got i32\[2,3\]"),
    "rank": ([X.ravel(), Y], None, r"operand 0 must be f32\[2,3\], got f32\[6\]"),
    "size": ([X, Y[:, :2]], None, r"operand 1 must be f32\[2,3\], got f32\[2,2\]"),
    "too few": ([X], None, "it has 2 operands but was called with 1"),
    "too many": ([X, Y, X], None, "it has 2 operands but was called with 3"),
    "result": ([X, Y], [STRUCT((3, 2), np.float32)], r"result 0 must be f32\[2,3\], got f32\[3,2\]"),
    "result dtype": ([X, Y], [STRUCT((2, 3), np.int8)], r"result 0 must be f32\[2,3\], got i8\[2,3\]"),
    "no result": ([X, Y], [], "it has 1 results but was called with 0"),
}


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_never_reaches_the_kernel(name, jitted):
    operands, results, message = WRONG[name]
    program = pb.trace(lambda x, y: x * y + x)(X, Y)
    wrong = caller(program, results)
    if results == []:  # XLA removes a call without results
        wrong = jax.ffi.ffi_call(native.kernel(program).target, [], has_side_effect=True)
    with pytest.raises(Exception, match=f"(?s)INVALID_ARGUMENT.*pybridge kernel.*{message}"):
        jax.block_until_ready((jax.jit(wrong) if jitted else wrong)(*operands))
        jax.effects_barrier()
    right = caller(program)
    np.testing.assert_allclose((jax.jit(right) if jitted else right)(X, Y)[0], X * Y + X, rtol=1e-6)


def test_workspaces_count_as_memory_of_compiled_code():
    x = RNG.uniform(-1, 1, (64, 256)).astype(np.float32)
    small, large = X, x

    def both(x, y):
        return natively(spacious)(x), natively(spacious)(y)

    compiled = jax.jit(both).lower(small, large).compile()
    workspace = native.kernel(pb.trace(spacious)(large)).workspace
    assert workspace > native.kernel(pb.trace(spacious)(small)).workspace > 0
    planned = compiled.memory_analysis()
    assert native.memory(compiled) == planned.output_size_in_bytes + planned.temp_size_in_bytes + workspace
    assert native.memory(jax.jit(jnp.sin).lower(large).compile()) == large.nbytes


def test_large_workspaces_stay_from_call_to_call():
    """Memory that is new to the process is mapped page by page when a kernel first touches it."""
    x = RNG.uniform(-1, 1, (1000, 500)).astype(np.float32)

    def squares(x):
        return jnp.sum(spacious(x) ** 2, axis=1)

    assert native.kernel(pb.trace(squares)(x)).workspace > 6_000_000
    g, x = jax.jit(natively(squares)), jax.device_put(x)
    jax.block_until_ready(g(x))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        jax.block_until_ready(g(x))
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert faults < 20 * 6_000_000 / 4096 / 10


def test_kernels_that_run_at_the_same_time_have_workspaces_of_their_own():
    g = jax.jit(natively(spacious))
    x = [RNG.uniform(-1, 1, (40, 50 + n)).astype(np.float32) for n in range(4)]
    expected = [np.exp(a) @ np.sin(a).T for a in x]
    for a in x:
        g(a)

    def repeatedly(k):
        for _ in range(200):
            np.testing.assert_allclose(g(x[k]), expected[k], rtol=1e-4, atol=1e-3)

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(repeatedly, k) for k in range(4)]:
            done.result()


# Shapes


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 8, (2, 1, 2, 3, 1, 2, 1, 2)], ids=str)
def test_shapes(shape):
    x, y = (RNG.uniform(-1, 1, shape).astype(np.float32) for _ in range(2))
    assert targets(natively(wave), x, y)
    np.testing.assert_allclose(natively(wave)(x, y), wave(x, y), rtol=1e-6)


def test_one_array_twice():
    x = jnp.asarray(X)
    np.testing.assert_allclose(natively(wave)(x, x), wave(x, x), rtol=1e-6)
    np.testing.assert_allclose(natively(lambda x, y: (y, x))(x, x)[0], x)


def test_a_result_that_is_an_argument_or_a_constant():
    a, b, c = natively(lambda x: (x, x, jnp.float32(3)))(X)
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(b, X)
    assert c == 3


def test_operands_and_large_constants_are_unchanged():
    table = RNG.uniform(-1, 1, (40, 40)).astype(np.float32)
    copy, x = table.copy(), RNG.uniform(-1, 1, (40, 40)).astype(np.float32)
    f = natively(lambda x: jnp.exp(x) * table + table)
    given = jnp.asarray(x)
    for _ in range(2):
        np.testing.assert_allclose(f(given), np.exp(x) * copy + copy, rtol=1e-5)
    np.testing.assert_array_equal(table, copy)
    np.testing.assert_array_equal(given, x)


def test_a_donated_argument():
    step = jax.jit(natively(wave), donate_argnums=0)
    x = jnp.asarray(X)
    for _ in range(3):
        x = step(x, Y)
    np.testing.assert_allclose(x, functools.reduce(lambda x, _: wave(x, Y), range(3), X), rtol=1e-5)


def test_a_transposed_operand_arrives_row_major():
    f = jax.jit(lambda x: natively(wave)(x.T, x.T * 2))
    np.testing.assert_allclose(f(X), wave(X.T, X.T * 2), rtol=1e-6)


# Inside JAX's control flow and transformations

NESTINGS = {
    "scan": lambda b: lax.scan(lambda c, y: (b(wave)(c, y), c.sum()), X[0], Y),
    "while": lambda b: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, b(wave)(c[1], Y)), (0, X)),
    "cond": lambda b: [lax.cond(k > 0, b(wave), b(jnp.multiply), X, Y) for k in (0, 1)],
    "vmap": lambda b: jax.vmap(b(lambda x: jnp.exp(x).sum()))(X),
    "grad": lambda b: jax.grad(lambda x: b(wave)(x, Y).sum())(X),
    "hessian": lambda b: jax.hessian(lambda x: b(lambda x: jnp.sum(jnp.sin(x) * x))(x))(X[0]),
}


@pytest.mark.parametrize("name", NESTINGS)
def test_inside(name):
    nesting = NESTINGS[name]
    assert targets(lambda: nesting(natively))
    for found in (nesting(natively), jax.jit(lambda: nesting(natively))()):
        jax.tree.map(
            functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), found, nesting(lambda f: f)
        )


def test_a_while_loop_of_nothing_but_a_kernel():
    """XLA, left to itself, never ends a loop whose body is a call with the results in their order."""

    def step(state):
        n, x = state
        return n + 1, jnp.cos(x) * 2

    def loop(step):
        return jax.jit(lambda x: lax.while_loop(lambda s: s[0] < 3, step, (0, x))[1])

    x = jnp.arange(3.0)
    found, expected = loop(pb.bridge(step, execute="julia"))(x), loop(step)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_compiled_ahead_of_time():
    compiled = jax.jit(natively(wave)).lower(X, Y).compile()
    np.testing.assert_allclose(compiled(X, Y), wave(X, Y), rtol=1e-6)


def test_a_kernel_is_compiled_once_a_content():
    p = pb.trace(lambda x: x * 5 + 1)(X)
    q = pb.trace(lambda other: other * 5 + 1)(X)
    assert native.kernel(p) is native.kernel(q)
    assert native.kernel(pb.trace(lambda x: x * 5 + 2)(X)) != native.kernel(p)


def test_a_gibibyte():
    n = 1 << 28
    x = jnp.arange(n, dtype=jnp.uint32)
    y = jax.jit(natively(lambda x: x + jnp.uint32(7)))(x)
    places = np.array([0, 1, n // 2, n - 2, n - 1])
    np.testing.assert_array_equal(np.asarray(y[places]), places + 7)
    assert int(y[n // 3]) == n // 3 + 7
