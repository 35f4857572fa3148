"""Julia together with NumPy, SciPy and JAX, and kernels on threads that are not Julia's."""

from __future__ import annotations

import pytest
from covering import FULL

from .processes import Python

WORK = {
    "numpy": "import numpy as n; assert abs(n.linalg.inv(n.eye(50) * 4)[0, 0] - 0.25) < 1e-12",
    "scipy": (
        "import scipy.linalg as s, numpy as n; assert s.lu(n.eye(50))[2][0, 0] == 1;"
        "from scipy.special import gamma; assert abs(gamma(5.0) - 24) < 1e-9"
    ),
    "jax": (
        "import jax, jax.numpy as j;"
        "assert float(jax.jit(jax.grad(lambda x: j.sum(j.sin(x @ x))))(j.eye(50))[0, 0]) != 0"
    ),
}
JULIA = "from pybridge.runtime.julia import request; assert request('collect') == '1000000'"


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("neighbour", WORK)
def test_in_both_orders(neighbour: str, order: str, python: Python) -> None:
    first, second = (WORK[neighbour], JULIA) if order == "before" else (JULIA, WORK[neighbour])
    said = python.run("\n".join([first, second, first, second]))
    said.fine()
    assert said.err == ""


def test_cxx_exceptions_of_libraries_loaded_later(python: Python) -> None:
    """Julia's unwinder must not take over from libgcc's: a module loaded last throws here."""
    python.importing_all.run(f"""
        import pybridge
        {JULIA}
        import matplotlib.ft2font as module
        assert getattr(module, "nonsense", None) is None
    """).fine()


def test_all_of_them_at_once(python: Python) -> None:
    python.run("\n".join([*WORK.values(), JULIA, *reversed(WORK.values()), JULIA])).fine()


def test_foreign_threads_in_kernels_while_the_control_thread_collects(python: Python) -> None:
    """Echo's kernel allocates and collects on its own where this Julia can do that on foreign threads."""
    said = python.run(
        """
        import ctypes, sys, threading, time
        from pybridge.runtime.julia import request
        kernel = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)(int(request("kernel")))
        start, done, counts, wrong = time.monotonic(), threading.Event(), [0] * 4, []
        def work(k):
            data = (ctypes.c_double * 10_000)()
            while not done.is_set():
                data[:] = [0.5] * 10_000
                if kernel(data, 10_000) != 0 or data[9_999] != 0.0:
                    wrong.append(data[9_999])
                counts[k] += 1
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        collections = 0
        def few():  # on a busy machine it takes longer until each has had its turns
            return min(counts) <= 20 or collections <= 5
        while (lasted := time.monotonic() - start) < float(sys.argv[1]) or lasted < 60 and few():
            request("collect")
            collections += 1
            if collections % 5 == 0:
                time.sleep(0.1)  # idle as well: a foreign collection must not wait for the control thread
        done.set()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[:3]
        assert min(counts) > 20 and collections > 5, (counts, collections)
        print("fine")
        """,
        "4" if FULL else "1.5",
    )
    assert said.fine() == "fine\n"
