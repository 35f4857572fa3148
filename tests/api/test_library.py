"""Libraries for C have JAX's values and derivatives for any caller, and need no other libraries."""

from __future__ import annotations

import ctypes
import json
import math
import re
import shutil

import c_libraries
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from agreement import assert_agree
from typer.testing import CliRunner

import pybridge as pb
from pybridge.cli.app import app
from pybridge.runtime import linker

pytestmark = pytest.mark.skipif(linker.linker() is None, reason="there is no linker, so no libraries")
needs_c = pytest.mark.skipif(c_libraries.COMPILER is None, reason="there is no C compiler")

R = np.random.default_rng(5)
PARAMS = {"w": R.normal(size=(4, 3)), "b": R.normal(size=3)}
X = R.normal(size=(5, 4))
VECTORS = {name: R.normal(size=p.shape) for name, p in PARAMS.items()}
VX = R.normal(size=X.shape)


def loss(params, x):
    z = jnp.tanh(x @ params["w"] + params["b"])
    return jnp.mean(z**2) + jnp.sum(jnp.sin(params["b"])) * jnp.mean(x)


def layers(params, x):
    z = jnp.tanh(x @ params["w"] + params["b"])
    return {"z": z, "total": jnp.sum(z, 0), "count": jnp.sum(z > 0)}


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def agree(found, expected, tolerance=1e-10):
    assert_agree(found, leaves(expected), "a result", tolerance)


ALL = ("value", "grad", "value_and_grad", "jvp", "vjp", "hvp", "jacobian", "hessian")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """`loss` with all its derivatives, without 64-bit types in JAX."""
    return pb.compile_library(loss, "model", ALL, directory=tmp_path_factory.mktemp("model"))(PARAMS, X)


def expected_of(name):
    grad = jax.grad(loss, (0, 1))
    match name:
        case "value":
            return loss(PARAMS, X)
        case "grad":
            return grad(PARAMS, X)
        case "value_and_grad":
            return jax.value_and_grad(loss, (0, 1))(PARAMS, X)
        case "jvp":
            return jax.jvp(loss, (PARAMS, X), (VECTORS, VX))
        case "vjp":
            return jax.tree.map(lambda g: 1.5 * g, grad(PARAMS, X))
        case "hvp":
            return jax.jvp(grad, (PARAMS, X), (VECTORS, VX))[1]
        case "jacobian":
            return jax.jacrev(loss, (0, 1))(PARAMS, X)
        case "hessian":
            return jax.hessian(loss, (0, 1))(PARAMS, X)


@pytest.mark.parametrize("name", ALL)
def test_functions_are_those_of_jax(made, name, x64):
    more = {"jvp": leaves((VECTORS, VX)), "hvp": leaves((VECTORS, VX)), "vjp": [np.array(1.5)]}
    arrays = [*leaves((PARAMS, X)), *more.get(name, [])]
    expected = expected_of(name)
    for options in ({}, {"in_workspace": True}, {"shift": 1}, {"in_workspace": True, "shift": 3}):
        agree(c_libraries.call(made, name, *arrays, **options), expected)


def test_names_are_those_of_the_arguments(made):
    about = c_libraries.entry(made, "hvp")
    assert [p["name"] for p in about["arguments"]] == [
        *("params_b", "params_w", "x"),
        *("vector_params_b", "vector_params_w", "vector_x"),
    ]
    assert [p["name"] for p in about["results"]] == ["hvp_params_b", "hvp_params_w", "hvp_x"]
    assert about["arguments"][1]["python"] == "params['w']" and about["arguments"][1]["shape"] == [4, 3]
    assert c_libraries.entry(made, "value_and_grad")["results"][0]["name"] == "value"
    assert len(c_libraries.entry(made, "hessian")["results"]) == 9


def test_several_results(tmp_path, x64):
    names = ("value", "jvp", "vjp", "jacobian")
    made = pb.compile_library(layers, "layers", names, directory=tmp_path, argnums=0)(PARAMS, X)
    xs, dx = leaves((PARAMS, X)), leaves(VECTORS)
    agree(c_libraries.call(made, "value", *xs), layers(PARAMS, X))

    def floats(params):
        found = layers(params, X)
        return found["total"], found["z"]

    ys, dots = jax.jvp(floats, (PARAMS,), (VECTORS,))
    agree(c_libraries.call(made, "jvp", *xs, *dx), [layers(PARAMS, X)["count"], *ys, *dots])
    ct = (R.normal(size=3), R.normal(size=(5, 3)))
    agree(c_libraries.call(made, "vjp", *xs, *ct), jax.vjp(floats, PARAMS)[1](ct))
    agree(c_libraries.call(made, "jacobian", *xs), jax.jacfwd(floats)(PARAMS))
    assert c_libraries.entry(made, "jacobian")["results"][0]["name"] == "jacobian_value_total_params_b"


def _spiral(a, n):
    """A loop of as many trips as an argument says."""
    return jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, jnp.sin(s[1]) + a), (0, a))[1]


LARGE = R.normal(size=(300, 40))
CASES = {
    "half": (lambda x: jnp.exp(x) * 2, (R.normal(size=7).astype(np.float16),), 2e-3),
    "to half": (lambda x: x.astype(jnp.float16), (R.normal(size=7),), 1e-3),
    "bfloat": (lambda x: jnp.sin(x), (R.normal(size=7).astype(ml_dtypes.bfloat16),), 2e-2),
    "single": (lambda x, n: jnp.sum(x) * n, (R.normal(size=9).astype(np.float32), np.int8(3)), 1e-5),
    "booleans": (lambda x, m: (x > 0) & ~m, (R.normal(size=9), R.random(9) < 0.5), 0),
    "integers": (lambda n: n * n % 7, (np.arange(9, dtype=np.uint16),), 0),
    "complex": (lambda z: jnp.abs(z) * z, (R.normal(size=5) + 1j * R.normal(size=5),), 1e-12),
    "complex single": (lambda z: z * z, ((R.normal(size=5) + 1j).astype(np.complex64),), 1e-5),
    "transform": (lambda z: jnp.fft.fft(z), (R.normal(size=101) + 0j,), 1e-12),
    "solve": (lambda a, b: jnp.linalg.solve(a, b), (R.normal(size=(6, 6)), R.normal(size=6)), 1e-9),
    "eigenvalues": (lambda a: jnp.linalg.eigvalsh(a + a.T), (R.normal(size=(6, 6)),), 1e-10),
    "product": (lambda a, b: a @ b, (R.normal(size=(90, 80)), R.normal(size=(80, 70))), 1e-11),
    "large constants": (lambda x: LARGE @ x + LARGE[:, 0], (R.normal(size=40),), 1e-11),
    "many elements": (lambda x: jnp.sin(x) + jnp.sum(x), (R.normal(size=200_000),), 1e-9),
    "sort": (lambda x: jnp.sort(x), (R.normal(size=50),), 0),
    "empty": (lambda x, y: (x + 1, jnp.sum(x), y), (np.zeros((0, 3)), np.ones(2)), 0),
    "constant": (lambda: jnp.arange(3.0), (), 0),
    "unused": (lambda x, unused: x * 2, (np.ones(2), np.ones(500)), 0),
    "arguments as results": (lambda x, y: (y, x, x), (np.ones(2), np.zeros(3)), 0),
    "trips": (_spiral, (np.array(0.3), np.array(20)), 1e-12),
    "nothing": (lambda x: (), (np.ones(2),), 0),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_all_kinds_of_values(tmp_path, case, x64):
    f, args, tolerance = CASES[case]
    made = pb.compile_library(f, "kinds", directory=tmp_path)(*args)
    for options in ({}, {"in_workspace": True, "shift": 1}):
        agree(c_libraries.call(made, "value", *args, **options), f(*args), tolerance)


@pytest.mark.parametrize("x64_of_jax", [False, True])
def test_the_dtypes_are_those_of_the_arguments(tmp_path, x64_of_jax):
    def f(x, n):
        return x * jnp.zeros_like(x) + n + 1.5

    with jax.enable_x64(x64_of_jax):
        for dtype in (np.float32, np.float64):
            args = jax.ShapeDtypeStruct((2,), dtype), np.array(2, np.int32)
            name = np.dtype(dtype).name  # of its own: what is loaded under a path stays
            made = pb.compile_library(f, name, directory=tmp_path)(*args)
            about = c_libraries.entry(made, "value")
            assert about["arguments"][0]["dtype"] == np.dtype(dtype).name.replace("float", "f")
            assert about["arguments"][1]["dtype"] == "i32"
            (y,) = c_libraries.call(made, "value", np.ones(2, dtype), args[1])
            assert y.dtype == dtype and (y == 3.5).all()


def test_static_arguments_and_argnums(tmp_path, x64):
    def f(kind, x, y, *, power):
        return jnp.sum(getattr(jnp, kind)(x) ** power * y)

    options = {"static_argnums": 0, "static_argnames": "power", "argnums": (1, -1), "directory": tmp_path}
    made = pb.compile_library(f, "f", "grad", **options)("sin", X, 2 * X, power=3)
    about = c_libraries.entry(made, "grad")
    assert [p["name"] for p in about["arguments"]] == ["x", "y"]
    agree(
        c_libraries.call(made, "grad", X, 2 * X),
        jax.grad(lambda x, y: f("sin", x, y, power=3), (0, 1))(X, 2 * X),
    )


@pytest.mark.parametrize("structured", [True, False])
def test_of_a_program(tmp_path, structured):
    with jax.enable_x64(True):
        program, expected = pb.trace(loss)(PARAMS, X), jax.grad(loss, (0, 1))(PARAMS, X)
    program = program if structured else program.with_structure(None)
    made = pb.compile_library(program, "p", ("value", "grad"), directory=tmp_path)()
    agree(c_libraries.call(made, "grad", *leaves((PARAMS, X))), expected)
    by = ["params_b", "params_w", "x"] if structured else ["x0", "x1", "x2"]
    assert [p["name"] for p in c_libraries.entry(made, "grad")["results"]] == [f"grad_{name}" for name in by]


def test_of_a_program_by_one_of_its_arguments(tmp_path, x64):
    program, wide = pb.trace(layers)(PARAMS, X), (PARAMS, X)
    made = pb.compile_library(program, "p", "jvp", directory=tmp_path, argnums=1)(*wide)
    assert [p["name"] for p in c_libraries.entry(made, "jvp")["arguments"]][-1] == "tangent_x"
    with pytest.raises(pb.ArgumentError, match="takes f64"):
        pb.compile_library(program, "p", directory=tmp_path)(PARAMS, X[:1])
    with pytest.raises(pb.ArgumentError, match="structure"):
        pb.compile_library(program, "p", directory=tmp_path)(X, X)
    with pytest.raises(pb.ArgumentError, match="no names"):
        pb.compile_library(program.with_structure(None), "p", directory=tmp_path)(X, x=X)


def test_a_loop_of_unknown_length_runs_backwards(tmp_path, x64):
    made = pb.compile_library(_spiral, "spiral", "grad", directory=tmp_path)(0.3, 3)
    for n in (0, 1, 500):
        (y,) = c_libraries.call(made, "grad", np.array(0.3), np.array(n))
        expected = 1.0
        state = 0.3
        for _ in range(n):
            expected, state = math.cos(state) * expected + 1, math.sin(state) + 0.3
        np.testing.assert_allclose(y, expected, rtol=1e-12)


def test_names_that_c_has_or_that_clash(tmp_path):
    def f(int, x_y, workspace, x, Δ, *rest):
        return int + x_y + x["y"] + x["2*/z"] + workspace + Δ + sum(rest)

    one = np.float32(1)
    made = pb.compile_library(f, "names", ("value", "vjp"), directory=tmp_path)(
        one, one, one, {"y": one, "2*/z": one}, one, one, one
    )
    about = c_libraries.entry(made, "value")
    names = [p["name"] for p in about["arguments"]]
    assert names == ["int_2", "x_y", "workspace_2", "x_2_z", "x_y_2", "x", "rest_0", "rest_1"]
    assert c_libraries.call(made, "value", *[one] * 8) == [8]
    if c_libraries.COMPILER:
        c_libraries.build(made, '#include "names.h"\nint main(void) { return 0; }\n')


# Errors


@pytest.mark.parametrize(
    ("error", "arguments", "options"),
    [
        (pb.UnknownOption, (loss, "int"), {}),
        (pb.UnknownOption, (loss, "../m"), {}),
        (pb.UnknownOption, (loss, "m", "laplacian"), {}),
        (pb.UnknownOption, (loss, "m", ()), {}),
        (pb.UnknownOption, (loss, "m"), {"engine": "jax"}),
        (pb.UnknownOption, (loss, "m"), {"processor": "abacus"}),
        (pb.UnknownOption, (loss, "m", "grad"), {"argnums": 2}),
        (pb.UnknownOption, (loss, "m", "grad"), {"argnums": "x"}),
        (pb.ArgumentError, (3, "m"), {}),
        (pb.ArgumentError, (layers, "m", "grad"), {}),
        (pb.NotDifferentiable, (lambda p, x: loss(p, x + 0j).real, "m", "grad"), {"argnums": 2}),
    ],
)
def test_refusals(tmp_path, error, arguments, options):
    more = (X + 0j,) if options.get("argnums") == 2 and error is pb.NotDifferentiable else ()
    if more:
        arguments = (lambda p, x, z: jnp.sum(z.real), *arguments[1:])
    with pytest.raises(error):
        pb.compile_library(*arguments, directory=tmp_path, **options)(PARAMS, X, *more)
    assert list(tmp_path.iterdir()) == []


def test_more_refusals(tmp_path, x64):
    (n,) = jax.export.symbolic_shape("n")
    library = pb.compile_library(jnp.sum, "m", "value", directory=tmp_path)
    with pytest.raises(pb.ArgumentError, match="symbolic"):
        library(jax.ShapeDtypeStruct((n,), np.float64))
    with pytest.raises(pb.ArgumentError, match="no type"):
        library(jax.ShapeDtypeStruct((3,), jax.dtypes.float0))
    with pytest.raises(pb.ArgumentError, match="static_argnums"):
        library("text")
    with pytest.raises(pb.NotDifferentiable):
        pb.compile_library(jnp.sum, "m", "grad", directory=tmp_path)(np.arange(3))
    with pytest.raises(pb.SideEffectError):
        pb.compile_library(lambda x: jax.debug.print("{}", x) or x, "m", directory=tmp_path)(X)
    assert list(tmp_path.iterdir()) == []


def test_without_a_linker(tmp_path, monkeypatch):
    monkeypatch.setattr("pybridge.api.library.linker", lambda: None)
    with pytest.raises(pb.LibraryError, match="linker"):
        pb.compile_library(loss, "m", directory=tmp_path)(PARAMS, X)


@needs_c
def test_symbols_that_nothing_defines_are_refused(tmp_path):
    (tmp_path / "open.c").write_text("double nobody(double); double f(double x) { return nobody(x); }")
    source = tmp_path / "open.o"
    c_libraries.run(c_libraries.COMPILER, "-c", "-fPIC", tmp_path / "open.c", "-o", source)
    reason = linker.link_for_shipping([source], tmp_path / "open.so", [])
    assert reason is not None and "nobody" in reason


def test_the_bare_linker_links_too(tmp_path, monkeypatch):
    if shutil.which("ld") is None and shutil.which("ld.lld") is None:
        pytest.skip("there is no linker without a compiler")
    monkeypatch.setattr(linker, "_COMPILERS", ())
    made = pb.compile_library(loss, "bare", directory=tmp_path)(PARAMS, X)
    with jax.enable_x64(True):
        agree(c_libraries.call(made, "value", *leaves((PARAMS, X))), loss(PARAMS, X))


# The files


def test_the_library_shows_its_own_names_and_needs_no_one(made):
    shown = c_libraries.run("nm", "-D", "--defined-only", made.library).split("\n")
    names = {line.split()[-1] for line in shown if line}
    assert names == set(made.functions)
    needed = re.findall(r"Shared library: \[(.*?)\]", c_libraries.run("readelf", "-d", made.library))
    assert all(re.match(r"lib(c|m)\.|libgcc|lib.*blas", name) for name in needed), needed


def test_manifest_and_header(made):
    manifest = json.loads(made.manifest.read_text())
    assert manifest["library"] == "model" and manifest["jax"] == jax.__version__
    assert manifest["processor"] and manifest["features"] and manifest["julia"]
    header = made.header.read_text()
    for about in manifest["functions"]:
        assert f"MODEL_{about['name'].upper()}_WORKSPACE {about['workspace']}" in header
        for signature in about["symbols"].values():
            assert f"{signature};" in header
    assert set(manifest["sha256"]) == {"libmodel.so", "model.h"}
    assert repr(made) == f"<{made.library}: {', '.join(made.functions)}>"


def test_a_new_library_takes_the_place_of_a_loaded_one(tmp_path, x64):
    for factor in (2.0, 3.0):
        made = pb.compile_library(lambda x, c=factor: c * x, "f", directory=tmp_path)(np.ones(3))
        held = ctypes.CDLL(str(made.library))
        assert held
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.h", "f.json", "libf.so"]


def test_the_command(tmp_path):
    source = tmp_path / "user.py"
    source.write_text("import jax.numpy as jnp\n\n\ndef f(x, n):\n    return jnp.sum(x) ** n\n")
    words = ["export", f"{source}:f", "f64[3]", "2", "--library", "user", "-o", str(tmp_path)]
    words += ["--functions", "value,grad", "--static-argnums", "1", "--argnums", "0"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    made = pb.CLibrary(tmp_path / "libuser.so", tmp_path / "user.h", tmp_path / "user.json", ())
    with jax.enable_x64(True):
        agree(c_libraries.call(made, "grad", np.arange(3.0)), [np.full(3, 6.0)])
    done = CliRunner().invoke(app, ["export", f"{source}:f", "f64[3]", "2"])
    assert done.exit_code == 2
