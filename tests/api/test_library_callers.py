"""C, C++, SciPy, numba and Julia call libraries, by many threads at once, and when memory runs out."""

from __future__ import annotations

import ctypes
import json
import math
import re
import shutil
import threading

import c_libraries
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agreement import assert_agree

import pybridge as pb
from pybridge.runtime import c_functions, julia, linker

pytestmark = pytest.mark.skipif(linker.linker() is None, reason="there is no linker, so no libraries")
needs_c = pytest.mark.skipif(c_libraries.COMPILER is None, reason="there is no C compiler")

R = np.random.default_rng(5)
PARAMS = {"w": R.normal(size=(4, 3)), "b": R.normal(size=3)}
X = R.normal(size=(5, 4))


def loss(params, x):
    z = jnp.tanh(x @ params["w"] + params["b"])
    return jnp.mean(z**2) + jnp.sum(jnp.sin(params["b"])) * jnp.mean(x)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    functions = ("value", "value_and_grad")
    return pb.compile_library(loss, "model", functions, directory=tmp_path_factory.mktemp("model"))(PARAMS, X)


def spiral(a, n):
    """A loop of as many trips as an argument says."""
    return jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, jnp.sin(s[1]) + a), (0, a))[1]


MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"

static double *numbers(int n, const double *from) {
    double *x = malloc(n * sizeof *x);
    if (from) memcpy(x, from, n * sizeof *x);
    return x;
}

int main(void) {
    double b[] = {%(b)s}, w[] = {%(w)s}, x[] = {%(x)s};
    double *params_b = numbers(3, b), *params_w = numbers(12, w), *inputs = numbers(20, x);
    double *value = numbers(1, 0), *db = numbers(3, 0), *dw = numbers(12, 0), *dx = numbers(20, 0);
    void *area = 0;
    if (posix_memalign(&area, MODEL_WORKSPACE_ALIGNMENT, MODEL_VALUE_AND_GRAD_WORKSPACE + 1)) return 2;
    if (model_value_and_grad(params_b, params_w, inputs, value, db, dw, dx) != MODEL_OK) return 1;
    printf("%%.17g %%.17g %%.17g %%.17g\\n", *value, db[2], dw[11], dx[19]);
    if (model_value_and_grad_in(params_b, params_w, inputs, value, db, dw, dx, area) != MODEL_OK) return 1;
    printf("%%.17g %%.17g %%.17g %%.17g\\n", *value, db[2], dw[11], dx[19]);
    free(params_b); free(params_w); free(inputs); free(value); free(db); free(dw); free(dx); free(area);
    FILE *maps = fopen("/proc/self/maps", "r");
    for (char line[4096]; fgets(line, sizeof line, maps);)
        if (strstr(line, "libpython") || strstr(line, "jaxlib") || strstr(line, "libjulia")) return 3;
    fclose(maps);
    return 0;
}
"""


def main_program() -> str:
    arrays = {"b": PARAMS["b"], "w": PARAMS["w"], "x": X}
    return MAIN % {name: ", ".join(f"{v!r}" for v in a.ravel().tolist()) for name, a in arrays.items()}


def check_output(text: str) -> None:
    with jax.enable_x64(True):
        value, (params, x) = jax.value_and_grad(loss, (0, 1))(PARAMS, X)
    expected = [value, params["b"][2], params["w"][3, 2], x[4, 3]]
    lines = text.splitlines()
    assert len(lines) == 2
    for line in lines:
        np.testing.assert_allclose(np.array(line.split(), float), expected, rtol=1e-10)


@pytest.fixture(scope="module")
def portable(tmp_path_factory):
    """For any processor of this kind: valgrind knows no newer ones."""
    processor = "x86-64-v2" if "x86-64-v2" in c_functions.processors() else "native"
    functions = ("value", "value_and_grad")
    folder = tmp_path_factory.mktemp("portable")
    return pb.compile_library(loss, "model", functions, directory=folder, processor=processor)(PARAMS, X)


@needs_c
def test_from_c(made):
    check_output(c_libraries.run(c_libraries.build(made, main_program(), "-D_POSIX_C_SOURCE=200112L")))


@needs_c
def test_from_c_under_the_address_sanitizer(made):
    sanitized = ("-D_POSIX_C_SOURCE=200112L", "-fsanitize=address,undefined", "-fno-sanitize-recover")
    check_output(c_libraries.run(c_libraries.build(made, main_program(), *sanitized)))


@needs_c
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
def test_from_c_under_valgrind(portable):
    program = c_libraries.build(portable, main_program(), "-D_POSIX_C_SOURCE=200112L")
    check_output(c_libraries.run("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", program))


@needs_c
def test_code_for_a_level_has_no_newer_instructions(portable):
    if json.loads(portable.manifest.read_text())["processor"] != "x86-64-v2":
        pytest.skip("levels are those of x86-64")
    assert not re.search(r"%[yz]mm", c_libraries.run("objdump", "-d", portable.library))


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
def test_from_cxx(made):
    code = """
    #include "model.h"
    #include <vector>
    int main() {
        std::vector<double> b(3), w(12), x(20);
        double value;
        return model_value(b.data(), w.data(), x.data(), &value) || value != 0;
    }
    """
    c_libraries.run(c_libraries.build(made, code, language="cc"))


THREADS = """
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include "model.h"

static double b[3] = {0.1, 0.2, 0.3}, w[12] = {1, 2, 3, 4}, x[20] = {0.5, 0.25};
static double expected[36];

static int once(double *y) {
    return model_value_and_grad(b, w, x, y, y + 1, y + 4, y + 16);
}
static void *work(void *unused) {
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        double y[36];
        if (once(y) || memcmp(y, expected, sizeof y)) return (void *)1;
    }
    return 0;
}
int main(void) {
    pthread_t threads[8];
    intptr_t failed = once(expected);
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(threads[i], &result);
        failed |= (intptr_t)result;
    }
    return (int)failed;
}
"""


@needs_c
def test_eight_threads_at_once(made):
    c_libraries.run(c_libraries.build(made, THREADS, "-pthread"))


def test_eight_threads_of_python_with_lapack(tmp_path, x64):
    def f(a):
        return jnp.linalg.slogdet(a @ a.T + jnp.eye(30))[1]

    a = R.normal(size=(30, 30))
    made = pb.compile_library(f, "det", "value_and_grad", directory=tmp_path)(a)
    assert json.loads(made.manifest.read_text())["needs"]["routines"]
    expected, failed = jax.value_and_grad(f)(a), []

    def work():
        try:
            for _ in range(20):
                found = c_libraries.call(made, "value_and_grad", a)
                assert_agree(found, list(expected), "a thread's", 1e-9)
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]


LITTLE_MEMORY = """
#include <stdio.h>
#include <sys/resource.h>
#include "spiral.h"
int main(void) {
    struct rlimit limit = {256 << 20, 256 << 20};
    setrlimit(RLIMIT_AS, &limit);
    double a = 0.3, y = 0;
    int64_t few = 1000, many = 60000000;
    if (spiral_grad(&a, &few, &y) != SPIRAL_OK) return 1;
    double before = y;
    if (spiral_grad(&a, &many, &y) != SPIRAL_OUT_OF_MEMORY) return 2;
    return spiral_grad(&a, &few, &y) != SPIRAL_OK || y != before;
}
"""


@needs_c
def test_out_of_memory_is_told(tmp_path, x64):
    made = pb.compile_library(spiral, "spiral", "grad", directory=tmp_path)(0.3, np.array(3))
    c_libraries.run(c_libraries.build(made, LITTLE_MEMORY, "-D_GNU_SOURCE"))


def rosenbrock(x, y):
    return (1 - x) ** 2 + 100 * jnp.sum((y - x**2) ** 2)


@pytest.fixture(scope="module")
def of_numbers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    return pb.compile_library(rosenbrock, "rosen", ("value", "grad"), directory=folder)(
        np.float64(1), np.ones(1)
    )


def test_from_scipy(of_numbers):
    integrate = pytest.importorskip("scipy.integrate")
    scipy = pytest.importorskip("scipy")
    function = ctypes.CDLL(str(of_numbers.library)).rosen_value_scipy
    function.restype = ctypes.c_double
    function.argtypes = (ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p)
    found, _ = integrate.nquad(scipy.LowLevelCallable(function), [[-1, 1], [0, 2]])
    # Of (1 - x)^2 over the square, 16/3; of 100 (y - x^2)^2, 100 (2 * 8/3 - 2 * 2 * 2/3 + 2 * 2/5).
    np.testing.assert_allclose(found, 16 / 3 + 100 * (16 / 3 - 8 / 3 + 4 / 5), rtol=1e-10)
    three = (ctypes.c_double * 3)(1, 1, 1)
    assert math.isnan(function(3, three, None)) and function(2, three, None) == 0


def test_from_numba(of_numbers):
    numba = pytest.importorskip("numba")
    grad = ctypes.CDLL(str(of_numbers.library)).rosen_grad
    grad.restype, grad.argtypes = ctypes.c_int, [ctypes.c_void_p] * 4

    @numba.njit
    def descend(x, y, steps):
        dx, dy = np.empty(1), np.empty(1)
        for _ in range(steps):
            if grad(x.ctypes.data, y.ctypes.data, dx.ctypes.data, dy.ctypes.data) != 0:
                return False
            x -= 1e-3 * dx
            y -= 1e-3 * dy
        return True

    x, y = np.array([-1.0]), np.array([1.0])
    assert descend(x, y, 50_000)
    np.testing.assert_allclose([x[0], y[0]], 1, atol=1e-3)


def test_from_julia(of_numbers):
    code = f"""
    const library = {json.dumps(str(of_numbers.library))}
    function gradient(x::Vector{{Float64}})
        dx, dy = Ref(0.0), Ref(0.0)
        status = ccall((:rosen_grad, library), Cint, (Ref{{Float64}}, Ref{{Float64}}, Ref{{Float64}},
            Ref{{Float64}}), x[1], x[2], dx, dy)
        status == 0 || error("out of memory")
        [dx[], dy[]]
    end
    println(gradient([1.0, 2.0]) == [-400.0, 200.0])
    """
    found = julia.find().require()
    assert c_libraries.run(found.executable, "--startup-file=no", "-e", code).strip() == "true"
