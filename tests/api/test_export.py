"""Exported functions are plain StableHLO: other processes run and differentiate them without pybridge."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree
from exports import custom_calls, elsewhere
from jax import export as jax_export
from jax import lax

import pybridge as pb

X = np.random.default_rng(3).uniform(-1, 1, (3, 4)).astype(np.float32)
A = np.random.default_rng(4).uniform(0.5, 2, 4).astype(np.float32)


def wave(x, a):
    return jnp.sin(a * x) ** 2 / a


def energy(x):
    return jnp.sum(jnp.tanh(x) ** 3)


def gradient(x, a):
    return jax.grad(lambda x, a: jnp.sum(pb.bridge(wave)(x, a)), (0, 1))(x, a)


@pytest.fixture
def file(tmp_path):
    def write(exported, **options):
        path = tmp_path / "exported.bin"
        path.write_bytes(exported.serialize(**options))
        return path

    return write


def test_platforms_and_no_custom_call():
    exported = pb.export(gradient)(X, A)
    assert exported.platforms == ("cpu", "cuda", "tpu")
    assert custom_calls(exported) == set()
    assert pb.export(gradient, platforms=("tpu",))(X, A).platforms == ("tpu",)
    assert_agree(exported.call(X, A), jax.grad(lambda *x: wave(*x).sum(), (0, 1))(X, A), "gradient")


def test_a_vjp_for_other_platforms_runs_on_its_own_there():
    exported = pb.export(gradient, platforms=("cuda", "tpu"))(X, A)
    with pytest.raises(ValueError, match="platform"):
        exported.call(X, A)


def test_reloaded_without_pybridge(file):
    path = file(pb.export(gradient)(X, A))
    code = """
        x, a = (np.asarray(v, np.float32) for v in json.loads(sys.argv[2]))
        print(json.dumps([np.asarray(y).tolist() for y in exported.call(x, a)]))
    """
    found = elsewhere(path, code, json.dumps([X.tolist(), A.tolist()]))
    assert_agree(
        [np.float32(y) for y in found], jax.grad(lambda *x: wave(*x).sum(), (0, 1))(X, A), "elsewhere"
    )


def falling(x):
    """A loop long enough for native code to take many of them in blocks."""
    return jnp.sum(lax.scan(lambda v, _: (v - 0.01 * v * v, v), x, None, length=500)[1])


@pytest.mark.parametrize("execute", ["auto", "julia"])
def test_a_batch_of_loops_is_no_loop_over_blocks_of_items(execute):
    def loops(items: int) -> list[int]:
        xs = jnp.linspace(0.5, 1.5, items)
        value = jax.vmap(pb.bridge(falling, execute=execute))
        exported = pb.export(value)(xs)
        modules = (
            exported,
            exported.vjp(),
            pb.export(jax.vmap(jax.grad(pb.bridge(falling, execute=execute))))(xs),
        )
        return [module.mlir_module().count("stablehlo.while") for module in modules]

    batch = jax.vmap(jax.grad(pb.bridge(falling, execute=execute)))
    assert "[50,80]" in str(jax.make_jaxpr(batch)(jnp.linspace(0.5, 1.5, 4000)))  # as native code wants it
    assert loops(4000) == loops(20)


def test_where_the_default_device_is_no_cpu_batches_are_not_made_for_kernels(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    batch = jax.vmap(jax.grad(pb.bridge(falling)))
    assert "[50,80]" not in str(jax.make_jaxpr(batch)(jnp.linspace(0.5, 1.5, 4000)))


def test_a_symbolic_batch(file):
    spec = jax.ShapeDtypeStruct(jax_export.symbolic_shape("b, 4"), jnp.float32)
    exported = pb.export(gradient)(spec, A)
    assert [str(a.shape) for a in exported.out_avals] == ["(b, 4)", "(4,)"]
    assert custom_calls(exported) <= {"shape_assertion"}
    path = file(exported)
    code = """
        sums = []
        for n in (1, 5):
            x, a = np.linspace(-1, 1, 4 * n, dtype=np.float32).reshape(n, 4), np.ones(4, np.float32)
            sums.append([np.asarray(y).tolist() for y in exported.call(x, a)])
        print(json.dumps(sums))
    """
    for n, found in zip((1, 5), elsewhere(path, code), strict=True):
        x = np.linspace(-1, 1, 4 * n, dtype=np.float32).reshape(n, 4)
        expected = jax.grad(lambda *x: wave(*x).sum(), (0, 1))(x, np.ones(4, np.float32))
        assert_agree([np.float32(y) for y in found], expected, f"b = {n}")


def test_exported_with_orders_of_derivatives(file):
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    path = file(pb.export(energy)(x), vjp_order=2)
    code = """
        x = np.linspace(-1, 1, 4, dtype=np.float32)
        gradient, pull = jax.vjp(jax.grad(exported.call), x)
        hessian = np.stack([pull(row)[0] for row in np.eye(4, dtype=np.float32)])
        print(json.dumps([np.asarray(gradient).tolist(), np.asarray(hessian).tolist()]))
    """
    found = [np.float32(y) for y in elsewhere(path, code)]
    assert_agree(found, [jax.grad(energy)(x), jax.hessian(energy)(x)], "derivatives of what was reloaded")
    once = jax_export.deserialize(pb.export(energy)(x).serialize(vjp_order=1))
    assert_agree(jax.grad(once.call)(x), jax.grad(energy)(x), "one order")
    none = jax_export.deserialize(pb.export(energy)(x).serialize())
    with pytest.raises(ValueError, match="No VJP"):
        jax.grad(none.call)(x)


def test_symbolic_sizes_and_derivatives_together():
    spec = jax.ShapeDtypeStruct(jax_export.symbolic_shape("b, 4"), jnp.float32)
    exported = jax_export.deserialize(pb.export(energy)(spec).serialize(vjp_order=1))
    for n in (1, 3):
        x = np.linspace(-1, 1, 4 * n, dtype=np.float32).reshape(n, 4)
        assert_agree(jax.grad(exported.call)(x), jax.grad(energy)(x), f"b = {n}")


def test_the_derivatives_kept_are_those_of_julia():
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (3 * jnp.cos(x) * ct,))
    exported = jax_export.deserialize(pb.export(f)(np.float32(0)).serialize(vjp_order=1))
    assert jax.grad(exported.call)(np.float32(0)) == 3


def test_programs_export_with_their_own_types():
    program = pb.trace(wave)(X, A).vjp(optimize=True)
    exported = pb.export(program, platforms=("cpu", "cuda"))()
    assert [str(a) for a in exported.in_avals] == ["float32[3,4]", "float32[4]", "float32[3,4]"]
    assert_agree(exported.call(X, A, X), jax.vjp(wave, X, A)[1](jnp.asarray(X)), "VJP")
    assert_agree(
        pb.export(program)(X, A, X).call(X, A, X), jax.vjp(wave, X, A)[1](jnp.asarray(X)), "given arguments"
    )
    spec = jax.ShapeDtypeStruct(jax_export.symbolic_shape("b, 4"), jnp.float32)
    symbolic = pb.export(pb.trace(wave)(spec, A).vjp())()
    assert_agree(symbolic.call(X, A, X), jax.vjp(wave, X, A)[1](jnp.asarray(X)), "symbolic")


def test_64_bit_programs(x64):
    x, a = X.astype(np.float64), A.astype(np.float64)
    exported = jax_export.deserialize(pb.export(gradient)(x, a).serialize())
    assert exported.in_avals[0].dtype == np.float64
    assert_agree(exported.call(x, a), jax.grad(lambda *x: wave(*x).sum(), (0, 1))(x, a), "gradient")


@pytest.mark.parametrize("engine", ["transpose", "jax"])
def test_control_flow_exports(engine):
    def f(x):
        return jax.lax.scan(lambda c, v: (jnp.tanh(c * v), c), x[0], x)[0].sum()

    exported = pb.export(lambda x: jax.grad(pb.bridge(f, engine=engine))(x))(X)
    assert_agree(exported.call(X), jax.grad(f)(X), engine)


def test_what_needs_a_runtime_library_is_refused():
    with pytest.raises(pb.UnsupportedPrimitive, match=r'gehrd.*linear_algebra="platform"'):
        pb.export(lambda x: lax.linalg.hessenberg(x)[0], platforms=("cpu",))(np.eye(3, dtype=np.float32))
    calls_back = lambda x: jax.pure_callback(np.sin, x, x)  # noqa: E731
    with pytest.raises(pb.SideEffectError, match="pure_callback"):
        pb.export(calls_back)(X)
    assert pb.export(jnp.sin)(X).call(X).shape == X.shape


@pytest.mark.parametrize(
    ("f", "platform", "name"),
    [
        (lambda x: lax.linalg.eig(x)[0], "cpu", "lapack_sgeev_ffi"),
        (lambda x: lax.linalg.eig(x)[0], "cuda", "cuhybrid_eig_real"),  # JAX refuses
        (lambda x: lax.linalg.schur(x)[0], "tpu", "schur"),  # JAX has none
    ],
)
def test_what_cannot_be_exported_is_refused_by_name(f, platform, name):
    with pytest.raises(pb.UnsupportedPrimitive, match=name) as e:
        pb.export(f, platforms=(platform,))(np.eye(3, dtype=np.float32))
    assert e.value.primitive == name


class Mine(ValueError):
    pass


def _refuses(x):
    raise Mine


def test_errors_of_other_kinds_pass():
    with pytest.raises(Mine):
        pb.export(_refuses)(X)


def test_execution_in_julia_leaves_no_trace_in_what_is_exported():
    exported = pb.export(pb.bridge(wave, execute="julia"))(X, A)
    assert custom_calls(exported) == set()
    assert_agree(exported.call(X, A), wave(X, A), "value")


@pytest.mark.parametrize("platforms", [["cpu"], ["cuda"], ["cpu", "cuda", "tpu"]])
def test_platform_dependent_code_is_that_of_each_platform(platforms):
    """Where platforms differ JAX binds the choice, with Programs in front, behind and in the branches."""

    def f(x):
        return jnp.exp(lax.platform_dependent(2 * x, cpu=lambda y: y * y, default=jnp.cos))

    exported = pb.export(f, platforms)(X)
    assert ("cosine" in exported.mlir_module()) == (platforms != ["cpu"])
    if "cpu" in platforms:
        assert_agree(exported.call(X), np.exp(4 * X * X), "value", 1e-6)


@pytest.mark.parametrize("execute", ["julia", "xla"])
def test_bridged_code_is_that_of_the_platform_at_work(execute):
    f = lambda x: jnp.sum(lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos))  # noqa: E731
    g = pb.bridge(f, execute=execute)
    assert_agree((g(X), jax.grad(g)(X)), (np.sin(X).sum(), np.cos(X)), "value and gradient", 1e-6)
