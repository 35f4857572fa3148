"""Precompiling: once for each depot, whichever process comes first, and never into the package's folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from covering import FULL

from .processes import ECHO, Python, ended

ASK = "from pybridge.runtime.julia import request; print(request('version'))"


def _precompiled(depot: Path) -> dict[Path, bytes]:
    """Every precompiled file of Echo. Each precompilation writes another build number into it."""
    return {file: file.read_bytes() for file in depot.glob("compiled/v*/Echo/*")}


def _content(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_first_starts_at_once_leave_one_valid_environment(python: Python, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    fresh = python.with_(JULIA_DEPOT_PATH=f"{tmp_path}:", ECHO_PRECOMPILED=str(trace))
    for said in [ended(process) for process in [fresh.start(ASK) for _ in range(8 if FULL else 4)]]:
        said.fine()
        assert all(line.startswith("waiting for another process") for line in said.err.splitlines())
    files = _precompiled(tmp_path)
    assert len([file for file in files if file.suffix == ".ji"]) == 1, sorted(files)
    # one more start finds it valid: it precompiles nothing
    fresh.run(ASK).fine()
    assert trace.read_text(encoding="utf-8") == "precompiled\n"
    assert _precompiled(tmp_path) == files


def test_a_second_start_precompiles_nothing_and_a_changed_source_does(python: Python, tmp_path: Path) -> None:
    package, depot = tmp_path / "Echo", tmp_path / "depot"
    shutil.copytree(ECHO, package)
    ours = python.with_(JULIA_DEPOT_PATH=f"{depot}:", PYBRIDGE_JAXPRAD=str(package))
    ours.run(ASK).fine()
    files = _precompiled(depot)
    assert files
    ours.run(ASK).fine()
    assert _precompiled(depot) == files
    source = package / "src" / "Echo.jl"
    source.write_text(source.read_text(encoding="utf-8").replace("string(VERSION)", '"changed"'))
    assert ours.run(ASK).fine() == "changed\n"
    assert _precompiled(depot) != files


def test_nothing_is_written_into_the_package(python: Python, tmp_path: Path) -> None:
    package = tmp_path / "Echo"
    shutil.copytree(ECHO, package)
    before = _content(package)
    python.with_(PYBRIDGE_JAXPRAD=str(package), JULIA_DEPOT_PATH=f"{tmp_path / 'depot'}:").run(ASK).fine()
    assert _content(package) == before


def test_a_package_that_does_not_load_is_an_error_and_can_be_mended(python: Python, tmp_path: Path) -> None:
    package = tmp_path / "Echo"
    shutil.copytree(ECHO, package)
    source = package / "src" / "Echo.jl"
    good = source.read_text(encoding="utf-8")
    source.write_text('error("not today")', encoding="utf-8")
    python.with_(PYBRIDGE_JAXPRAD=str(package), JULIA_DEPOT_PATH=f"{tmp_path / 'depot'}:", GOOD=good).run(
        """
        import os, pathlib, sys
        import pybridge.errors as e
        from pybridge.runtime.julia import request
        try:
            request("echo")
        except e.JuliaError as problem:
            assert "Echo" in str(problem) or "not today" in str(problem), problem
        else:
            raise SystemExit("loaded")
        pathlib.Path(sys.argv[1]).write_text(os.environ["GOOD"], encoding="utf-8")
        assert request("echo", "mended") == "mended"
        """,
        str(source),
    ).fine()


def test_the_users_active_project_stays_theirs(python: Python, tmp_path: Path) -> None:
    (tmp_path / "Project.toml").write_text("", encoding="utf-8")
    said = python.with_(JULIA_PROJECT=str(tmp_path)).run(
        "from pybridge.runtime.julia import request; print(request('paths').splitlines()[1])"
    )
    assert said.fine() == f"{tmp_path / 'Project.toml'}\n"


def test_our_package_does_not_become_the_active_project(python: Python) -> None:
    python.without("JULIA_PROJECT").run("""
        from pathlib import Path
        from pybridge.runtime.julia import request, status
        active = Path(request("paths").splitlines()[1]).parent
        assert active == status().julia.project, active
    """).fine()


def test_a_depot_that_cannot_be_written_is_no_obstacle(python: Python, tmp_path: Path) -> None:
    """Even root cannot make a folder below a file."""
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    python.with_(JULIA_DEPOT_PATH=str(file / "depot")).run(ASK).fine()


def test_a_folder_without_a_package_is_named(python: Python, tmp_path: Path) -> None:
    said = python.with_(PYBRIDGE_JAXPRAD=str(tmp_path)).run(ASK)
    assert said.code == 1 and "JuliaUnusable" in said.err and str(tmp_path) in said.err


@pytest.mark.parametrize(
    "start", ["from pybridge.runtime.julia import start; print(start().package.parent.parent)"]
)
def test_a_strange_path_to_the_package(start: str, python: Python, tmp_path: Path) -> None:
    package = tmp_path / 'a "strange" $name, with spaces' / "Echo"
    shutil.copytree(ECHO, package)
    assert python.with_(PYBRIDGE_JAXPRAD=str(package)).run(start).fine() == f"{package}\n"


def test_precompilation_is_told_by_pybridge_alone(python: Python, tmp_path: Path) -> None:
    """Julia 1.12 would show it on stderr, too."""
    alone = python.with_(JULIA_DEPOT_PATH=f"{tmp_path}:", PYBRIDGE_PROGRESS="off")
    said = alone.run("from pybridge.runtime.julia import start; start()")
    said.fine()
    assert said.err == "" and list(tmp_path.glob("compiled/*/Echo*"))
