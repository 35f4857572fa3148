"""Eight devices: gradients by what all of them share, and jit over arrays that lie on several."""

from __future__ import annotations

import textwrap

import processes

COMMON = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P
import pybridge as pb

mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
assert len(jax.devices()) == 8
w = jnp.arange(1.0, 4.0)
x = jnp.arange(24.0).reshape(8, 3) / 10
same = lambda y, z: jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), y, z)
"""


def run(code: str, *executes: str) -> None:
    """Runs the code in a process with eight devices, `execute` being one after the other."""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    loop = "\nfor execute in sys.argv[1:]:\n    bridge = lambda f: pb.bridge(f, execute=execute)\n"
    processes.run(COMMON + loop + textwrap.indent(textwrap.dedent(code), "    "), *executes, **flags)


def test_data_parallel_gradients():
    """Parameters are the same on all devices, data are not: their gradient is summed over devices."""
    run(
        """
        def local(f):
            def value_and_gradients(w, x):
                loss = lambda w, x: lax.psum(f(w, x), "i")
                return jax.value_and_grad(loss, (0, 1))(w, x)
            return jax.shard_map(
                value_and_gradients, mesh=mesh, in_specs=(P(), P("i")), out_specs=(P(), (P(), P("i")))
            )

        f = lambda w, x: jnp.sum(jnp.sin(w * x) * w)
        whole = jax.value_and_grad(f, (0, 1))(w, x)
        same(local(f)(w, x), whole)
        same(jax.jit(local(bridge(f)))(w, x), whole)
        """,
        "julia",
        "xla",
    )


def test_sharded_jit():
    run(
        """
        f = lambda w, x: jnp.sum(jnp.tanh(x @ jnp.diag(w)) ** 2)
        split = jax.device_put(x, NamedSharding(mesh, P("i")))
        step = jax.jit(jax.value_and_grad(bridge(f), (0, 1)))
        expected = jax.value_and_grad(f, (0, 1))(w, x)
        same(step(w, split), expected)
        same(step.lower(w, split).compile()(w, split), expected)
        """,
        "julia",
        "xla",
        "auto",
    )
