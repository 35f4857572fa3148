"""The command line: what it prints, and its exit status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax.export
import numpy as np
import pytest
from typer.testing import CliRunner

import pybridge as pb
from pybridge.cli.app import ENGINES, app
from pybridge.cli.arguments import argument

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}

MODULE = """
import jax
import jax.numpy as jnp
import numpy as np
import pybridge as pb

def f(x, a):
    return jnp.sin(a * x) ** 2 / a

def g(x):
    return jnp.exp(x)

table = jnp.linspace(0, 1, 3)

def tabled(x):
    return x * table

g.example_args = lambda: (np.ones(3, np.float32),)

def example_args(name):
    return {"f": (np.ones((2, 3), np.float32), 2.0)}[name]

@jax.custom_vjp
def skewed(x):
    return jnp.sin(x)

def skewed_backward(x, ct):
    return (1.5 * jnp.cos(x) * ct,)

skewed.defvjp(lambda x: (jnp.sin(x), x), skewed_backward)

def branch(x):
    return x if x > 0 else -x

def power(x, n):
    assert type(n) is int
    return x**n

def bridged(x, n):
    return power(x, n)

bridged.example_args = (np.ones(2, np.float32), 4)
bridged = pb.bridge(bridged, static_argnames="n")
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "functions.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)

    def invoke(*words: str):
        return CliRunner().invoke(app, list(words), catch_exceptions=False)

    return invoke


def test_show_prints_a_program_that_reads_back(run):
    done = run("show", "functions.py:f", "f32[3,4]", "f32[4]:0.5..2")
    assert done.exit_code == 0
    program = pb.parse(done.stdout)
    names, result = "  # %0 x, %1 a\n", "  # result\n"
    assert names in done.stdout and result in done.stdout and len(program.inputs) == 2
    assert program.text == done.stdout.replace(names, "").replace(result, "\n")


@pytest.mark.parametrize(("derivative", "programs"), [("vjp", 1), ("jvp", 1), ("linearize", 2)])
def test_show_derivatives(run, derivative, programs):
    plain = run("show", "functions.py:f", "--derivative", derivative)
    small = run("show", "functions.py:f", "--derivative", derivative, "--optimize")
    assert plain.exit_code == small.exit_code == 0
    assert plain.stdout.count("\nprogram ") == small.stdout.count("\nprogram ") == programs
    assert len(small.stdout) <= len(plain.stdout)


def test_show_explains_how_it_runs(run):
    done = run("show", "functions.py:f", "--explain")
    assert done.exit_code == 0 and done.stdout.splitlines()[-1] == "# f runs as a native kernel"


def test_arguments_come_from_the_function_or_its_module(run):
    assert "%0: f32[3]" in run("show", "functions.py:g").stdout
    assert "%0: f32[2,3], %1: f32[]" in run("show", "functions.py:f").stdout
    assert "f32[5]" in run("show", "functions.py:g", "f32[5]").stdout
    assert "%0: f32[]" in run("show", "functions.py:g", "-2.5").stdout


@pytest.mark.parametrize(("asked", "used"), [("f64[3]", "f64"), ("c128[3]", "c128"), ("f32[3]", "f32")])
def test_the_dtype_that_is_asked_for_is_used(run, tmp_path, asked, used):
    assert f"%0: {used}[3]" in run("show", "functions.py:g", asked).stdout
    compared = run("compare", "functions.py:g", asked, "--engines", "transpose", "--repeats", "0")
    assert compared.exit_code == 0 and f"g({used}[3])" in compared.stdout
    assert run("export", "functions.py:g", asked, "--platforms", "cpu", "-o", "g.bin").exit_code == 0
    exported = jax.export.deserialize(bytearray((tmp_path / "g.bin").read_bytes()))
    assert exported.in_avals[0].dtype == argument(asked, np.random.default_rng(0)).dtype
    assert not jax.config.jax_enable_x64


def test_arrays_that_a_file_makes_are_as_wide_as_the_arguments(run, tmp_path):
    np.save(tmp_path / "x.npy", np.ones(3))
    for asked in ("f64[3]", "@x.npy"):
        assert "f32" not in run("show", "functions.py:tabled", asked).stdout


def test_a_file_chooses_64_bits_for_itself(run, tmp_path):
    """In a process of its own, since the setting is the whole process's."""
    chosen = "import jax\njax.config.update('jax_enable_x64', True)\n" + MODULE
    (tmp_path / "wide.py").write_text(chosen)

    def show(spec):
        words = [sys.executable, "-m", "pybridge", "show", "wide.py:g", spec]
        return subprocess.run(words, capture_output=True, text=True, check=True, env=ENVIRONMENT).stdout

    assert "%0: f64[]" in show("2.0") and "%0: f32[3]" in show("f32[3]")


@pytest.mark.parametrize("option", [["--static-argnums", "-1"], ["--static-argnames", "n"]])
def test_static_arguments(run, tmp_path, option):
    words = ["functions.py:power", "f32[4]", "3", *option]
    shown = run("show", *words)
    assert shown.exit_code == 0 and len(pb.parse(shown.stdout).inputs) == 1 and "y=3" in shown.stdout
    compared = run("compare", *words, "--engines", "transpose", "--repeats", "0")
    assert compared.exit_code == 0 and "power(f32[4])" in compared.stdout
    assert run("export", *words, "--platforms", "cpu", "-o", "power.bin").exit_code == 0
    exported = jax.export.deserialize(bytearray((tmp_path / "power.bin").read_bytes()))
    np.testing.assert_allclose(exported.call(np.full(4, 2, np.float32)), np.full(4, 8))
    done = run("export", *words, "--platforms", "cpu", "--vjp", "-o", "vjp.bin")
    assert done.exit_code == 0 and "bytes for cpu" in done.stdout


def test_a_bridged_function_brings_its_static_arguments(run):
    shown = run("show", "functions.py:bridged", "f32[4]", "3")
    assert shown.exit_code == 0 and len(pb.parse(shown.stdout).inputs) == 1
    assert "%0: f32[2]" in run("show", "functions.py:bridged").stdout


@pytest.mark.parametrize(
    "option", [["--static-argnums", "n"], ["--static-argnames", "k"], ["--static-argnums", "2"]]
)
def test_static_arguments_that_do_not_exist(run, option):
    done = run("show", "functions.py:power", "f32[4]", "3", *option)
    assert done.exit_code == 2 and option[0].strip("-").replace("-", "_")[:13] in done.output.replace(
        "-", "_"
    )


def test_compare_writes_its_files(run, tmp_path):
    files = ["--order", "2", "--json", "c.json", "--html", "c.html", "--plot", "c.svg"]
    done = run("compare", "functions.py:f", "--engines", "transpose", "--repeats", "0", *files)
    assert done.exit_code == 0, done.output
    assert "transpose" in done.stdout and "agrees" in done.stdout
    data = json.loads((tmp_path / "c.json").read_text())
    assert data["agrees"] is True and data["reference"]["second"]["derivative"] == "right"
    assert "<svg" in (tmp_path / "c.html").read_text() and (tmp_path / "c.svg").stat().st_size


def test_compare_fails_where_a_function_cannot_be_traced(run):
    done = run("compare", "functions.py:branch", "f32[]", "--engines", "jax")
    assert done.exit_code == 1 and "TracingError" in done.stderr


def test_compare_reports_a_wrong_engine(run, monkeypatch):
    from pybridge.engines import ENGINES, Engine

    double = Engine("double", lambda p, xs, _: [2 * y for y in p.to_jax()(*xs)], lambda: None, ("xla",))
    monkeypatch.setitem(ENGINES, "double", double)
    done = run("compare", "functions.py:f", "--engines", "double", "--repeats", "0")
    assert done.exit_code == 1 and "disagrees" in done.stdout


def test_a_derivative_that_is_not_that_of_the_value(run):
    options = ["--engines", "transpose", "--repeats", "0"]
    wrong = run("compare", "functions.py:skewed", "f32[3]", *options)
    assert wrong.exit_code == 1 and "Engines: agree" in wrong.stdout
    assert "not that of its value" in wrong.stdout
    found = run("check", "functions.py:skewed", "f32[3]")
    assert found.exit_code == 1 and "(skewed_backward)" in found.stdout
    assert run("check", "functions.py:skewed", "f32[3]", "--rtol", "0.9").exit_code == 0
    assert run("check", "functions.py:f").exit_code == 0


def test_blame(run, tmp_path):
    (tmp_path / "late.py").write_text(
        "import jax.numpy as jnp\n\n\ndef late(x):\n    return jnp.where(x > 0, jnp.sqrt(x), 0.0)\n"
    )
    file = tmp_path / "b.json"
    found = run("blame", f"{tmp_path / 'late.py'}:late", "f32[2]:0..0", "--json", str(file))
    assert found.exit_code == 1 and "guards too late" in found.stdout and "late.py:5" in found.stdout
    assert '"VJP"' in file.read_text()
    fine = run("blame", f"{tmp_path / 'late.py'}:late", "f32[2]:1..2", "--markdown")
    assert fine.exit_code == 0 and "nothing" in fine.stdout


def test_export_writes_what_jax_reads(run, tmp_path):
    done = run("export", "functions.py:f", "--platforms", "cpu,tpu", "-o", "f.bin", "--vjp")
    assert done.exit_code == 0, done.output
    exported = jax.export.deserialize(bytearray((tmp_path / "f.bin").read_bytes()))
    assert exported.platforms == ("cpu", "tpu")
    x, a = np.ones((2, 3), np.float32), np.float32(2)
    found = exported.call(x, a, np.ones((2, 3), np.float32))
    expected = 2 * np.sin(2 * x) * np.cos(2 * x)
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)


def test_symbolic_sizes(run, tmp_path):
    (tmp_path / "sums.py").write_text("def f(x, y):\n    return (x @ y).sum()\n")
    done = run("export", "sums.py:f", "f64[n,2*m]", "f64[2*m]", "--platforms", "cpu", "-o", "f.bin", "--vjp")
    assert done.exit_code == 0, done.output
    exported = jax.export.deserialize(bytearray((tmp_path / "f.bin").read_bytes()))
    assert [str(a) for a in exported.in_avals] == ["float64[n,2*m]", "float64[2*m]", "float64[]"]
    shown = run("show", "sums.py:f", "f32[n,3]", "f32[3]")
    assert "f32[<n>,3]" in shown.stdout
    for command in ("compare", "check", "blame"):
        done = run(command, "sums.py:f", "f32[n,3]", "f32[3]")
        assert done.exit_code == 2 and "write a number" in done.output.replace("\n", " "), done.output
    done = run("export", "sums.py:f", "f32[n-,3]", "f32[3]", "-o", "f.bin")
    assert done.exit_code == 2 and "n-" in done.output


def test_doctor_counts_rules(run):
    done = run("doctor", "--rules")
    assert done.exit_code == 0
    ours, theirs, paper = done.stdout.splitlines()
    found = re.fullmatch(r"JaxprAD: (\d+) transpose rules over (\d+) JVP rules, (\d+)%", ours)
    transposes, forward, percent = map(int, found.groups())
    assert percent <= 40 and round(100 * transposes / forward) == percent
    page = (Path(__file__).parents[2] / "docs" / "julia_ads.md").read_text()
    assert f"{transposes} transpose rules over {forward} JVP rules, {percent}%" in page
    assert theirs.startswith(f"JAX {jax.__version__}: ") and paper.endswith("40%")


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("show", "functions.py:nothing"), 2, "no 'nothing'"),
        (("show", "functions.py"), 2, "module:function"),
        (("show", "missing.py:f"), 2, "no file missing.py"),
        (("show", "missing_module:f"), 2, "no module 'missing_module'"),
        (("show", "functions.py:branch", "f32[]"), 1, "functions.py:"),
        (("show", "functions.py:g", "f31[3]"), 2, "no dtype 'f31'"),
        (("show", "functions.py:g", "some"), 2, "is no argument"),
        (("show", "functions.py:g", "@none.npy"), 2, "none.npy"),
        (("check", "missing.py:f"), 2, "no file missing.py"),
        (("show", "missing.pbx"), 2, "no archive missing.pbx"),
        (("show", "functions.py:f", "--derivative", "hvp"), 1, "one real number"),
        (("compare", "functions.py:g", "--engines", "enzime"), 2, "there is no engine 'enzime'"),
        (("export", "functions.py:g", "-o", "x", "--platforms", "abacus"), 2, "abacus"),
        (("export", "functions.py:g"), 2, "--output"),
        (("export", "functions.py:g", "-o", "none/g.bin"), 2, "there is no folder none"),
        (("compare", "functions.py:g", "--plot", "a.xyz"), 2, "a.xyz names no format"),
        (("compare", "functions.py:g", "--json", "none/a.json"), 2, "there is no folder none"),
        (("compare", "functions.py:g", "--html", "."), 2, "is a folder"),
        (("nonsense",), 2, "nonsense"),
    ],
)
def test_wrong_use_is_one_panel(run, words, status, says):
    done = run(*words)
    assert done.exit_code == status
    assert says in " ".join(done.stderr.replace("│", " ").split()) and "Traceback" not in done.stderr


def test_the_version(run):
    assert run("--version").stdout == f"pybridge {pb.__version__}\n"
    assert pb.__version__[0].isdigit()


def test_debug_shows_where_an_error_comes_from(run):
    with pytest.raises(pb.UnknownOption):
        run("show", "functions.py:nothing", "--debug")


@pytest.mark.parametrize(
    ("spec", "dtype", "shape"),
    [
        ("f32[3,4]", "float32", (3, 4)),
        ("f64[]", "float64", ()),
        ("c64[2]:-1..1", "complex64", (2,)),
        ("i32[7]:2..5", "int32", (7,)),
        ("bool[2]", "bool", (2,)),
        ("bf16[2]", "bfloat16", (2,)),
    ],
)
def test_types_become_random_numbers(spec, dtype, shape):
    made = argument(spec, np.random.default_rng(0))
    assert made.dtype.name == dtype and made.shape == shape
    np.testing.assert_array_equal(made, argument(spec, np.random.default_rng(0)))


def test_bounds_files_and_numbers(tmp_path):
    rng = np.random.default_rng(0)
    uniform = argument("f32[100]:0.5..2", rng)
    assert uniform.min() >= 0.5 and uniform.max() <= 2 and uniform.std() > 0.1
    whole = argument("i32[100]:2..5", rng)
    assert set(whole.tolist()) == {2, 3, 4}
    np.save(tmp_path / "x.npy", whole)
    np.testing.assert_array_equal(argument(f"@{tmp_path / 'x.npy'}", rng), whole)
    assert argument("3", rng) == 3 and argument("-1.5", rng) == -1.5


COMMANDS = [command.callback.__name__ for command in app.registered_commands]


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS)], ids=["pybridge", *COMMANDS])
def test_help_fits_a_screen(words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["pybridge"])  # which bench changes
    done = CliRunner().invoke(app, [*words, "--help"], terminal_width=80)
    lines = done.output.splitlines()
    assert done.exit_code == 0 and any("--help" in line for line in lines)
    assert len(lines) <= (24 if words else 30) and max(map(len, lines)) <= 80


def test_bench_is_for_a_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pybridge"])
    listed = CliRunner().invoke(app, ["bench", "--list"])
    assert listed.exit_code == 0 and "scan-60" in listed.output
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["bench", "--list"]).exit_code == 2
    helped = CliRunner().invoke(app, ["bench", "--help"])
    assert helped.exit_code == 0 and "in a checkout" in helped.output


def test_help_names_the_engines():
    names = list(pb.engines.ENGINES)
    assert ENGINES.split(", ") == names
    for command in ("compare", "fuzz", "gradbench"):  # whose lines may end after a hyphen
        assert ",".join(names) in "".join(CliRunner().invoke(app, [command, "--help"]).output.split())


def test_show_a_hessian_vector_product(run):
    text = run("show", "functions.py:g", "f32[]", "--derivative", "hvp").output
    assert float(pb.parse(text).to_jax()(2.0, 3.0)[0]) == pytest.approx(3 * np.exp(2.0), rel=1e-6)


def test_show_tells_what_the_compiler_made(run):
    done = run("show", "functions.py:f", "f32[40,30]", "f32[30]", "--plan")
    assert done.exit_code == 0
    assert "of workspace, compiled in" in done.output and "machine_code" in done.output
    assert "loop nest 40×30" in done.output and "functions.py:8 (f): " in done.output


def test_the_plan_of_a_gradient_is_that_of_its_two_kernels(run):
    plans = run("show", "functions.py:f", "f32[40,30]", "f32[30]", "--plan", "--derivative", "grad")
    assert plans.exit_code == 0
    assert plans.output.count("of workspace, compiled in") == 2
    programs = run("show", "functions.py:f", "f32[40,30]", "f32[30]", "--derivative", "grad").output
    assert programs.count("program ") == 2


def test_the_gradient_of_a_number_is_one_program(run):
    shown = run("show", "functions.py:g", "f32[]", "--derivative", "grad").output
    (program,) = map(pb.parse, (f"pybridge 1{text}" for text in shown.split("pybridge 1")[1:]))
    assert [str(t) for t in program.output_types] == ["f32[]", "f32[]"]


def test_the_first_kernel_of_a_gradient_returns_nothing_twice_and_no_argument(run):
    shown = run("show", "functions.py:f", "f32[40,30]", "f32[30]", "--derivative", "grad").output
    known, _ = map(pb.parse, (f"pybridge 1{text}" for text in shown.split("pybridge 1")[1:]))
    assert len(set(known.outputs)) == len(known.outputs)
    assert not set(known.outputs) & set(known.inputs)


def test_archives_are_written_and_shown(run, tmp_path):
    file = str(tmp_path / "f.pybridge")
    shown = run("show", "functions.py:f", "f32[40,30]", "f32[30]", "--derivative", "vjp").output
    written = run("show", "functions.py:f", "f32[40,30]", "f32[30]", "-o", file)
    assert written.exit_code == 0 and written.output == ""
    assert run("show", file, "--derivative", "vjp").output == shown
    assert str(pb.load(file)) == run("show", file).output


def test_what_no_archive_holds_and_what_is_none(run, tmp_path):
    file = str(tmp_path / "f.pybridge")
    for options in (["--plan"], ["--explain"], ["--derivative", "grad"]):
        assert run("show", "functions.py:f", "f32[4,3]", "f32[3]", "-o", file, *options).exit_code == 2
    Path(file).write_bytes(b"something")
    refused = run("show", file)
    assert refused.exit_code == 1 and "no archive" in refused.stderr
    assert run("show", file, "f32[3]").exit_code == 2
