"""JaxprAD meets the rules by which Julia's General registry merges new packages and versions.

Those that need no registry and no network, as AutoMerge of JuliaRegistries/RegistryCI.jl checks them. It asks
for no compat of standard libraries as yet; this does.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
import uuid
from pathlib import Path

import pytest

from pybridge.runtime import julia

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "julia"
PROJECT = tomllib.loads((PACKAGE / "Project.toml").read_text(encoding="utf-8"))
# Not as a name, nor with an extension.
WINDOWS_DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)),
}


def test_the_license_is_the_packages_own():
    assert (PACKAGE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_name_is_allowed():
    name = PROJECT["name"]
    assert re.fullmatch(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", name) and len(name) >= 5
    assert "julia" not in name.lower() and not name.startswith("Ju") and not name.lower().endswith("jl")
    assert f"module {name}" in (PACKAGE / "src" / f"{name}.jl").read_text(encoding="utf-8")


def test_identity_and_authors():
    identity = uuid.UUID(PROJECT["uuid"])
    assert identity.version == 4 and identity.variant == uuid.RFC_4122
    assert PROJECT["authors"] == ["The pybridge developers"]


def test_the_version_is_one_that_can_be_released():
    """No prerelease and no build."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", PROJECT["version"])


def test_everything_has_compat():
    needed = {*PROJECT["deps"], *PROJECT["weakdeps"], *PROJECT["extras"], "julia"}
    assert set(PROJECT["compat"]) == needed


@pytest.mark.parametrize(("name", "entry"), PROJECT["compat"].items())
def test_every_compat_has_an_upper_bound(name, entry):
    """Versions alone, which mean "up to the next breaking one"; `<` bounds by itself."""
    alternatives = [text.strip() for text in entry.split(",")]
    assert [
        text for text in alternatives if not re.fullmatch(r"[\^~]?\d+(\.\d+){0,2}|<\d+(\.\d+){0,2}", text)
    ] == []
    if name == "julia":
        assert alternatives == ["1.5"]


def test_what_an_old_pkg_needs():
    """Pkg before Julia 1.9 refuses compat of what is neither in `deps` nor in `extras`."""
    assert PROJECT["weakdeps"].items() <= PROJECT["extras"].items()


def test_names_of_sources_are_allowed_on_every_system():
    for folder, folders, files in os.walk(PACKAGE / "src"):
        names = [*folders, *files]
        assert len({name.lower() for name in names}) == len(names), folder
        assert not [name for name in names if re.search(r'[<>:"\\|?*\x00-\x1f]|[.\s]$', name)], folder
        assert not [name for name in names if name.lower().split(".")[0] in WINDOWS_DEVICES], folder


def test_pkg_resolves_it_without_a_network(tmp_path):
    """With the Julia that the other tests use, and a registry that has nothing."""
    found = julia.find().julia
    if found is None:
        pytest.skip("there is no Julia")
    registry = tmp_path / "depot" / "registries" / "Empty"
    registry.mkdir(parents=True)
    identity = uuid.uuid4()
    (registry / "Registry.toml").write_text(f'name = "Empty"\nuuid = "{identity}"\nrepo = ""\n\n[packages]\n')
    project = tmp_path / "project"
    project.mkdir()
    (project / "Project.toml").write_bytes((PACKAGE / "Project.toml").read_bytes())
    (project / "src").mkdir()
    (project / "src" / "JaxprAD.jl").write_text("module JaxprAD\nend\n")
    code = 'using Pkg; VERSION >= v"1.7" && Pkg.offline(true); Pkg.instantiate(); Pkg.status()'
    settings = {
        "JULIA_DEPOT_PATH": f"{tmp_path / 'depot'}{os.pathsep}",
        "JULIA_PKG_PRECOMPILE_AUTO": "0",
        "JULIA_PKG_SERVER": "",
    }
    done = subprocess.run(
        [found.executable, "--startup-file=no", "-O0", f"--project={project}", "-e", code],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    manifest = (project / "Manifest.toml").read_text(encoding="utf-8")
    assert all(uuid_ in manifest for uuid_ in PROJECT["deps"].values())
