"""Other Julias in the process: private ones of libraries made by juliac, and what looks like one."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest
from c_libraries import COMPILER

from pybridge.runtime.julia import elf, find

from .processes import Python

OURS = "from pybridge.runtime.julia import request; assert request('collect') == '1000000'"
COUPLINGS = """
import ace_jax_coupling
tables = ace_jax_coupling.couple_raw([[(0, 1), (0, 1)]], [(0, 1)], [(1, -1), (1, 0), (1, 1)])
# the scalar product is what two vectors have that no rotation changes
assert len(tables.A2B_vals) == 3 and abs(tables.A2B_vals - tables.A2B_vals[0]).max() < 1e-12, tables.A2B_vals
"""
DERIVATIVE = """
import time, jax, jax.numpy as jnp, pybridge as pb
k = time.time() % 10  # a kernel that no cache has
slope = jax.grad(pb.bridge(lambda x: jnp.sum(jnp.sin(k * x))))(jnp.ones(3))
assert jnp.allclose(slope, k * jnp.cos(k), atol=1e-5), slope
assert pb.runtime.julia.status().started
"""


@pytest.mark.skipif(
    importlib.util.find_spec("ace_jax_coupling") is None, reason="ace-jax-coupling is not installed"
)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("order", ["theirs, ours", "ours, theirs", "theirs, ours, theirs, ours"])
def test_a_library_made_by_juliac(order: str, python: Python) -> None:
    parts = [{"ours": DERIVATIVE, "theirs": COUPLINGS}[part] for part in order.split(", ")]
    # The first one has Julia 1.9 and newer compile JaxprAD, since the tests' depot is empty.
    python.without("PYBRIDGE_JAXPRAD").importing_all.run("\n".join(parts), timeout=800).fine()


@pytest.fixture(scope="session")
def libjulia() -> Path:
    julia = find().require()
    if elf.Library(julia.libjulia).has_versions:
        pytest.skip(f"the symbols of Julia {julia.version} have versions, which keep Julias apart")
    return julia.libjulia


@pytest.fixture(scope="session")
def impostor(libjulia: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with all of Julia's names, each a variable with one value, and a function that reads some."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("impostor")
    names = sorted({name for name in elf.Library(libjulia).exported() if name.startswith("jl_")})
    read = " && ".join(f"{name}[0] == 7" for name in names)
    code = [*(f"long {name}[64] = {{7}};" for name in names), f"int intact(void) {{ return {read}; }}"]
    source, library = folder / "impostor.c", folder / "impostor.so"
    source.write_text("\n".join(code), encoding="utf-8")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.mark.parametrize("order", ["before", "after"])
def test_names_of_julias_in_the_process(order: str, impostor: Path, python: Python) -> None:
    theirs = f"""
import ctypes
assert ctypes.CDLL({str(impostor)!r}, mode=ctypes.RTLD_GLOBAL).intact()
"""
    parts = [theirs, OURS] if order == "before" else [OURS, theirs]
    python.run("\n".join([*parts, *parts])).fine()


def test_ours_is_not_in_the_process_names(libjulia: Path, python: Python) -> None:
    python.run(f"""
        import ctypes
        {OURS}
        assert not hasattr(ctypes.CDLL(None), "jl_is_initialized")
    """).fine()


def test_what_julia_looks_up_in_the_process(libjulia: Path, impostor: Path, python: Python) -> None:
    """Its own names are its own; others are found, also in libraries that are loaded globally later."""
    python.run(f"""
        import ctypes
        from pathlib import Path
        theirs = ctypes.CDLL({str(impostor)!r}, mode=ctypes.RTLD_GLOBAL)
        {OURS}
        from pybridge.runtime.julia import _RUNTIME
        live = _RUNTIME._live
        julia = live.hosted.library
        def value(code):
            return live.control.call(lambda: julia.uint64(f"UInt64({{code}})"), str)
        assert value("ccall(:jl_ver_major, Cint, ())") == 1
        address = lambda library, name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        assert value("cglobal(:jl_ver_major)") == address(ctypes.CDLL({str(libjulia)!r}), "jl_ver_major")
        assert value("cglobal(:intact)") == address(theirs, "intact")
        assert value("ccall(:intact, Cint, ())") == 1
    """).fine()


def test_options_are_read_whatever_was_parsed_before(python: Python) -> None:
    """getopt, with which Julia reads them, keeps its place for the whole process."""
    said = python.with_(JULIA_NUM_THREADS="2").run(f"""
        import ctypes
        place = ctypes.c_int.in_dll(ctypes.CDLL(None), "optind")
        place.value = 9
        {OURS}
        assert place.value == 9
        from pybridge.runtime.julia import _RUNTIME
        live = _RUNTIME._live
        if live.how == "embedded":
            code = "UInt64(Threads.nthreads())"
            assert live.control.call(lambda: live.hosted.library.uint64(code), str) == 2
    """)
    said.fine()


@pytest.fixture
def taker(tmp_path: Path) -> Path:
    """A library with the name of a libjulia, whose `install` takes SIGSEGV."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    source, library = tmp_path / "signals.c", tmp_path / "libjulia.so.1.99"
    source.write_text(
        "#include <signal.h>\nstatic void handle(int number) { (void)number; }\n"
        "void install(void) { signal(SIGSEGV, handle); }\n",
        encoding="utf-8",
    )
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.mark.parametrize("threads", [1, 2])
def test_another_julias_signals(threads: int, taker: Path, python: Python) -> None:
    """They stay where ours has one thread, and so no thread that a collection must stop by a signal."""
    said = python.with_(JULIA_NUM_THREADS=str(threads)).run(f"""
        import ctypes, signal
        {OURS}
        from pybridge.runtime.julia import status
        from pybridge.runtime.julia.signals import Action
        julias = Action.current(signal.SIGSEGV)
        ctypes.CDLL({str(taker)!r}).install()
        {OURS}
        print(status().how, Action.current(signal.SIGSEGV) == julias)
    """)
    how, ours = said.fine().split()
    assert ours == str(how != "embedded" or threads > 1)


def test_a_whole_julia_is_refused_and_a_library_with_one_is_not(taker: Path, python: Python) -> None:
    python.run(f"""
        import ctypes
        ctypes.CDLL({str(taker)!r})
        {OURS}
    """).fine()
    python.run(f"""
        import ctypes
        from pybridge.errors import JuliaUnusable
        from pybridge.runtime.julia import request
        ctypes.CDLL({str(taker)!r}).install()
        try:
            request("collect")
        except JuliaUnusable as refused:
            assert {str(taker)!r} in str(refused) and "in another process" in str(refused)
        else:
            raise AssertionError("it was not refused")
    """).fine()
