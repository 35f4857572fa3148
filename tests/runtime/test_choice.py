"""Which way a Program runs, what is said of it, and what is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import pybridge as pb
from pybridge import errors
from pybridge.runtime import native, requests

X = jnp.linspace(0.1, 0.9, 6, dtype=jnp.float32)


def f(x):
    return jnp.sin(x) ** 2


@pytest.fixture
def no_kernel_for_sin(monkeypatch):
    """As if `sin` had no native kernel; every primitive of a Program that JAX traces has one."""
    real = native.kernel

    def refusing(program):
        if any(eq.op == "sin" for eq in program.equations):
            raise errors.UnsupportedPrimitive("sin has no native kernel", primitive="sin")
        return real(program)

    def refusal(program):
        try:
            refusing(program)
        except errors.PyBridgeError as refused:
            return refused
        return None

    monkeypatch.setattr(native, "kernel", refusing)
    monkeypatch.setattr(native, "refusal", refusal)


@pytest.mark.parametrize(
    ("execute", "says"),
    [
        ("julia", ["runs as native kernel pybridge_"] * 2),
        ("auto", ["runs as native kernel pybridge_", "runs as XLA operations: XLA makes one loop of it"]),
        ("xla", ['runs as XLA operations: execute="xla"'] * 2),
    ],
)
def test_explained_once_for_each_program(execute, says, capfd):
    """The first has sines, the second multiplies by what the first keeps."""
    bridged = jax.jit(jax.value_and_grad(lambda x: pb.bridge(f, execute=execute, explain=True)(x).sum()))
    bridged(X)
    bridged(X)
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("pybridge: ")]
    assert len(lines) == 2 and all(said in line for said, line in zip(says, lines, strict=True))


@pytest.mark.parametrize(
    ("execute", "size", "says"),
    [
        ("auto", 3, "runs as XLA operations"),
        ("auto", 5000, "runs as native kernel pybridge_"),
        ("julia", 3, "runs as native kernel pybridge_"),
    ],
)
@pytest.mark.parametrize("loop", ["scan", "while_loop"])
def test_short_programs_in_loops_of_jax_are_left_to_xla(loop, execute, size, says, capfd):
    def step(x):
        jax.debug.callback(lambda _: None, x[0])
        return jnp.sin(x) * x

    def looped(x):
        if loop == "scan":
            return jax.lax.scan(lambda x, _: (step(x), None), x, None, length=3)[0]
        return jax.lax.while_loop(lambda x: x[0] > 0.5, step, x)

    x = jnp.linspace(0.9, 1.0, size)
    y = jax.jit(pb.bridge(looped, execute=execute, explain=True))(x)
    assert jnp.allclose(y, looped(x))
    lines = [line for line in capfd.readouterr().err.splitlines() if " runs as " in line]
    assert any(says in line for line in lines)
    assert all(says in line for line in lines if loop == "scan")


def test_silent_unless_asked(capfd):
    jax.jit(pb.bridge(f, execute="auto"))(X)
    assert "pybridge" not in capfd.readouterr().err


def test_auto_says_why_it_does_not_run_natively(no_kernel_for_sin, capfd):
    y = jax.jit(pb.bridge(lambda x: f(x) + 1, execute="auto", explain=True))(X)
    assert jnp.allclose(y, f(X) + 1)
    said = capfd.readouterr().err
    assert "runs as XLA operations" in said and "sin has no native kernel" in said


def test_julia_refuses_by_name(no_kernel_for_sin):
    with pytest.raises(pb.UnsupportedPrimitive, match="sin"):
        jax.jit(pb.bridge(lambda x: f(x) + 2, execute="julia"))(X)


@pytest.fixture
def refused_kernels(monkeypatch):
    """As if Julia found in each kernel that it would end the process."""
    request = requests.julia.request

    def refusing(command, *args, **options):
        if command in ("object", "compile"):
            reason = "sin: it calls Julia's runtime, jl_throw (at model.py:7 (f))"
            raise errors.JuliaError(reason, kind="KernelRefused")
        return request(command, *args, **options)

    monkeypatch.setattr(requests.julia, "request", refusing)


def test_code_that_would_end_the_process_is_not_run(refused_kernels, capfd):
    y = jax.jit(pb.bridge(lambda x: f(x) + 5, execute="auto", explain=True))(X)
    assert jnp.allclose(y, f(X) + 5)
    said = capfd.readouterr().err
    assert "runs as XLA operations" in said and "jl_throw" in said
    with pytest.raises(pb.KernelRefused, match="jl_throw") as refusal:
        jax.jit(pb.bridge(lambda x: f(x) + 6, execute="julia"))(X)
    assert (refusal.value.primitive, refusal.value.source) == ("sin", "model.py:7 (f)")


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_other_platforms(platform):
    """Native kernels are refused there by name; under `auto` they are XLA operations, on the CPU a kernel."""
    traced = jax.jit(pb.bridge(lambda x: f(x) + 3, execute="julia")).trace(X)
    with pytest.raises(pb.EngineUnavailable, match="CPU alone"):
        traced.lower(lowering_platforms=(platform,))
    traced = jax.jit(pb.bridge(lambda x: f(x) + 3, execute="auto")).trace(X)
    assert "custom_call" not in traced.lower(lowering_platforms=(platform,)).as_text()
    assert "pybridge_" in traced.lower(lowering_platforms=("cpu",)).as_text()


@pytest.mark.parametrize("execute", ["julia", "auto"])
def test_an_export_holds_no_kernel(execute):
    bridged = jax.jit(pb.bridge(lambda x: f(x) + 4, execute=execute))
    exported = jax.export.export(bridged)(X)
    assert "custom_call" not in exported.mlir_module()
    assert jnp.allclose(exported.call(X), f(X) + 4)
