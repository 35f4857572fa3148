"""`pb.bridge(f)` is `f` to all of JAX: every transformation and nesting of them, eager and under jit."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from casekit import computed
from covering import some
from jax import lax

import pybridge as pb

RNG = np.random.default_rng(20260101)
X = RNG.uniform(-1, 1, (3, 4))
A = RNG.uniform(0.5, 2, (4,))
V = RNG.uniform(-1, 1, (3, 4))


def wave(x, a):
    return jnp.sin(a * x) ** 2 / a


def row(x, a):
    """A scalar of a row."""
    return jnp.sum(jnp.tanh(x * a) * x)


def total(f):
    return lambda *args: jnp.sum(f(*args) * jnp.asarray(V))


def with_aux(x, a):
    y = wave(x, a)
    return jnp.sum(y), {"y": y, "n": jnp.argmax(y)}


# Each takes `bridge` (pb.bridge or the identity) and returns what is to agree.
NESTINGS = {
    "value": lambda b: b(wave)(X, A),
    "grad": lambda b: jax.grad(total(b(wave)), argnums=(0, 1))(X, A),
    "value_and_grad": lambda b: jax.value_and_grad(b(with_aux), argnums=1, has_aux=True)(X, A),
    "jvp": lambda b: jax.jvp(b(wave), (X, A), (V, A)),
    "vjp": lambda b: jax.vjp(b(wave), X, A)[1](jnp.asarray(V)),
    "vjp, aux": lambda b: jax.vjp(b(with_aux), X, A, has_aux=True)[1](jnp.float64(2)),
    "linearize": lambda b: jax.linearize(b(wave), X, A)[1](V, A),
    "linear_transpose": lambda b: jax.linear_transpose(b(lambda x: jnp.cumsum(3 * x, 1)), X)(jnp.asarray(V)),
    "jacfwd": lambda b: jax.jacfwd(b(wave), argnums=(0, 1))(X, A),
    "jacrev": lambda b: jax.jacrev(b(wave), argnums=(0, 1))(X, A),
    "hessian": lambda b: jax.hessian(b(row), argnums=(0, 1))(X[0], A),
    "jacrev of jacfwd": lambda b: jax.jacrev(jax.jacfwd(b(row)))(X[0], A),
    "jacrev of jacrev": lambda b: jax.jacrev(jax.jacrev(b(row)), argnums=1)(X[0], A),
    "third order": lambda b: jax.grad(jax.grad(jax.grad(b(lambda x: jnp.sin(x) * x**2))))(0.7),
    "vmap": lambda b: jax.vmap(b(row), in_axes=(0, None))(X, A),
    "vmap, axes": lambda b: jax.vmap(b(wave), in_axes=(1, 0), out_axes=1)(X, A),
    "vmap of vmap": lambda b: jax.vmap(jax.vmap(b(wave), (0, None)), (None, 0))(X[0], A),
    "vmap of grad": lambda b: jax.vmap(jax.grad(b(row), argnums=(0, 1)), in_axes=(0, None))(X, A),
    "grad of vmap": lambda b: jax.grad(lambda x, a: jax.vmap(b(row), (0, None))(x, a).sum(), (0, 1))(X, A),
    "vmap of hessian": lambda b: jax.vmap(jax.hessian(b(row)), in_axes=(0, None))(X, A),
    "vmap of vjp of vmap": lambda b: jax.vmap(jax.vjp(jax.vmap(b(row), (0, None)), X, A)[1])(
        jnp.asarray(V.T)
    ),
    "jit inside": lambda b: jax.grad(lambda x: jnp.sum(jax.jit(b(wave))(x, A)))(X),
    "scan over": lambda b: jax.grad(
        lambda a: lax.scan(lambda c, x: (b(lambda c, x: jnp.tanh(c * a + x))(c, x), c), jnp.asarray(A), X)[
            0
        ].sum()
    )(A),
    "while over": lambda b: jax.jvp(
        lambda x: lax.while_loop(lambda c: jnp.sum(c) > -3.0, lambda c: b(lambda c: c - jnp.exp(-c))(c), x),
        (X,),
        (V,),
    ),
    "fori over": lambda b: jax.grad(lambda x: lax.fori_loop(0, 4, lambda i, c: b(jnp.sin)(c) * 1.1, x).sum())(
        X
    ),
    "cond over": lambda b: jax.grad(lambda x: lax.cond(x.sum() > 0, b(jnp.sin), b(jnp.cos), x).sum())(X),
    "map over": lambda b: jax.grad(lambda a: lax.map(lambda x: b(row)(x, a), X).sum())(A),
    "checkpoint over": lambda b: jax.grad(jax.checkpoint(total(b(wave))), argnums=(0, 1))(X, A),
    "checkpoint, hessian": lambda b: jax.hessian(jax.checkpoint(b(row)))(X[0], A),
    "inside": lambda b: jax.grad(lambda x: b(lambda x: jnp.exp(b(jnp.sin)(x)).sum())(x))(X),
    "inside, hessian": lambda b: jax.hessian(b(lambda x: jnp.exp(b(jnp.sin)(x)).sum()))(X[0]),
    "closure": lambda b: jax.grad(lambda a: b(lambda x: jnp.sin(a * x).sum())(X))(A),
    "closure, hessian": lambda b: jax.hessian(lambda a: b(lambda x: jnp.sin(a * x).sum())(X[0]))(A),
    "closure under vmap": lambda b: jax.vmap(lambda a: b(lambda x: jnp.sin(a * x).sum())(X))(A),
    "closure under scan": lambda b: lax.scan(
        lambda c, x: (c, jax.grad(b(lambda v: (c * v * x).sum()))(x)), A, X
    )[1],
    "perturbations do not mix": lambda b: jax.grad(lambda x: x * jax.grad(b(lambda y: x * y))(1.0))(2.0),
}


EAGER = some(NESTINGS, len(NESTINGS) // 2)


@pytest.mark.parametrize("name", NESTINGS)
def test_nested_with(name, x64):
    nesting = NESTINGS[name]
    found, expected = computed([lambda: nesting(pb.bridge), lambda: nesting(lambda f: f)], [()] * 2)
    assert_agree(found, expected, f"{name}, jit")
    if name in EAGER:
        assert_agree(nesting(pb.bridge), expected, name)


@pytest.mark.parametrize(
    "name", ["grad", "hessian", "vmap of grad", "scan over", "value_and_grad", "closure"]
)
def test_nested_in_single_precision(name):
    if name == "value_and_grad":
        x, a = X.astype(np.float32), A.astype(np.float32)
        expected = jax.value_and_grad(with_aux, has_aux=True)(x, a)
        assert_agree(jax.value_and_grad(pb.bridge(with_aux), has_aux=True)(x, a), expected, name)
        return
    with jax.enable_x64(False):
        expected = NESTINGS[name](lambda f: f)
        assert_agree(NESTINGS[name](pb.bridge), expected, name)


@pytest.mark.parametrize("engine", ["transpose", "jax"])
@pytest.mark.parametrize("name", ["grad", "hessian", "vmap of grad"])
def test_every_engine_nests(engine, name, x64):
    assert_agree(
        NESTINGS[name](functools.partial(pb.bridge, engine=engine)), NESTINGS[name](lambda f: f), name
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64"])
def test_dtypes(dtype):
    x = jnp.asarray(X + (1j * V if dtype == "complex64" else 0)).astype(dtype)
    expected, pull = jax.vjp(jnp.tanh, x)
    found, pulled = jax.vjp(pb.bridge(jnp.tanh), x)
    assert_agree(found, expected, "value")
    assert_agree(pulled(x), pull(x), "vjp")
    assert_agree(jax.jvp(pb.bridge(jnp.tanh), (x,), (x,)), jax.jvp(jnp.tanh, (x,), (x,)), "jvp")


def test_complex_gradients_follow_jax():
    def f(z):
        return jnp.abs(z * jnp.exp(z)) ** 2 + jnp.real(z**3)

    z = np.complex64(0.3 - 0.7j)
    assert_agree(jax.grad(pb.bridge(f))(z), jax.grad(f)(z), "real-valued")
    holomorphic = jax.grad(pb.bridge(lambda z: jnp.sin(z) * z), holomorphic=True)
    assert_agree(holomorphic(z), jax.grad(lambda z: jnp.sin(z) * z, holomorphic=True)(z), "holomorphic")


# Arguments and results


def test_pytrees_with_none_and_keywords(x64):
    def f(tree, *, scale=None, shift):
        x = tree["x"] * (1 if scale is None else scale)
        return {"y": [x + shift, None], "z": (jnp.sum(x), tree["n"] + 1)}

    tree = {"x": X, "none": None, "n": np.int32(3)}
    g = pb.bridge(f)
    assert jax.tree.structure(g(tree, shift=2.0)) == jax.tree.structure(f(tree, shift=2.0))
    assert_agree(g(tree, shift=2.0, scale=A), f(tree, shift=2.0, scale=A), "keywords")

    def loss(f):
        return lambda x, scale: f({"x": x, "n": 1}, scale=scale, shift=0.5)["z"][0]

    assert_agree(jax.grad(loss(g), (0, 1))(X, A), jax.grad(loss(f), (0, 1))(X, A), "grad")


def test_static_arguments_are_told_apart(x64):
    @functools.partial(pb.bridge, static_argnums=(1, 2))
    def f(x, power, name):
        assert isinstance(power, int) and isinstance(name, str)
        return getattr(jnp, name)(x) ** power

    for power, name in [(2, "sin"), (3, "sin"), (2, "cos")]:
        expected = jax.grad(lambda x, p=power, n=name: getattr(jnp, n)(x) ** p)(0.3)
        assert_agree(jax.grad(f)(0.3, power, name), expected, f"{name}^{power}")


def test_integer_arguments_have_no_derivative():
    def f(x, n, flag):
        return jnp.where(flag, x * n, x), n + 1

    g = pb.bridge(f)
    n, flag = jnp.int32(3), jnp.asarray(True)
    (y, m), pull = jax.vjp(g, 2.0, n, flag)
    assert (y, m) == (6.0, 4)
    zero = np.zeros((), jax.dtypes.float0)
    dx, dn, dflag = pull((jnp.float32(1), zero))
    assert dx == 3 and dn.dtype == dflag.dtype == jax.dtypes.float0
    _, tangent = jax.jvp(g, (2.0, n, flag), (1.0, zero, zero))
    assert tangent[0] == 3 and tangent[1].dtype == jax.dtypes.float0
    assert jax.grad(lambda x: g(x, n, flag)[0])(2.0) == 3
    with pytest.raises(TypeError, match="int32"):
        jax.grad(lambda x, n: g(x, n, flag)[0], argnums=1)(2.0, n)
    assert jax.grad(lambda n: g(2.0, n, flag)[0], allow_int=True)(n).dtype == jax.dtypes.float0


@pytest.mark.parametrize("execute", ["julia", "xla"])
def test_a_result_may_be_the_cotangent_of_an_integer(execute):
    def f(n, x):
        return jax.grad(lambda n, x: n * x * x, argnums=(0, 1), allow_int=True)(n, x)

    for g in (pb.bridge(f, execute=execute), jax.jit(pb.bridge(f, execute=execute))):
        dn, dx = g(3, 2.0)
        assert (dn.dtype, dn.shape, dx) == (jax.dtypes.float0, (), 12.0)
    with pytest.raises(pb.UnsupportedPrimitive, match="float0"):
        pb.trace(f)(3, 2.0)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("x", [2.0, 3, True, 2j, np.float16(2), np.int8(3), jnp.float32(1)], ids=repr)
def test_weak_types_are_those_of_jit(x, wide):
    def f(x):
        return x * 2, x + jnp.float32(1), jnp.sin(x) if not isinstance(x, bool) else x, x

    with jax.enable_x64(wide):
        for y, z in zip(pb.bridge(f)(x), jax.jit(f)(x), strict=True):
            assert (y.dtype, y.weak_type) == (z.dtype, z.weak_type)


def test_weak_types_go_through_derivatives():
    y = jax.grad(pb.bridge(lambda x: x**2))(2.0)
    z = jax.grad(jax.jit(lambda x: x**2))(2.0)
    assert (y, y.dtype, y.weak_type) == (z, z.dtype, z.weak_type)


def test_decorators_and_methods(x64):
    @pb.bridge
    def square(x):
        """The square."""
        return x * x

    @pb.bridge(engine="jax")
    def cube(x):
        return x**3

    class Model:
        def __init__(self, w):
            self.w = w

        def value(self, x):
            return pb.bridge(lambda w, x: jnp.sum(w * x**2))(self.w, x)

        bridged = pb.bridge(value, static_argnums=0)

    assert square.__doc__ == "The square." and square.__name__ == "square"
    assert jax.grad(square)(3.0) == 6 and jax.grad(cube)(2.0) == 12
    model = Model(jnp.asarray(A))
    assert_agree(jax.grad(model.value)(A), 2 * A * A, "a method that bridges")
    assert_agree(jax.grad(model.bridged)(A), 2 * A * A, "a bridged method")


def test_executed_in_julia(x64):
    g = pb.bridge(wave, execute="julia")
    assert_agree(g(X, A), wave(X, A), "value")
    assert_agree(jax.jit(g)(X, A), wave(X, A), "jit")
    expected = jax.grad(total(wave), (0, 1))(X, A)
    assert_agree(jax.grad(total(g), (0, 1))(X, A), expected, "grad")
    assert_agree(jax.jit(jax.grad(total(g), (0, 1)))(X, A), expected, "grad, jit")
    assert_agree(jax.vmap(g, (0, None))(X, A), wave(X, A), "vmap")


def test_a_bound_lets_reverse_mode_through_a_while_loop(x64):
    def newton(x):
        return lax.while_loop(lambda s: jnp.abs(s * s - x) > 1e-9, lambda s: (s + x / s) / 2, x)

    with pytest.raises(pb.UnsupportedPrimitive, match="while_bound"):
        jax.grad(pb.bridge(newton, execute="xla"))(2.0)
    g = pb.bridge(newton, execute="xla", while_bound=20)
    assert_agree(jax.grad(g)(2.0), np.asarray(0.5 / np.sqrt(2)), "grad", 1e-8)
    assert_agree(jax.jvp(g, (2.0,), (1.0,))[1], np.asarray(0.5 / np.sqrt(2)), "jvp", 1e-8)
    counted = pb.bridge(
        lambda x: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, jnp.sin(s[1])), (0, x))[1]
    )
    expected = jax.grad(lambda x: lax.fori_loop(0, 5, lambda i, s: jnp.sin(s), x))(0.5)
    assert_agree(jax.grad(counted)(0.5), expected, "a known count needs no bound")


def test_it_is_traced_once_for_each_signature():
    count = 0

    @pb.bridge
    def f(x):
        nonlocal count
        count += 1
        return x * 2

    for x in (1.0, 2.0, np.float32(1), np.float32(2), [1.0], np.ones(2, np.float32), np.zeros(2, np.float32)):
        f(jax.tree.map(jnp.asarray, x))
    assert count == 4
    jax.vmap(f)(np.ones((3, 2), np.float32))
    assert count == 4


def test_a_custom_rule_s_cotangent_of_another_dtype_is_cast():
    """JAX passes it on as it is, where the operations before it allow."""

    @jax.custom_vjp
    def total32(x):
        return x.astype(jnp.float32).sum()

    total32.defvjp(
        lambda x: (total32(x), x.shape),
        lambda shape, ct: (jnp.full(shape, ct, jnp.float32),),
    )
    x = jnp.ones((7, 4), jnp.bfloat16)
    gathered = jax.grad(pb.bridge(lambda x: total32(x[np.array([1, 2, 1])])))(x)
    expected = np.zeros((7, 4), jnp.bfloat16)
    expected[1], expected[2] = 2, 1
    assert_agree(gathered, expected, "gather")
    assert_agree(jax.grad(pb.bridge(lambda x: total32(3 * x)))(x), np.full_like(x, 3), "product")


@pytest.mark.parametrize("execute", ["xla", "julia"])
def test_where_jit_is_disabled(execute, x64):
    g = pb.bridge(wave, execute=execute)
    with jax.disable_jit():
        assert_agree(g(X, A), wave(X, A), "value")
        assert_agree(jax.grad(total(g), (0, 1))(X, A), jax.grad(total(wave), (0, 1))(X, A), "grad")
        assert_agree(jax.vmap(jax.jit(g), (0, None))(X, A), wave(X, A), "vmap")
        trips = pb.bridge(lambda x: lax.while_loop(lambda s: s < 40, lambda s: s * s, x), execute=execute)
        assert_agree(trips(2.0), np.asarray(256.0), "while")
