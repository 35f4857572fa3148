"""Bad input: one exception of ours that says what to do, before any work is done; the session goes on."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pybridge as pb
from pybridge.ir import parser
from pybridge.runtime import transforms

X = np.ones((3, 3), np.float32)


@pytest.fixture(autouse=True)
def the_session_goes_on():
    yield
    assert jax.grad(pb.bridge(lambda x: x**2))(3.0) == 6


def refused(kind: type[pb.PyBridgeError] | tuple, *words: str):
    """A context in which that exception is raised, with a message of these words."""
    return pytest.raises(kind, match="(?s)" + ".*".join(words))


def of_ours(kind) -> bool:
    return issubclass(kind, pb.PyBridgeError)


def test_every_exception_is_ours():
    kinds = [getattr(pb, name) for name in pb.__all__ if isinstance(getattr(pb, name), type)]
    errors = [k for k in kinds if issubclass(k, BaseException)]
    assert len(errors) > 10 and all(map(of_ours, errors))


# Options


@pytest.mark.parametrize(
    "options, words",
    [
        ({"engine": "zygote"}, ["zygote", "'transpose'", "'jax'"]),
        ({"engine": None}, ["None", "'transpose'"]),
        ({"engine": ["jax"]}, ["jax", "'transpose'"]),
        ({"execute": "gpu"}, ["gpu", "'xla'", "'julia'"]),
        ({"execute": ["xla"]}, ["xla", "'julia'"]),
        ({"engine": "jax", "execute": "julia"}, ["'jax'", "'julia'", "xla"]),
        ({"while_bound": -1}, ["while_bound", "-1"]),
        ({"while_bound": 2.5}, ["while_bound", "2.5"]),
        ({"while_bound": True}, ["while_bound", "True"]),
        ({"static_argnums": "x"}, ["static_argnums", "'x'"]),
        ({"static_argnums": 1.5}, ["static_argnums", "1.5"]),
    ],
)
def test_unknown_options(options, words):
    with refused(pb.UnknownOption, *words):
        pb.bridge(jnp.sin, **options)


@pytest.mark.parametrize("f", [3, "sin", jnp.ones(3)])
def test_what_is_no_function(f):
    with refused(pb.PyBridgeError, "function"):
        pb.bridge(f)
    with refused(pb.PyBridgeError, "function"):
        pb.trace(f)
    with refused(pb.PyBridgeError, "function"):
        pb.export(f)


@pytest.mark.parametrize("platforms", [("cpu", "abacus"), (), "metal", 3])
def test_unknown_platforms(platforms):
    with refused(pb.UnknownOption, "cpu.*cuda.*tpu"):
        pb.export(jnp.sin, platforms=platforms)


# Arguments


def test_arguments_that_are_no_arrays():
    f = pb.bridge(lambda x, mode: x * 2)
    with refused(pb.ArgumentError, "str", "static_argnums"):
        f(X, "mode")
    with refused(pb.ArgumentError, "object", "static_argnums"):
        f(object(), X)
    with refused(pb.ArgumentError, "hashable"):
        pb.bridge(lambda x, options: x, static_argnums=1)(X, {"a": 1})
    with refused(pb.PyBridgeError, "(?i)object|str"):
        pb.trace(lambda x: x)("text")


def test_too_few_arguments():
    with refused(pb.TracingError, "missing 1 required positional argument"):
        pb.bridge(lambda x, y: x)(X)
    with refused(pb.TracingError, "unexpected keyword"):
        pb.bridge(lambda x: x)(X, z=1)


def test_arguments_of_other_types_than_the_program_has():
    p = pb.trace(lambda x: jnp.sin(x))(X)
    for call in (p.call, p.to_jax()):
        with refused(pb.ArgumentError, "i32|int32"):
            call(np.ones((3, 3), np.int32))
        with refused(pb.ArgumentError, "2"):
            call(np.ones((2, 3), np.float32))
        with refused(pb.ArgumentError, "structure"):
            call(X, X)
        assert np.asarray(call(X)).shape == (3, 3)


def test_integer_inputs_have_no_gradient():
    f = pb.bridge(lambda n: n * 2)
    with pytest.raises(TypeError, match="int"):
        jax.grad(f)(3)
    p = pb.trace(lambda n, x: n * x)(jnp.int32(3), jnp.float32(2))
    for transform in (p.vjp, p.jvp, p.linearize):
        with refused(pb.NotDifferentiable, "input 0", "i32", "float"):
            transform(active=[0])
        with refused(pb.ArgumentError, "no input 7"):
            transform(active=[7])
    with refused(pb.NotDifferentiable, "input 0"):
        p.transpose(linear=[0])
    with refused(pb.ArgumentError, "no result 3"):
        p.transpose(linear=[1], cotangents=[3])


def test_what_is_not_linear_cannot_be_transposed():
    p = pb.trace(jnp.sin)(X)
    with refused(pb.UnsupportedPrimitive, "sin", "linear"):
        p.transpose()
    with refused(pb.UnsupportedPrimitive, "sin"):
        jax.linear_transpose(pb.bridge(jnp.sin), X)(X)


# Functions


def _branching(x):
    return x if x.sum() > 0 else -x


def _numpy(x):
    return np.asarray(x).sum()


def _raising(x):
    raise ValueError("the user's own")


@pytest.mark.parametrize("f, reason", [(_branching, "Bool"), (_numpy, "numpy"), (_raising, "the user's own")])
def test_functions_that_cannot_be_traced(f, reason):
    for use in (pb.trace(f), pb.bridge(f), jax.grad(pb.bridge(f)), pb.export(f)):
        with refused(pb.TracingError, f.__name__, r"test_errors.py:\d+", reason):
            use(X)


def test_exceptions_of_the_users_classes_pass():
    class Mine(Exception):
        pass

    def f(x):
        raise Mine

    with pytest.raises(Mine):
        pb.bridge(f)(X)


def test_results_that_are_no_arrays():
    for result in ("text", object()):
        with refused(pb.TracingError, "(?i)type|valid"):
            pb.bridge(lambda x, r=result: (x, r))(X)


def _printing(x):
    jax.debug.print("x = {}", x)
    return x


def _calling_back(x):
    return jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def _io(x):
    return jax.experimental.io_callback(lambda x: x, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def test_side_effects():
    for f in (_printing, _calling_back, _io):
        with refused(pb.SideEffectError, r"test_errors.py:\d+", "pure"):
            pb.trace(f)(X)
    for use in (pb.bridge(_io), jax.grad(lambda x: pb.bridge(_io)(x).sum())):
        with refused(pb.SideEffectError, r"test_errors.py:\d+", "pure"):
            use(X)


def _threefry_words(x):
    three_fry = jax.lax.RandomAlgorithm.RNG_THREE_FRY
    state = jnp.arange(4, dtype=jnp.uint32)
    return x * jax.lax.rng_bit_generator(state, x.shape, algorithm=three_fry)[1].astype(x.dtype)


def _sorted(x):
    return jax.lax.linalg.schur(x, sort_eig_vals=True)[0]


@pytest.mark.parametrize(
    "f, primitive",
    [
        (lambda x: x * jax.lax.rng_uniform(0.0, 1.0, x.shape), "rng_uniform"),
        (_sorted, "schur with sorted eigenvalues"),
        (_threefry_words, "rng_bit_generator by RNG_THREE_FRY"),
    ],
    ids=["rng_uniform", "schur", "random"],
)
def test_primitives_that_are_not_there(f, primitive):
    with refused(pb.UnsupportedPrimitive, primitive, r"test_errors.py:\d+", "docs/primitives.md") as e:
        pb.trace(f)(X)
    assert e.value.primitive and "test_errors.py" in e.value.source


def test_refused_in_nested_bodies_too():
    def f(x):
        return jax.lax.scan(lambda c, _: (jax.lax.cond(c[0, 0] > 0, _sorted, jnp.sin, c), None), x, length=2)[
            0
        ]

    with refused(pb.UnsupportedPrimitive, "schur", r"test_errors.py:\d+ \(_sorted\)"):
        pb.trace(f)(X)


# Programs


@pytest.mark.parametrize(
    "text", ["", "x = 1", "pybridge 1", "pybridge 1\nprogram f() {", b"pybridge 1", None]
)
def test_text_that_is_no_program(text):
    with refused(pb.ProgramSyntaxError, ""):
        pb.parse(text)


def test_text_of_a_newer_version():
    with refused(pb.ProgramVersionError, "version 99", "upgrade"):
        pb.parse("pybridge 99\nprogram f() {\n return\n}\n")


def _text(equation: str) -> str:
    return (
        f"pybridge 1\nprogram f(%0: f32[3], %1: f32[2]) {{\n  {equation}  # model.py:3 (f)\n  return %2\n}}\n"
    )


@pytest.mark.parametrize(
    "equation, words",
    [
        ("%2: f64[3] = sin %0", ["sin", r"f64\[3\]", r"f32\[3\]"]),
        ("%2: f32[3] = add %0 %1", ["add", "shapes"]),
        ("%2: f32[3] = sin %0 %0", ["sin", "1"]),
        ("%2: f32[6] = reshape %0 {shape=[6]}", ["reshape"]),
        ("%2: i32[3] = and %0 %0", ["and"]),
    ],
)
def test_ill_typed_programs(equation, words):
    p = parser.parse(_text(equation))  # which leaves types to the uses of the Program
    for use in (p.vjp, p.optimize, lambda: transforms.normalize(p), lambda: pb.parse(_text(equation))):
        with refused(pb.ProgramTypeError, "line 3, column 3", *words, "model.py:3"):
            use()


def test_a_place_in_a_text_is_that_of_the_text_as_it_was_given():
    text = "# a remark\n\npybridge 1 program f(%9: f32[3])\n{\n%8: f32[3] = exp %9 # model.py:1 (f)\n\n"
    with refused(pb.ProgramTypeError, "line 7, column 5", r"f32\[2\]"):
        pb.parse(text + "    %7: f32[2]\n = sin %8 return }")


LARGE = "4294967296, 4294967296"


@pytest.mark.parametrize(
    "equation, words",
    [
        (f"%2: f32[{LARGE}] = reshape %0 {{shape=[{LARGE}]}}", ["line 3, column 7", "more than 2.47 bytes"]),
        (f"%2: f32[0, {LARGE}] = copy %0", ["line 3, column 7", "more than 2.47 bytes"]),
        (f"%2: f32[0] = reshape %0 {{shape=[0, {LARGE}]}}", ["line 3, column 3", "reshape"]),
        (f"%2: f32[{','.join('1' * 65)}] = copy %0", ["line 3, column 7", "65 axes"]),
        ("%2: f32[<b^300000000>] = copy %0", ["line 3, column 11", "degree"]),
        ("%2: f32[<(a+b+c+d+e)^60>] = copy %0", ["line 3, column 11", "terms"]),
        ("%2: f32[<b - b - 1>] = copy %0", ["line 3, column 11", "the number -1"]),
        ("%2: f32[] = reduce_sum %0 {axes=[[0]]}", ["line 3, column 3", "attribute axes"]),
        ("%2: f32[3] = sin %0 # \ud800\n", ["line 3, column 25", "surrogate"]),
        ('%2: f32[3] = convert_element_type %0 {dtype="\\u0000"}', ["line 3, column 47", "string"]),
    ],
)
def test_what_no_machine_could_hold_is_refused_where_it_stands(equation, words):
    with refused((pb.ProgramTypeError, pb.ProgramSyntaxError), *words):
        pb.parse(_text(equation))


def test_functions_whose_results_no_machine_could_hold():
    def spread(x):
        return jax.lax.broadcast(x, (10**12, 10**12))

    for use in (pb.trace(spread), pb.bridge(spread), jax.jit(pb.bridge(spread))):
        with refused(pb.PyBridgeError, "more than 2.47 bytes"):
            use(np.float32(1))


def test_constants_that_are_missing():
    p = pb.trace(lambda x: x + np.arange(100, dtype=np.float32))(np.zeros(100, np.float32))
    bare = pb.parse(str(p))
    for call in (bare.call, bare.to_jax()):
        with refused(pb.PyBridgeError, "constant", "missing|no data|not given|unknown"):
            call(np.zeros(100, np.float32))


def test_errors_out_of_julia_carry_kind_and_trace(monkeypatch):
    from pybridge.runtime import julia

    monkeypatch.setenv("PYBRIDGE_CACHE", "off")  # a refusal that is kept has no trace
    with refused(pb.JuliaError, "no_such_request") as e:
        julia.request("no_such_request")
    assert e.value.kind == "ArgumentError"
    assert "serve.jl" in e.value.stacktrace
    p = pb.trace(lambda x: jax.lax.sin(x) * 2)(X)
    with pytest.raises(pb.UnsupportedPrimitive) as e:
        p.transpose()
    assert isinstance(e.value.__cause__, pb.JuliaError)
    assert e.value.__cause__.kind == "UnsupportedPrimitive" and "transpose" in e.value.__cause__.stacktrace
    assert e.value.primitive == "sin" and "test_errors.py" in e.value.source
