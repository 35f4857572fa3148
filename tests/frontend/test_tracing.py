"""From functions to Programs: structure, sources, constants, rules, and what is refused."""

from __future__ import annotations

import inspect
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases_control import clipped, counted, loopy, powered, scaled_sine, vjp_symbolic
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from pybridge.errors import ArgumentError, SideEffectError, TracingError, UnsupportedPrimitive
from pybridge.frontend.lowering import lower
from pybridge.frontend.primitives import LOWERINGS, SPECS
from pybridge.frontend.tracing import trace
from pybridge.ir.deferred import RULE_ORDER
from pybridge.ir.parser import parse
from pybridge.ir.program import Program
from pybridge.ir.schema import OPERATIONS
from pybridge.ir.types import Literal, TensorType

X = np.float32([[0.5, -1.0], [2.0, 0.25]])


def here(offset: int = 0) -> int:
    """The caller's line."""
    return inspect.currentframe().f_back.f_lineno + offset


def the(op: str, program: Program):
    """The one equation with this primitive."""
    (eq,) = [eq for eq in program.equations if eq.op == op]
    return eq


# Pytrees and arguments


def test_pytrees_and_keywords_go_in_and_come_out():
    def f(params, *, scale):
        return {"y": params["w"] * scale, "n": [params["b"]]}

    program = trace(f)({"w": X, "b": np.int32(3)}, scale=2.0)
    assert program.input_types == (TensorType("i32"), TensorType("f32", (2, 2)), TensorType("f32"))
    result = program.to_jax()({"w": X + 1, "b": np.int32(4)}, scale=3.0)
    np.testing.assert_array_equal(result["y"], (X + 1) * 3)
    assert result["n"] == [4]
    with pytest.raises(ArgumentError, match="structure"):
        program.to_jax()({"w": X}, scale=3.0)


def test_static_arguments_are_closed_over():
    program = trace(lambda x, mode, y: x + y if mode == "add" else x - y, static_argnums=1)(X, "add", X)
    np.testing.assert_array_equal(program.to_jax()(X, X), 2 * X)
    program = trace(lambda mode, x: mode(x), static_argnums=(-2,))(jnp.sin, X)
    assert program.equations[0].op == "sin"


def test_shapes_alone_suffice():
    program = trace(jnp.sin)(jax.ShapeDtypeStruct((2, 2), np.float32))
    assert program.input_types == (TensorType("f32", (2, 2)),)


@pytest.mark.parametrize("enabled, dtype", [(True, "f64"), (False, "f32")])
def test_64_bit_types_follow_jax(enabled, dtype):
    with jax.enable_x64(enabled):
        program = trace(lambda x: x + 1.0)(np.zeros(3))
        assert program.input_types == program.output_types == (TensorType(dtype, (3,)),)
        assert the("add", program).inputs[1] == Literal(1.0, dtype)


def test_names_fit_the_grammar():
    assert trace(lambda x: x)(X).name == "lambda"
    assert trace(jnp.sin)(X).name == "sin"
    assert trace(jax.jit(lambda x: x))(X).name == "lambda"


# Sources


def test_equations_carry_the_users_line():
    def f(x):
        y = jnp.sin(x)
        return lax.scan(lambda c, _: (jnp.cos(c), None), y, length=2)[0]

    line = here(-3)
    program = trace(f)(X)
    name = "test_equations_carry_the_users_line.<locals>.f"
    sine, scan = the("sin", program), the("scan", program)
    assert sine.source.endswith(f"test_tracing.py:{line} ({name})")
    assert scan.source.endswith(f"test_tracing.py:{line + 1} ({name})")
    assert the("cos", scan.attrs["body"]).source.endswith(f":{line + 1} ({name}.<locals>.<lambda>)")


def test_paths_inside_the_working_directory_are_relative(monkeypatch):
    from pathlib import Path

    monkeypatch.chdir(Path(__file__).parent)
    assert trace(lambda x: jnp.sin(x))(X).equations[0].source.startswith("test_tracing.py:")
    monkeypatch.chdir(Path(__file__).parents[2])
    assert trace(lambda x: jnp.sin(x))(X).equations[0].source.startswith("tests/frontend/test_tracing.py:")


# Shapes of Programs


def test_the_seed_function_is_as_the_documentation_shows():
    def f(x, a):
        return jnp.sin(a * x) ** 2 / a

    program = trace(f)(
        jax.ShapeDtypeStruct((32, 512, 64), np.float32), jax.ShapeDtypeStruct((64,), np.float32)
    )
    assert [eq.op for eq in program.equations] == [
        "broadcast_in_dim",
        "mul",
        "sin",
        "integer_pow",
        "broadcast_in_dim",
        "div",
    ]
    assert dict(program.equations[0].attrs) == {"shape": (32, 512, 64), "dims": (2,)}


def test_scalars_stay_literals_and_scalar_variables_are_broadcast():
    program = trace(lambda x, c: 2 * x * c)(X, np.float32(3))
    first, broadcast, second = program.equations
    assert first.inputs[0] == Literal(2.0, "f32")
    assert (broadcast.op, broadcast.attrs["dims"]) == ("broadcast_in_dim", ())
    assert {a.type.shape for a in second.inputs} == {(2, 2)}


def test_elementwise_operands_have_one_shape():
    from cases import CASES

    for case in CASES:
        if case.dtype != "f32":
            continue
        with case.context():
            _assert_uniform(trace(case.f)(*case.inputs()))


def _assert_uniform(program):
    for eq in program.equations:
        if OPERATIONS[eq.op].elementwise:
            shapes = {a.type.shape for a in (*eq.inputs, *eq.outputs) if not isinstance(a, Literal)}
            assert len(shapes) == 1, eq
        for body in eq.bodies:
            _assert_uniform(body)


def test_calls_are_inlined_and_dead_code_dropped():
    @jax.jit
    def inner(x):
        jnp.cos(x)
        return jnp.sin(x)

    program = trace(lambda x: jax.jit(inner)(x) + jax.named_call(inner)(x))(X)
    assert [eq.op for eq in program.equations] == ["sin", "sin", "add"]


def test_other_calls_are_inlined_too():
    @jax.custom_batching.custom_vmap
    def batched(x):
        return jnp.sin(x)

    batched.def_vmap(lambda size, is_batched, x: (jnp.sin(x), True))
    composed = lax.composite(lambda x: jnp.cos(x), name="my.cosine")
    program = trace(lambda x: checkpoint_name(composed(batched(jax.device_put(x))), "a"))(X)
    assert [eq.op for eq in program.equations] == ["sin", "cos"]


def test_small_constants_are_inline_and_large_ones_outside_the_text():
    small, large = np.arange(4, dtype=np.float32).reshape(2, 2), np.linspace(0, 1, 65, dtype=np.float32)
    program = trace(lambda x: (x + small, x[0, 0] * large, x * small))(X)
    constants = [eq for eq in program.equations if eq.op == "constant"]
    assert [set(eq.attrs) for eq in constants] == [{"value"}, {"ref"}]
    np.testing.assert_array_equal(program.constants[constants[1].attrs["ref"]], large)
    assert "0.984375" not in str(program)


def test_bodies_are_closed():
    outer = np.linspace(0, 1, 100, dtype=np.float32)

    def f(x):
        return lax.scan(lambda c, row: (c + row.sum() * outer.sum(), (outer * c).sum()), 0.0, x)

    program = trace(f)(X)
    total = parse(str(program), program.constants)  # the reader checks that nothing is unbound
    for y, z in zip(f(X), total.to_jax()(X), strict=True):
        np.testing.assert_allclose(z, y, rtol=1e-6)


def test_constants_can_be_hoisted():
    large = jnp.linspace(0, 1, 100)
    program, values = lower(jax.make_jaxpr(lambda x: x * large)(1.0), name="f", hoist_constants=True)
    assert program.input_types == (TensorType("f32", (100,)), TensorType("f32"))
    assert values[0] is large and not program.constants
    np.testing.assert_allclose(program.to_jax()(large, 2.0)[0], 2 * large)


def test_hoisted_constants_may_be_tracers():
    def outer(y):
        program, values = lower(jax.make_jaxpr(lambda x: x * y)(1.0), name="f", hoist_constants=True)
        return program.to_jax()(*values, 3.0)[0]

    assert jax.grad(lambda y: outer(y) ** 2)(2.0) == 36


def test_bounds_of_while_loops_are_open():
    program = trace(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + 1, x))(1.0)
    assert the("while", program).attrs["bound"] is None


def test_a_vmapped_condition_becomes_a_mask():
    program = trace(jax.vmap(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + 1, x)))(X[0])
    loop = the("while", program)
    assert loop.attrs["cond"].output_types == (TensorType("bool"),)
    assert the("reduce_or", loop.attrs["cond"]) and the("select_n", loop.attrs["body"])


def test_platform_dependent_code_is_that_of_the_platform():
    program = trace(lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos))(X)
    assert [eq.op for eq in program.equations] == ["sin"]
    program = trace(lambda x: lax.platform_dependent(x, cuda=jnp.sin, default=jnp.cos))(X)
    assert [eq.op for eq in program.equations] == ["cos"]
    with pytest.raises(UnsupportedPrimitive, match="default branch or one for cpu"):
        trace(lambda x: lax.platform_dependent(x, tpu=jnp.sin, cuda=jnp.cos))(X)


def test_a_wish_for_accuracy_is_granted():
    def f(x):
        return jax.lax.exp(x, accuracy=jax.lax.AccuracyMode.HIGHEST)

    assert [eq.op for eq in trace(f)(X).equations] == ["exp"]


def test_operands_are_converted_to_the_dtype_of_the_product():
    program = trace(lambda x: jax.lax.mul(x.astype(jnp.bfloat16), 2, out_dtype=jnp.float32))(X)
    assert [eq.attrs.get("dtype") for eq in program.equations] == ["bf16", "f32", None]
    assert program.equations[-1].inputs[1] == Literal(2.0, "f32")


def test_total_order_comparisons_order_zeros_and_nans():
    values = np.float32([-np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan])
    x, y = map(np.ascontiguousarray, np.broadcast_arrays(values[:, None], values))
    rank = np.arange(7)
    for name, holds in {"lt_to": np.less, "le_to": np.less_equal, "eq_to": np.equal}.items():
        primitive = getattr(jax._src.lax.lax, f"{name}_p")
        found = trace(primitive.bind)(x, y).to_jax()(x, y)
        np.testing.assert_array_equal(found, holds(rank[:, None], rank))
        np.testing.assert_array_equal(found, jax.jit(primitive.bind)(x, y))


# The user's rules


def test_the_jvp_rule_is_the_users():
    program = trace(scaled_sine)(X, np.float32(2))
    rule = the("custom_jvp", program).attrs["jvp"]
    assert len(rule.inputs) == 4 and len(rule.outputs) == 2
    args = (X, np.float32(2), np.ones_like(X), np.float32(1))
    y, dy = rule.to_jax()(*args)
    expected = jax.jvp(scaled_sine, args[:2], args[2:])
    np.testing.assert_allclose([y, dy], expected, rtol=1e-6)
    assert not np.allclose(dy, jax.jvp(lambda x, n: jnp.sin(x) * n, args[:2], args[2:])[1])


def test_integers_have_no_tangents_in_rules():
    rule = the("custom_jvp", trace(counted)(X, np.int32(3))).attrs["jvp"]
    assert [t.dtype for t in rule.input_types] == ["f32", "i32", "f32"]
    assert [t.dtype for t in rule.output_types] == ["f32", "i32", "f32"]


@pytest.mark.parametrize(
    "f, args",
    [
        (clipped, (X, np.int32(3))),
        (loopy, (X * X,)),
        (lambda x: powered(x, 3), (X,)),
        (vjp_symbolic, (X, X + 1)),
    ],
)
def test_the_vjp_rule_is_the_users(f, args):
    eq = the("custom_vjp", trace(f)(*args))
    call, fwd, bwd = (eq.attrs[name] for name in ("call", "fwd", "bwd"))
    y, pullback = jax.vjp(f, *args)
    outputs = call.to_jax()(*args)
    count = len(outputs)
    for a, b, c in zip(jax.tree.leaves(y), outputs, fwd.to_jax()(*args), strict=False):
        np.testing.assert_allclose(b, a, rtol=1e-6)
        np.testing.assert_allclose(c, a, rtol=1e-6)
    residuals = fwd.to_jax()(*args)[count:]
    cotangents = [jnp.full(o.shape, 0.3, o.dtype) for o in outputs if jnp.issubdtype(o.dtype, jnp.inexact)]
    given = jax.tree.map(
        lambda o: (
            jnp.full(o.shape, 0.3)
            if jnp.issubdtype(o.dtype, jnp.inexact)
            else np.zeros(o.shape, jax.dtypes.float0)
        ),
        y,
    )
    expected = [c for c in jax.tree.leaves(pullback(given)) if c.dtype != jax.dtypes.float0]
    for a, b in zip(expected, bwd.to_jax()(*residuals, *cotangents), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)


def test_rules_that_use_their_function_are_kept_to_the_third_order():
    eq, depth = the("custom_jvp", trace(lambda x: scaled_sine(x, x))(X)), 1
    while any(e.op == "custom_jvp" for e in eq.attrs["jvp"].equations):
        eq, depth = the("custom_jvp", eq.attrs["jvp"]), depth + 1
    assert depth == RULE_ORDER


def test_a_closed_over_value_is_an_operand_that_refuses_a_derivative():
    def f(x, y):
        @jax.custom_vjp
        def g(x):
            return x * y

        g.defvjp(lambda x: (x * 2, None), lambda _, ct: (5 * ct,))
        return g(x)

    program = trace(f)(X, X + 1)
    guard, eq = program.equations
    assert (guard.op, eq.op) == ("custom_jvp", "custom_vjp") and "closes over" in guard.attrs["jvp"]
    assert guard.inputs == program.inputs[1:]
    assert eq.inputs == (*guard.outputs, *reversed(program.inputs))
    by_guard, by_y, by_x = eq.attrs["bwd"].to_jax()(jnp.ones_like(X))
    np.testing.assert_array_equal(by_x, 5 * np.ones_like(X))
    assert not by_guard.any() and not by_y.any()


def test_a_rule_that_closes_over_a_traced_value_says_so():
    def f(x, y):
        @jax.custom_vjp
        def g(x):
            return x * 2

        g.defvjp(lambda x: (x * 2, None), lambda _, ct: (y * ct,))
        return g(x)

    (eq,) = trace(f)(X, X).equations
    assert eq.op == "custom_jvp" and "closes over a traced value" in eq.attrs["jvp"]


# Refusals

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    "f, primitive",
    [
        (lambda x: lax.linalg.schur(x @ x.T, sort_eig_vals=True), "sorted eigenvalues"),
        (lambda x: lax.rng_uniform(0.0, 1.0, x.shape), "rng_uniform"),
        (lambda x: lax.scan(lambda c, r: (c, lax.rng_uniform(0.0, 1.0, ())), 0, x), "rng_uniform"),
    ],
)
def test_what_programs_lack_is_refused_by_name_and_line(f, primitive):
    with pytest.raises(UnsupportedPrimitive, match=primitive) as e:
        trace(f)(X)
    assert "test_tracing.py:" in str(e.value) and "docs/primitives.md" in str(e.value)
    assert e.value.source and e.value.primitive
    assert trace(jnp.sin)(X).equations  # and the next trace works


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "int4"])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(UnsupportedPrimitive, match=f"{dtype}.*test_tracing.py"):
        trace(lambda x: x.astype(dtype))(X)
    with pytest.raises(UnsupportedPrimitive, match=dtype):
        trace(lambda x: x)(jnp.zeros(3, dtype))


def test_keys_are_raw_data_in_programs():
    p = trace(lambda k: (jax.random.split(k, 3)[1], jax.random.key_data(k)))(KEY)
    assert [str(t) for t in (*p.input_types, *p.output_types)] == ["u32[2]"] * 3
    expected = jax.random.key_data(jax.random.split(KEY, 3)[1])
    np.testing.assert_array_equal(p.to_jax()(KEY)[0], expected)


def prints(x):
    jax.debug.print("{}", x)
    return x


def calls_out(x):
    return jax.experimental.io_callback(lambda x: x, x, x)


def mutates(x):
    box = jax.new_ref(x)
    box[...] = x + 1
    return box[...]


@pytest.mark.parametrize("f", [prints, calls_out, jax.jit(prints), jax.checkpoint(prints)])
def test_side_effects_are_refused_with_the_line(f):
    with pytest.raises(SideEffectError, match=r"test_tracing.py:\d+"):
        trace(f)(X)


def test_references_of_the_function_itself_are_values():
    assert [eq.op for eq in trace(mutates)(X).equations] == ["add"]


def test_side_effects_in_loops_are_found():
    with pytest.raises(SideEffectError, match="prints"):
        trace(lambda x: lax.fori_loop(0, 3, lambda _, c: prints(c), x))(X)


def branches_on_values(x):
    return x if x[0, 0] > 0 else -x


def calls_numpy(x):
    return np.sin(x)


def calls_math(x):
    return math.sin(x[0, 0])


def multiplies_misfits(x):
    return x @ jnp.ones(3)


def asks_for_nothing(x):
    return x.nothing


@pytest.mark.parametrize(
    "f", [branches_on_values, calls_numpy, calls_math, multiplies_misfits, asks_for_nothing]
)
def test_what_jax_cannot_trace_names_the_line_and_jaxs_reason(f):
    with pytest.raises(
        TracingError, match=rf"{f.__name__} cannot be traced at .*test_tracing.py:\d+ \({f.__name__}\)"
    ) as e:
        trace(f)(X)
    assert e.value.__cause__ is not None and type(e.value.__cause__).__name__ in str(e.value)


@pytest.mark.parametrize("bad", ["text", object(), np.array(["a"]), None])
def test_arguments_that_are_no_arrays(bad):
    if bad is None:  # an empty pytree, which JAX takes
        assert trace(lambda x, y: x)(X, None).inputs
        return
    with pytest.raises(TracingError, match="TypeError"):
        trace(lambda x, y: x)(X, bad)


def test_the_users_own_exceptions_pass_through():
    class OutOfDomain(Exception):
        pass

    def f(x):
        raise OutOfDomain("too hot")

    with pytest.raises(OutOfDomain, match="too hot"):
        trace(f)(X)


def test_every_lax_name_belongs_to_one_spec():
    names = [name for spec in SPECS.values() for name in spec.lax_names]
    assert len(names) == len(set(names)) == len(LOWERINGS)


def test_the_documentation_lists_the_table():
    text = (Path(__file__).parents[2] / "docs" / "program.md").read_text()
    table = text.split("| primitive |")[1].split("\n\n")[0]
    documented = {op for line in table.splitlines()[2:] for op in line.split("|")[1].split()}
    assert documented == set(OPERATIONS) == set(SPECS)


def test_derivatives_that_jax_makes_inside():
    """The transpose of a scan with results that nobody uses allocates what it accumulates into."""

    def f(x):
        def step(c, _):
            return 1.1 * c + jnp.diag(jnp.diagonal(c)), None

        return jnp.sum(jax.lax.scan(step, x, length=3)[0] ** 2)

    g, x = jax.value_and_grad(f), jnp.arange(9.0).reshape(3, 3)
    for found, expected in zip(trace(g)(x).to_jax()(x), g(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
