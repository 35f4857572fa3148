"""Kernels in files: a second process computes the same without Julia, whatever was done to them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import processes
import pytest
from casekit import QUICK
from covering import FULL

from pybridge.runtime import answers, kernel_files, keys, linker
from pybridge.runtime.kernel_files import Manifest

pytestmark = pytest.mark.skipif(linker.linker() is None, reason="there is no linker, so no kernels in files")

# Every kind of place in a kernel's table: threads, BLAS, LAPACK, constants, tables of transforms; a loop, a
# sort, and a function whose derivative JAX has no part in.
CASES = """
import sys
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import pybridge as pb
from pybridge.runtime import julia

large = np.random.default_rng(0).normal(size=(40, 300))

def loop(a, x):
    def step(c, u):
        c = jnp.tanh(a * c + u)
        return c, jnp.sin(c)
    return jnp.sum(jax.lax.scan(step, jnp.ones(4), x)[1])

def dense(a, x):
    return jnp.sum(jnp.tanh((x @ x.T) * a) @ (large @ large.T))

def process(a, x):
    k = jnp.exp(-a * (x[:, :1] - x[:, 0]) ** 2) + jnp.eye(x.shape[0])
    solved = jnp.sum(jnp.linalg.solve(k, x[:, 1]) ** 2)
    return jnp.linalg.slogdet(k)[1] + solved + jnp.sum(jnp.linalg.cholesky(k))

def waves(a, x):
    power = jnp.sum(jnp.abs(jnp.fft.fft(a * x[:, 0])) ** 2)
    return power + jnp.sum(jnp.sort(jnp.sin(a * x[:, 1])) * jnp.arange(40.0))

def wide(a, x):
    return jnp.sum(jnp.sin(a * jnp.broadcast_to(x.ravel()[:100], (5000, 100))) ** 2)

CASES = {"loop": (loop, (50, 4)), "dense": (dense, (40, 40)), "process": (process, (40, 2)),
         "waves": (waves, (40, 2)), "wide": (wide, (40, 40))}

def arguments(name):
    return 0.7, np.random.default_rng(len(name)).uniform(-1, 1, CASES[name][1])
"""
REFERENCE = f"""{CASES}
gradients = {{name: jax.grad(f, argnums=(0, 1)) for name, (f, _) in CASES.items()}}
all_of_them = jax.jit(lambda x: {{name: gradients[name](*x[name]) for name in x}}, compiler_options={QUICK})
found = all_of_them({{name: arguments(name) for name in CASES}})
np.savez(sys.argv[1], **{{f"{{name}}{{i}}": y for name in found for i, y in enumerate(found[name])}})
"""
SCRIPT = f"""{CASES}
theirs = np.load(sys.argv[2])
for name in sys.argv[1].split(","):
    ours = jax.jit(jax.grad(pb.bridge(CASES[name][0], execute="julia"), argnums=(0, 1)))(*arguments(name))
    for i, y in enumerate(ours):
        z = theirs[f"{{name}}{{i}}"]
        np.testing.assert_allclose(y, z, rtol=1e-9, atol=1e-9 * float(np.max(np.abs(z))))
print("julia started" if julia.status().started else "no julia",
      "libjulia mapped" if "libjulia" in open("/proc/self/maps").read() else "none mapped")
"""
ALL = "loop,dense,process,waves,wide"
WITHOUT = "no julia none mapped"
WITH = "julia started libjulia mapped"


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """Runs cases, and compares them with JAX's gradients, which are made once."""
    reference = tmp_path_factory.mktemp("reference") / "gradients.npz"
    processes.run_imported(REFERENCE, str(reference))

    def run(cases: str, cache: Path | str, code: str = SCRIPT) -> str:
        return processes.run_imported(code, cases, str(reference), PYBRIDGE_CACHE=str(cache)).strip()

    return run


def entries(cache: Path) -> list[Path]:
    return sorted(path for path in cache.glob("*/*/*") if path.is_file())


@pytest.fixture(scope="module")
def made(result, tmp_path_factory):
    """A cache in which all cases are."""
    cache = tmp_path_factory.mktemp("kernels")
    assert result(ALL, cache) == WITH
    return cache


@pytest.mark.parametrize("case", ALL.split(",") if FULL else [ALL])
def test_a_second_process_starts_no_julia(result, made, case):
    assert result(case, made) == WITHOUT


def test_processes_at_once_with_an_empty_cache(result, tmp_path):
    with ThreadPoolExecutor(8) as threads:
        started = [threads.submit(result, "loop", tmp_path / "cache") for _ in range(8 if FULL else 4)]
        assert {process.result() for process in started} <= {WITH, WITHOUT}
    assert result("loop", tmp_path / "cache") == WITHOUT


@pytest.fixture(scope="module")
def loop_made(result, tmp_path_factory):
    """A cache in which one case is."""
    cache = tmp_path_factory.mktemp("loop")
    assert result("loop", cache) == WITH
    return cache


@pytest.mark.parametrize("damage", ["truncated", "changed", "swapped", "emptied", "removed"])
def test_damaged_files_are_made_anew(result, loop_made, tmp_path, damage):
    cache = Path(shutil.copytree(loop_made, tmp_path / "cache"))
    files = entries(cache)
    chance = random.Random(damage)
    contents = [path.read_bytes() for path in files]
    for path, content in zip(files, contents, strict=True):
        match damage:
            case "truncated":
                os.truncate(path, chance.randrange(len(content)))
            case "changed":
                place = chance.randrange(len(content))
                path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            case "swapped":
                path.write_bytes(chance.choice([other for other in contents if other != content]))
            case "emptied":
                path.write_bytes(b"")
            case "removed":
                path.unlink()
    assert result("loop", cache) == WITH
    assert result("loop", cache) == WITHOUT


def test_routines_are_compiled_for_the_first_kernel_that_calls_them(tmp_path):
    code = """
    import sys
    import jax, jax.numpy as jnp, numpy as np
    import pybridge as pb
    from pybridge.runtime import julia

    asked, request = [], julia.request
    julia.request = lambda command, *rest, **more: asked.append(command) or request(command, *rest, **more)
    x = np.random.default_rng(0).normal(size=(40, 40))
    outer = {"sin": jnp.sin, "cos": jnp.cos}[sys.argv[1]]
    f = lambda x: outer(x @ x)
    found = jax.jit(pb.bridge(f, execute="julia"))(x)
    np.testing.assert_allclose(found, jax.jit(f)(x), rtol=1e-4, atol=1e-4)
    print(asked.count("object"), asked.count("routine_object"))
    """
    (kernels, routines), *others = (
        map(int, processes.run_imported(code, outer, PYBRIDGE_CACHE=str(tmp_path)).split())
        for outer in ("sin", "cos", "cos")
    )
    assert kernels == 1 and routines > 0
    assert [list(counts) for counts in others] == [[1, 0], [0, 0]]


def test_routines_of_what_jaxprad_was_compiled_for_are_prepared(tmp_path):
    code = """
    import jax, jax.numpy as jnp, numpy as np
    import pybridge as pb
    from pybridge.runtime import julia, kernel_files, requests

    kernel_files.prepare()
    known = requests.ask("common_routines", None).split()
    asked, request = [], julia.request
    julia.request = lambda command, *rest, **more: asked.append(command) or request(command, *rest, **more)
    x = np.random.default_rng(0).normal(size=(40, 40))
    found = jax.jit(pb.bridge(lambda x: jnp.sin(x @ x), execute="julia"))(x)
    np.testing.assert_allclose(found, jnp.sin(x @ x), rtol=1e-4, atol=1e-4)
    print(len(known), asked.count("routine_object"), asked.count("host_object"))
    """
    known, routines, hosts = map(int, processes.run_imported(code, PYBRIDGE_CACHE=str(tmp_path)).split())
    assert hosts == 0
    assert (routines == 0) == (known > 0)  # where nothing was compiled in advance, nothing is known


def test_without_the_cache_everything_works(result, tmp_path):
    assert result("loop,dense", "off") == WITH
    unusable = tmp_path / "file"
    unusable.write_text("")
    assert result("loop", unusable / "cache") == WITH


def test_without_a_linker_everything_works(result, tmp_path):
    code = f"from pybridge.runtime import linker\nlinker._COMMANDS = ()\n{SCRIPT}"
    for _ in range(2):
        assert result("loop", tmp_path, code) == WITH


def test_a_library_with_symbols_that_nothing_defines_is_not_loaded(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, made, linked = (tmp_path / name for name in ("open.c", "open.o", "open.so"))
    source.write_text("double nobody(double); double f(double x) { return nobody(x); }")
    subprocess.run([compiler, "-c", "-fPIC", source, "-o", made], check=True)
    assert linker.link([made], linked) is None
    with pytest.raises(kernel_files._Unusable, match="nobody"):
        kernel_files._library(linked)


def test_a_refused_primitive_is_remembered(tmp_path):
    code = """
    import jax, jax.numpy as jnp
    import pybridge as pb
    from pybridge.runtime import julia, native
    from pybridge.runtime.transforms import optimize
    program = pb.trace(lambda x: jax.lax.reduce_precision(x, 4, 3))(jnp.ones(3))
    refused = native.refusal(program)
    print(type(refused).__name__, julia.status().started)
    """
    first, second = (processes.run_imported(code, PYBRIDGE_CACHE=str(tmp_path)).split() for _ in range(2))
    assert first[0] == second[0]
    if first[0] == "UnsupportedPrimitive":
        assert (first[1], second[1]) == ("True", "False")


def test_what_does_not_fit_is_refused_by_name(tmp_path):
    code = """
    import jax, jax.numpy as jnp, numpy as np
    import pybridge as pb
    from pybridge.runtime import julia, native
    kernel = native.kernel(pb.trace(jnp.sin)(jnp.ones(3, jnp.float32)))
    call = jax.ffi.ffi_call(kernel.target, jax.ShapeDtypeStruct((3,), np.float32))
    assert float(abs(call(np.ones(3, np.float32)) - np.sin(np.float32(1))).max()) < 1e-6
    for wrong in (np.ones(4, np.float32), np.ones(3, np.int32), np.ones((3, 1), np.float32)):
        try:
            call(wrong)
        except Exception as e:
            print(str(e).splitlines()[0])
    print(julia.status().started)
    """
    first, second = (
        processes.run_imported(code, PYBRIDGE_CACHE=str(tmp_path)).splitlines() for _ in range(2)
    )
    assert first[:-1] == second[:-1] and second[-1] == "False"
    assert len(second) == 4
    for line, got in zip(second, ("f32[4]", "s32[3]", "f32[3,1]"), strict=False):
        assert "pybridge kernel sin" in line and "operand 0 must be f32[3]" in line, got


def test_a_process_ends_while_kernels_from_files_run(tmp_path):
    code = """
    import threading, sys
    import jax, jax.numpy as jnp, numpy as np
    import pybridge as pb
    f = jax.jit(pb.bridge(lambda x: jnp.tanh(x @ x), execute="julia"))
    x = np.ones((400, 400), np.float32) / 400
    f(x).block_until_ready()
    def work():
        while True:
            f(x)
    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    threading.Event().wait(0.3)
    """
    for _ in range(4 if FULL else 2):
        processes.run(code, PYBRIDGE_CACHE=str(tmp_path))


def test_a_lesser_processor_has_other_keys(monkeypatch):
    here = keys.key("kernel", "x")
    assert keys.key("kernel", "x") == here != keys.key("kernel", "y")
    monkeypatch.setattr(keys, "processor_flags", lambda: {"sse2"})
    keys._machine.cache_clear()
    try:
        assert keys.key("kernel", "x") != here
    finally:
        keys._machine.cache_clear()


def test_requests_about_memory_are_not_kept(monkeypatch):
    asked = []

    def request():
        asked.append(1)
        return "answer"

    for _ in range(2):
        answers.answer("evaluate", ["123", "456"], "program", request)
    assert len(asked) == 2


def test_manifest_is_read():
    facts = ["handler h", "kernel k", "workspace 8", "operands 1", "types 11,1,3,11,1,3", "bytes 12,8"]
    text = "\n".join([*facts, "place host host_handle", "place descriptor "])
    made = Manifest.parse(text)
    assert made.places == (("host", "host_handle"), ("descriptor", ""))
    assert (made.handler, made.kernel, made.workspace, made.operands) == ("h", "k", 8, 1)
    assert made.sizes == (12, 8)
    assert np.array_equal(made.types, [11, 1, 3, 11, 1, 3])
