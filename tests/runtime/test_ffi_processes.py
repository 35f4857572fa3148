"""Kernels and the process: threads, many devices, the persistent cache, the exit."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import processes
import pytest
from covering import FULL
from processes import fine

CPUINFO = Path("/proc/cpuinfo")
WIDE = CPUINFO.is_file() and " avx2 " in CPUINFO.read_text()
EXITS = int(os.environ.get("PYBRIDGE_TEST_EXITS", "8" if FULL else "4"))

LASTING = "2" if FULL else "0.6"  # seconds that Julia is idle while kernels run; it answers for twice as long

# A loop over rows that a kernel gives to several threads, after an operation that XLA gives to its own.
HEAVY = """
natively = functools.partial(pb.bridge, execute="julia")
rows = natively(lambda x: jnp.sin(x) * jnp.exp(-x * x) + jnp.cos(x))
x = np.random.default_rng(1).uniform(-1, 1, (512, 1024)).astype(np.float32)
heavy = jax.jit(lambda x: rows(jnp.tanh(x @ jnp.ones((1024, 1024), jnp.float32) / 1024)).sum())
expected = float(heavy(x))
"""

IMPORTS = """
import functools, sys, threading, time
import jax, jax.numpy as jnp, numpy as np
import pybridge as pb
from pybridge.runtime import julia, native
"""


def start(code, *arguments, **variables):
    return processes.start(IMPORTS + textwrap.dedent(code), *arguments, **variables)


def run(code, *arguments, **variables):
    return processes.run_imported(IMPORTS + textwrap.dedent(code), *arguments, **variables)


def run_new(code, *arguments, **variables):
    """Without a fork in its past: for what is about exits and forks, or what JAX reads when imported."""
    return fine(start(code, *arguments, **variables))


IN_JULIA = """
def in_julia(code):
    live = julia._RUNTIME._live
    return live.control.call(lambda: live.hosted.library.text(code), lambda: "")
"""


SERIALIZED = """
from jax.experimental import serialize_executable
import pickle

x = jnp.arange(3.0)

def compiled(execute):
    f = pb.bridge(lambda x: jnp.sum(jnp.sin(x) * x), execute=execute)
    return jax.jit(jax.grad(f)).lower(x)

def loaded(path):
    with open(path, "rb") as file:
        return serialize_executable.deserialize_and_load(*pickle.load(file))
"""

WRITES = """
for execute, path in zip(("julia", "xla"), sys.argv[1:]):
    with open(path, "wb") as file:
        pickle.dump(serialize_executable.serialize(compiled(execute).compile()), file)
"""

READS = """
by_julia, by_xla = sys.argv[1:]
expected = jnp.cos(x) * x + jnp.sin(x)
np.testing.assert_allclose(loaded(by_xla)(x), expected, rtol=1e-5)
try:
    loaded(by_julia)
    print("loaded without its kernels")
except jax.errors.JaxRuntimeError as e:
    print("refused" if "No FFI handler registered for pybridge_" in str(e) else e)
compiled("julia")  # lowered, and not compiled
np.testing.assert_allclose(loaded(by_julia)(x), expected, rtol=1e-5)
"""


def test_executables_of_another_process(tmp_path):
    """Those with kernels find them by their names, once the function was lowered: docs/limits.md."""
    paths = [str(tmp_path / mode) for mode in ("julia", "xla")]
    # JAX cannot serialize what it has from its persistent cache.
    run_new(SERIALIZED + WRITES, *paths, JAX_ENABLE_COMPILATION_CACHE="false")
    assert run(SERIALIZED + READS, *paths).split() == ["refused"]


def test_eight_threads_of_large_work_share_the_pool():
    out = run(
        HEAVY
        + """
    wrong = []
    def work():
        for _ in range(int(sys.argv[1])):
            if not np.isclose(float(heavy(x)), expected, rtol=1e-5):
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print(len(wrong))
    """.replace("\n    ", "\n"),
        "25" if FULL else "8",
    )
    assert out == "0\n"


def test_kernels_run_while_julia_answers_and_collects_and_compile_nothing(tmp_path):
    out = run(IN_JULIA + HEAVY + """
    small = jax.jit(natively(lambda x: x * x + 1))
    small(np.float32(2))
    program = pb.trace(lambda x: jnp.sin(x) * x)(np.float32(1))
    for _ in range(2):
        program.vjp(), pb.trace(lambda x: x + 1)(x).optimize()
    done, wrong = threading.Event(), []
    def work():
        while not done.is_set():
            if not np.isclose(float(heavy(x)), expected, rtol=1e-5) or float(small(np.float32(3))) != 10:
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    # what Julia compiles while it is asked for nothing, four threads being in kernels
    in_julia(f'const PB_LOG = open({sys.argv[1]!r}, "w")'.replace("'", '"') + '; ""')
    in_julia('ccall(:jl_dump_compiles, Cvoid, (Ptr{Cvoid},), PB_LOG.handle); ""')
    time.sleep(float(sys.argv[2]))
    in_julia('ccall(:jl_dump_compiles, Cvoid, (Ptr{Cvoid},), C_NULL); flush(PB_LOG); ""')
    end = time.monotonic() + 2 * float(sys.argv[2])
    asked = 0
    while asked < 4 or time.monotonic() < end:
        in_julia('GC.gc(); string(sum(length, [rand(100) for _ in 1:1000]))')
        pb.trace(lambda x: x * (2.0 + asked))(np.float32(1)).vjp()
        asked += 1
    done.set(); [t.join() for t in threads]
    print(len(wrong))
    """.replace("\n    ", "\n"), str(tmp_path / "compiled"), LASTING, PYBRIDGE_CACHE="off")  # fmt: skip
    assert out == "0\n"
    lines = (tmp_path / "compiled").read_text().splitlines()
    assert not [line for line in lines if "JaxprAD" in line], lines


def test_the_sight_of_what_julia_compiles_is_good(tmp_path):
    run(IN_JULIA + """
    pb.trace(lambda x: x + 1)(np.float32(1)).optimize()
    in_julia(f'const PB_LOG = open({sys.argv[1]!r}, "w")'.replace("'", '"') + '; ""')
    in_julia('ccall(:jl_dump_compiles, Cvoid, (Ptr{Cvoid},), PB_LOG.handle); ""')
    pb.bridge(lambda x: x + 5, execute="julia")(np.float32(1))
    in_julia('ccall(:jl_dump_compiles, Cvoid, (Ptr{Cvoid},), C_NULL); flush(PB_LOG); ""')
    """.replace("\n    ", "\n"), str(tmp_path / "compiled"), PYBRIDGE_CACHE="off")  # fmt: skip
    assert "JaxprAD" in (tmp_path / "compiled").read_text()


def test_eight_devices():
    out = run(
        """
        from jax.sharding import NamedSharding, PartitionSpec as P
        mesh = jax.make_mesh((8,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        x = np.arange(16 * 3, dtype=np.float32).reshape(16, 3)
        def loss(b):
            local = lambda x: jax.lax.psum(b(lambda x: (jnp.sin(x) * x).sum())(x), "i")
            return jax.shard_map(local, mesh=mesh, in_specs=P("i"), out_specs=P())
        for execute in ("julia",):
            b = functools.partial(pb.bridge, execute=execute)
            f, g = loss(b), loss(lambda f: f)
            assert "pybridge_" in jax.jit(f).lower(x).as_text(), execute
            np.testing.assert_allclose(jax.jit(f)(x), g(x), rtol=1e-5)
            np.testing.assert_allclose(jax.jit(jax.grad(f))(x), jax.grad(g)(x), rtol=1e-5)
        # Without shard_map it is XLA that splits, which it can do to operations only.
        split = jax.device_put(x, NamedSharding(mesh, P("i")))
        for execute, native_ in (("julia", True), ("auto", False)):
            f = jax.jit(pb.bridge(lambda x: jnp.sin(x) * x, execute=execute))
            assert ("pybridge_" in f.lower(split).as_text()) == native_, execute
            np.testing.assert_allclose(f(split), np.sin(x) * x, rtol=1e-5, atol=1e-6)
        print("fine")
        """,
        XLA_FLAGS="--xla_force_host_platform_device_count=8",
    )
    assert out == "fine\n"


CACHED = """
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
hits = []
seen = lambda name, **_: hits.append(name) if name.endswith("cache_hits") else None
jax.monitoring.register_event_listener(seen)
x = np.arange(6, dtype=np.float32)
f = jax.jit(pb.bridge(lambda x: jnp.sin(x) * x + 2, execute="julia"))
np.testing.assert_allclose(f(x), np.sin(x) * x + 2, rtol=1e-6)
print(len(hits))
"""


def test_an_executable_from_the_persistent_cache_finds_its_kernel(tmp_path):
    assert run(CACHED, str(tmp_path)) == "0\n"
    assert int(run(CACHED, str(tmp_path))) >= 1


# The exit

IN_FLIGHT = """
rows = jax.jit(lambda x: jax.lax.fori_loop(0, 1_000_000, lambda _, x: pb.bridge(
    lambda x: jnp.sin(x) * jnp.exp(-x * x) + jnp.cos(x), execute="julia")(x), x))
x = jnp.ones((256, 1024), jnp.float32)
compiled = rows.lower(x).compile()
threading.Thread(target=lambda: compiled(x).block_until_ready(), daemon=True).start()
time.sleep(float(sys.argv[1]))
print("leaving")
"""


def test_exits_with_kernels_in_flight():
    """The loop alone would run for minutes: its next kernel is refused, which ends it."""
    for first in range(0, EXITS, 2):
        for process in [start(IN_FLIGHT, str((first + k) % 7 * 0.02)) for k in range(2)]:
            assert fine(process) == "leaving\n"


def test_a_call_after_julias_exit_is_refused():
    """A Julia that juliacall started ends after Python's hooks, and still serves them."""
    out = run_new("""
        import atexit
        f = jax.jit(pb.bridge(lambda x: x * 2, execute="julia"))
        def late():
            try:
                f(np.float32(3)).block_until_ready()
                print("ran", "juliacall" in sys.modules)
            except Exception as e:
                print("Python is exiting" in str(e))
        atexit.register(late)  # hooks run in reverse order: this one after the runtime's
        f(np.float32(1))
    """)
    assert out in ("True\n", "ran True\n")


def test_a_forked_child_may_not_compile_kernels():
    out = run_new("""
        import os, warnings
        warnings.simplefilter("ignore")
        pb.bridge(lambda x: x * 2, execute="julia")(np.float32(1))
        program = pb.trace(lambda x: x * 3)(np.float32(1))
        child = os.fork()
        if child == 0:
            try:
                native.kernel(program)
            except pb.ForkedProcess:
                os._exit(7)
            os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert out == "7\n"


@pytest.mark.skipif(not WIDE, reason="only where the processor is seen to have vectors of 32 bytes")
def test_julia_compiles_for_this_processor():
    """With an image for others in which there are vectors, it would compile for those."""
    out = run(IN_JULIA + """
    new = np.random.default_rng().random(dtype=np.float32)  # no kernel that a cache has: Julia starts
    jax.jit(pb.bridge(lambda x: x + new, execute="julia"))(np.float32(1))
    in_julia("using InteractiveUtils; string()")
    in_julia("pb_add(x, y) = map((a, b) -> VecElement(a.value + b.value), x, y); string()")
    eight = "NTuple{8,VecElement{Float32}}"
    code = in_julia(f"sprint(io -> code_native(io, pb_add, Tuple{{{eight},{eight}}}))")
    print("ymm" in code)
    """.replace("\n    ", "\n"))  # fmt: skip
    assert out == "True\n"
