"""Which arguments are static: for `bridge`, `trace`, `compare` and `export` those that are for `jax.jit`."""

from __future__ import annotations

import functools
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree

import pybridge as pb
from pybridge.frontend.static_arguments import static_arguments

X = np.linspace(0.5, 1.5, 3, dtype=np.float32)


# Functions of every kind of parameter, all of which arguments can be numbers.


def plain(x, n=2, m=3):
    return locals()


def keyword(x, n, *, mode=1):
    return locals()


def only_by_position(x, n, /, m=3):
    return locals()


def several(x, n, *rest, mode=1):
    return locals()


def anything(*rest, **named):
    return locals()


def named(x, **named):
    return locals()


SIGNATURES = [
    plain,
    keyword,
    only_by_position,
    several,
    anything,
    named,
    functools.partial(plain, n=5),
    functools.partial(keyword, 1.0),
]
POSITIONS = [0, 1, (1, 2), (0, 2), (), None]
NAMES = ["n", "mode", ("x", "m"), ("mode", "n"), (), None]
CALLS = [
    ((1.0,), {}),
    ((1.0, 2), {}),
    ((1.0, 2, 3), {}),
    ((1.0, 2, 3, 4), {}),
    ((1.0,), {"n": 2}),
    ((1.0, 2), {"mode": 3}),
    ((1.0, 2), {"m": 3}),
    ((1.0,), {"n": 2, "mode": 3}),
    ((), {"x": 1.0, "n": 2, "m": 3}),
]


@pytest.fixture
def whole_tracebacks():
    """To cut a traceback takes JAX longer than to trace a small function."""
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    yield
    jax.config.update("jax_traceback_filtering", before)


class Traced(Exception):
    """Which of the values that a function is called with are traced."""


def traced_arguments(transformation, f, args, kwargs, **options) -> tuple[bool, ...] | None:
    """None where the options or the call are refused."""

    def watched(*args, **kwargs):
        raise Traced(*(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(f(*args, **kwargs))))

    try:
        transformation(functools.update_wrapper(watched, f), **options)(*args, **kwargs)
    except Traced as seen:
        return seen.args
    except (ValueError, TypeError, pb.PyBridgeError):
        return None
    raise AssertionError("it is not called")


@pytest.mark.parametrize("f", SIGNATURES, ids=lambda f: getattr(f, "__name__", "partial"))
def test_the_same_arguments_are_static_as_for_jit(f, whole_tracebacks):
    bridge = functools.partial(pb.bridge, engine="jax")
    compared = 0
    for argnums, argnames, (args, kwargs) in itertools.product(POSITIONS, NAMES, CALLS):
        options = {"static_argnums": argnums, "static_argnames": argnames}
        expected = traced_arguments(jax.jit, f, args, kwargs, **options)
        for transformation in (bridge, pb.trace):
            found = traced_arguments(transformation, f, args, kwargs, **options)
            assert found == expected, (transformation, options, args, kwargs)
        compared += expected is not None
    assert compared > 10


def test_negative_positions_count_from_the_last_positional_parameter(whole_tracebacks):
    for f, count in ((plain, 3), (keyword, 2), (only_by_position, 3)):
        for n, (args, kwargs) in itertools.product(range(count), CALLS):
            expected = traced_arguments(jax.jit, f, args, kwargs, static_argnums=n)
            for transformation in (pb.bridge, pb.trace):
                found = traced_arguments(transformation, f, args, kwargs, static_argnums=n - count)
                assert found == expected, (f.__name__, n - count, args, kwargs)


@pytest.mark.parametrize("position", [-1, -2, (0, -1)])
def test_negative_positions_count_from_the_end_of_a_call_with_any_number(position, whole_tracebacks):
    for f in (several, anything):
        for args in ((1.0, 2), (1.0, 2, 3), (1.0, 2, 3, 4)):
            expected = traced_arguments(jax.jit, f, args, {}, static_argnums=position)
            for transformation in (pb.bridge, pb.trace):
                assert traced_arguments(transformation, f, args, {}, static_argnums=position) == expected


def power(x, n=2, *, scale=1, mode="sum"):
    assert isinstance(n, int) and isinstance(mode, str)
    return getattr(jnp, mode)(scale * x**n)


OPTIONS = [
    {"static_argnums": (1,), "static_argnames": ("n", "mode")},
    {"static_argnames": ["n", "mode"]},
    {"static_argnums": {-1}, "static_argnames": {"mode", "n"}},
    {"static_argnums": np.int64(1), "static_argnames": (name for name in ("mode", "n"))},
]


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_derivatives_of_what_is_not_static(options):
    f = pb.bridge(power, **options)
    for args, kwargs in [((X,), {}), ((X, 3), {"mode": "prod"}), ((X,), {"n": 4, "mode": "max"})]:
        expected = jax.grad(lambda x, a=args, k=kwargs: power(x, *a[1:], **k))(X)
        assert_agree(jax.grad(f)(*args, **kwargs), expected, "grad")
        assert_agree(jax.jit(lambda x, a=args, k=kwargs: jax.grad(f)(x, *a[1:], **k))(X), expected, "jit")
    along = jax.grad(lambda s: f(X, 3, scale=s))(2.0)
    assert_agree(along, jax.grad(lambda s: power(X, 3, scale=s))(2.0), "of a keyword that is not static")


def test_defaults_stay_python_values_and_no_argument():
    program = pb.trace(power, static_argnames=("n", "mode"))(X)
    assert len(program.inputs) == 1
    assert_agree(program.call(X), power(X), "call")
    with_scale = pb.trace(power, static_argnames=("n", "mode"))(X, n=3, scale=2.0)
    assert_agree(with_scale.call(X, scale=2.0), power(X, 3, scale=2.0), "without the static ones")
    with pytest.raises(pb.ArgumentError, match="structure"):
        with_scale.call(X, n=3, scale=2.0)


# Values


def test_equal_values_of_different_kinds_are_told_apart():
    @pb.bridge(static_argnums=1, engine="jax")
    def f(x, n):
        return jnp.copysign(x, jnp.float32(n[1])) if isinstance(n, tuple) else x ** jnp.asarray(n)

    kinds = [(v, f(np.int32(3), v).dtype) for v in (2, 2.0, True, 1, 1.0, 2)]
    assert [str(t) for _, t in kinds] == ["int32", "float32", "int32", "int32", "float32", "int32"]
    assert [float(f(np.float32(3), ("sign", zero))) for zero in (0.0, -0.0, 0.0)] == [3, -3, 3]
    length = pb.bridge(lambda x, n: x + len(str(n)), static_argnums=1, engine="jax")
    assert [length(0, n) for n in (1, True, 1.0, "1", (1,), (True,), 1)] == [1, 4, 3, 1, 4, 7, 1]


def test_it_is_traced_once_for_each_static_value():
    count = 0

    @pb.bridge(static_argnames="n", engine="jax")
    def f(x, n):
        nonlocal count
        count += 1
        return x * len(str(n))

    for n in (1, "one", float("nan"), (1, ("two", float("nan"))), jnp.sin, None, 1, "one", None):
        f(1.0, n)
    for _ in range(3):
        f(2.0, float("nan"))
        f(2.0, (1, ("two", float("nan"))))
    assert count == 6


class Unhashable:
    __hash__ = None


UNHASHABLE = [[1], {"a": 1}, np.ones(2), jnp.ones(2), Unhashable(), (1, [2])]


@pytest.mark.parametrize("value", UNHASHABLE, ids=lambda v: type(v).__name__)
def test_unhashable_values_are_refused(value):
    words = rf"argument 1 .*static_argnums.*hashable.*{type(value).__name__}"
    for transformation in (pb.bridge, pb.trace):
        with pytest.raises(pb.ArgumentError, match=words):
            transformation(power, static_argnums=1)(X, value)
        with pytest.raises(pb.ArgumentError, match=words.replace(" 1", " n")):
            transformation(power, static_argnames="n")(X, n=value)


def test_a_traced_value_is_refused_by_what_to_do():
    f = pb.bridge(power, static_argnums=1)
    for transformed in (jax.jit(f), jax.vmap(f), jax.grad(f, argnums=1)):
        with pytest.raises(pb.ArgumentError, match=r"argument 1 is static.*traces.*transformation around"):
            transformed(X, X)
    assert_agree(jax.jit(f, static_argnums=1)(X, 3), power(X, 3), "static in both")


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: functools.reduce(lambda y, _: jnp.sin(y), range(n), x),
        lambda x, n: x if n else -x,
        lambda x, n: x * float(n),
        lambda x, n: jnp.zeros(n) + x[0],
        lambda x, n: x.repeat(2).reshape(n, -1),
        lambda x, n: x[:n],
    ],
    ids=["range", "if", "float", "zeros", "reshape", "slice"],
)
def test_a_number_that_had_to_be_known_says_how(f, request):
    if request.node.callspec.id == "slice" and jax.__version_info__ < (0, 11):
        pytest.skip("this JAX does not say of a slice which argument it depends on")
    for transformation in (pb.bridge, pb.trace):
        with pytest.raises(pb.TracingError, match=r"static_argnums or .*: static_argnames='n'$"):
            transformation(f)(X, 2)
    assert_agree(pb.bridge(f, static_argnames="n")(X, n=2), f(X, 2), "named")


def test_what_is_no_array_says_where_it_is():
    f = pb.bridge(lambda x, *, tree: x)
    with pytest.raises(pb.ArgumentError, match=re.escape("kwargs['tree'][1]['mode'], of type str")):
        f(X, tree=[X, {"mode": "sum"}])


# Options that are refused


@pytest.mark.parametrize(
    "f, options, words",
    [
        (power, {"static_argnums": 2}, ["static_argnums", "2", "x, n"]),
        (power, {"static_argnums": (1, -3)}, ["static_argnums", "-3", "x, n"]),
        (lambda: 1.0, {"static_argnums": 0}, ["static_argnums", "0", "none"]),
        (power, {"static_argnames": "N"}, ["static_argnames", "'N'", "x, n, scale, mode"]),
        (power, {"static_argnames": ("n", "power")}, ["static_argnames", "'power'"]),
        (only_by_position, {"static_argnames": "n"}, ["static_argnames", "'n'", "static_argnums"]),
        (several, {"static_argnames": "rest"}, ["static_argnames", "'rest'", "static_argnums"]),
        (power, {"static_argnums": 1.0}, ["static_argnums", "1.0"]),
        (power, {"static_argnums": "n"}, ["static_argnums", "'n'"]),
        (power, {"static_argnums": True}, ["static_argnums", "True"]),
        (power, {"static_argnums": (0, "n")}, ["static_argnums", "'n'"]),
        (power, {"static_argnames": 1}, ["static_argnames", "1"]),
        (power, {"static_argnames": ("n", 1)}, ["static_argnames", "1"]),
    ],
)
def test_options_that_are_refused(f, options, words):
    calls = (pb.bridge, pb.trace, lambda f, **o: pb.export(f, **o)(X), lambda f, **o: pb.compare(f, X, **o))
    for call in calls:
        with pytest.raises(pb.UnknownOption) as problem:
            call(f, **options)
        assert all(word in str(problem.value) for word in words), str(problem.value)


def test_a_function_without_a_signature():
    assert static_arguments(max, (1, -1)).positions == (1, -1)
    with pytest.raises(ValueError, match="signature"):
        __import__("inspect").signature(max)
    assert pb.bridge(max, static_argnums=(0, -1), engine="jax")(3, 4) == 4


# What else takes them


def test_a_bridged_function_brings_its_static_arguments():
    f = pb.bridge(power, static_argnames=("n", "mode"))
    program = pb.trace(f)(X, 3, mode="prod")
    assert len(program.inputs) == 1
    assert_agree(program.call(X), power(X, 3, mode="prod"), "trace")
    exported = pb.export(f, ["cpu"])(X, 3, mode="prod")
    assert_agree(exported.call(X), power(X, 3, mode="prod"), "export")
    assert pb.compare(f, X, 3, engines=["transpose"], repeats=0).agrees()
    assert_agree(pb.bridge(f, engine="jax")(X, 3, mode="prod"), power(X, 3, mode="prod"), "bridged twice")
    with pytest.raises(pb.TracingError, match="str"):
        pb.trace(f, static_argnums=1)(X, 3, mode="prod")


def repeated(x, n, power=2):
    for _ in range(n):
        x = jnp.sin(x)
    return jnp.sum(x**power)


@pytest.mark.parametrize(
    "options",
    [
        {"static_argnums": [1]},
        {"static_argnums": -2, "static_argnames": ("n", "power")},
        {"static_argnames": "n"},
    ],
)
def test_a_jitted_function_brings_its_static_arguments(options):
    if options.get("static_argnums") == -2 and jax.__version_info__ < (0, 12):
        pytest.skip("before 0.12 JAX counts negative positions from the last argument that is given")
    f = functools.partial(jax.jit, **options)(repeated)
    wanted = jax.grad(repeated)(X, 3)
    assert_agree(jax.grad(pb.bridge(f))(X, 3), wanted, "gradient", 1e-6)
    assert_agree(jax.grad(pb.bridge(f))(X, n=3), wanted, "gradient by keyword", 1e-6)
    assert pb.trace(f)(X, 3) == pb.trace(repeated, **options)(X, 3)
    if "static_argnames" in options:
        assert static_arguments(f).names >= {"n"}


def test_a_jitted_method_brings_its_static_arguments():
    class Model:
        @functools.partial(jax.jit, static_argnums=(0, 2))
        def loss(self, x, n):
            return repeated(x, n)

    assert_agree(jax.grad(pb.bridge(Model().loss))(X, 3), jax.grad(repeated)(X, 3), "gradient", 1e-6)


@pytest.mark.parametrize("f", [repeated, lambda x, n: x if n > 2 else -x, lambda x, n: x[: int(n)]])
def test_a_number_that_had_to_be_concrete_says_what_to_name_it(f):
    with pytest.raises(pb.TracingError, match="static_argnums or static_argnames"):
        pb.bridge(f)(X, 3)


def test_an_export_has_its_static_arguments_in_it():
    exported = pb.export(power, ["cpu"], static_argnums=-1, static_argnames="mode")(
        X, 3, scale=2.0, mode="prod"
    )
    assert_agree(exported.call(X, scale=2.0), power(X, 3, scale=2.0, mode="prod"), "value")
    assert exported.fun_name == "power"


@pytest.mark.parametrize("options", [{"static_argnums": -1}, {"static_argnums": 1}, {"static_argnames": "n"}])
def test_a_comparison_is_of_what_is_not_static(options):
    candidates = {"by hand": power, "wrong": lambda x, n: 1.1 * power(x, n)}
    result = pb.compare(power, X, 3, engines=["transpose"], candidates=candidates, repeats=0, **options)
    assert result.function == "power" and result.arguments == "f32[3]"
    assert {row.engine: row.state for row in result.rows} == {
        "transpose": "agrees",
        "jax": "agrees",
        "by hand": "agrees",
        "wrong": "disagrees",
    }
