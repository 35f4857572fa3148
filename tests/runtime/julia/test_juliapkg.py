"""What pybridge asks of juliapkg, which installs it at juliacall's first start where the network allows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from pybridge.runtime import julia

from .processes import CHECKOUT

JAXPRAD = CHECKOUT / "julia" / "Project.toml"

REQUIREMENTS = """
import io, json, contextlib
from juliapkg import deps
with contextlib.redirect_stdout(io.StringIO()):
    julia, packages = deps.find_requirements()
print(json.dumps({"julia": str(julia), "packages": {p.name: p.dict() for p in packages}}))
"""


@pytest.fixture(scope="module")
def required():
    """As juliapkg reads it, together with what juliacall requires."""
    done = subprocess.run(
        [sys.executable, "-c", REQUIREMENTS],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_jaxprad_is_the_one_next_to_pybridge(required):
    package = required["packages"]["JaxprAD"]
    project = tomllib.loads(JAXPRAD.read_text(encoding="utf-8"))
    assert package["uuid"] == project["uuid"] and package["dev"]
    assert Path(package["path"]).resolve() == JAXPRAD.parent.resolve()


def test_enzyme_is_installed_only_if_asked_for(required):
    assert "Enzyme" not in required["packages"]


def test_julia_is_one_that_juliacall_takes(required):
    assert required["julia"].startswith("1.10.3 ")
    assert "PythonCall" in required["packages"]


EMPTY_REGISTRY = """
name = "Empty"
uuid = "00000000-0000-0000-0000-000000000001"
repo = ""
[packages]
"""


def test_a_project_gets_jaxprad_without_a_network(required, tmp_path):
    """juliapkg's own call; JaxprAD needs Julia's standard library alone.

    Of registries there is an empty one: where there is none, Julia 1.12 looks for one in the network.
    """
    found = julia.find().require()
    if found.release < (1, 10):
        pytest.skip(f"juliapkg takes Julia 1.10.3 or newer, and this is {found.version}")
    registry = tmp_path / "depot" / "registries" / "Empty" / "Registry.toml"
    registry.parent.mkdir(parents=True)
    registry.write_text(EMPTY_REGISTRY, encoding="utf-8")
    depots = f"{tmp_path / 'depot'}:{os.environ.get('JULIA_DEPOT_PATH', '')}"
    package = required["packages"]["JaxprAD"]
    spec = f'Pkg.PackageSpec(name="JaxprAD", uuid="{package["uuid"]}", path=raw"{package["path"]}")'
    code = f'import Pkg; Pkg.develop([{spec}]); print(Base.find_package("JaxprAD"))'
    done = subprocess.run(
        [found.executable, "--startup-file=no", f"--project={tmp_path / 'project'}", "-e", code],
        env={
            **os.environ,
            "JULIA_DEPOT_PATH": depots,
            "JULIA_PKG_SERVER": "",
            "JULIA_PKG_PRECOMPILE_AUTO": "0",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout).resolve() == JAXPRAD.parent / "src" / "JaxprAD.jl"


def test_that_it_has_installed_nothing_is_remembered_until_it_has(tmp_path):
    code = """
    import sys
    from pybridge.runtime.julia import juliacall_choice
    assert "has not installed a Julia" in juliacall_choice.choice()
    print("juliapkg" in sys.modules)
    """
    project, cache = tmp_path / "project", tmp_path / "cache"
    variables = {
        "PYTHONPATH": str(CHECKOUT),
        "PYTHON_JULIAPKG_PROJECT": str(project),
        "PYBRIDGE_CACHE": str(cache),
    }

    def imported() -> str:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    assert [imported(), imported()] == ["True", "False"]
    meta = project / "pyjuliapkg" / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text("{}")
    assert imported() == "True"
