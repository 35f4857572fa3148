"""What goes to PyPI: the archive of sources, and the wheel made of it, which works away from the checkout."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from pybridge import distribution

ROOT = Path(__file__).parents[2]

USE = """
import jax.numpy as jnp, numpy as np
import pybridge as pb
from pybridge.runtime import julia

assert pb.__file__.startswith({place!r}), pb.__file__
program = pb.trace(lambda x, a: jnp.sin(a * x) ** 2 / a)(np.ones(3, np.float32), np.float32(2))
x_bar, a_bar = program.vjp().call(np.ones(3, np.float32), np.float32(2), np.ones(3, np.float32))
np.testing.assert_allclose(x_bar, 2 * np.sin(2) * np.cos(2) * np.ones(3), rtol=1e-6)
print(julia.status().package)
"""


def _run(*command: object, cwd: Path) -> str:
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYBRIDGE_JAXPRAD")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory) -> Path:
    """As `make dist` builds it: the wheel from the archive of sources, by this environment's packages."""
    out = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    return out


@pytest.fixture(scope="module")
def wheel(dist) -> Path:
    return next(dist.glob("pybridge_jax-*.whl"))


@pytest.fixture(scope="module")
def sources(dist) -> set[str]:
    """The paths of the files in the archive of sources."""
    with tarfile.open(next(dist.glob("pybridge_jax-*.tar.gz"))) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


def _files(*places: str) -> set[str]:
    """The paths of the checkout's files there, new ones too, without those that git ignores."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *places]
    listed = _run(*words, cwd=ROOT).split("\0")
    return {path for path in listed if (ROOT / path).is_file()}


def test_the_wheel_has_the_package_and_what_julia_needs(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    python = _files("pybridge")
    julia = {*_files("julia/src", "julia/ext", "julia/image"), "julia/Project.toml"}
    julia = {name.replace("julia/", "pybridge/_jaxprad/", 1) for name in julia}
    assert {name for name in names if ".dist-info/" not in name} == python | julia
    # Where pybridge/juliapkg.json says that Julia's package is.
    assert {"pybridge/juliapkg.json", "pybridge/py.typed", "pybridge/_jaxprad/Project.toml"} <= set(names)
    assert not [name for name in names if name.endswith((".so", ".pyc", "Manifest.toml"))]


def test_the_sources_are_the_checkout(sources):
    assert sources - _files() == {"PKG-INFO"} and _files() <= sources
    assert {"README.md", "LICENSE", "CITATION.cff", "pybridge/__init__.py", "julia/src/JaxprAD.jl"} < sources


def test_pypi_takes_it(dist):
    _run(sys.executable, "-m", "twine", "check", "--strict", *sorted(dist.iterdir()), cwd=dist)
    _run(sys.executable, "-m", "check_wheel_contents", *dist.glob("*.whl"), cwd=dist)


def test_metadata(wheel):
    told = _metadata(wheel)
    assert (told["Name"], told["Author"]) == (distribution.NAME, "The pybridge developers")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert told["Version"] == project["version"]
    assert told["License-Expression"] == "MIT" and told["License-File"] == "LICENSE"
    assert told["Keywords"] and "Repository" in str(told.get_all("Project-URL"))


def test_links_of_the_description_lead_somewhere(wheel):
    """To this version's files in the repository, which are those of the checkout."""
    told = _metadata(wheel)
    description = told.get_payload()
    urls = dict(line.split(", ") for line in told.get_all("Project-URL"))
    links = re.findall(r"\]\(([^)]*)\)", description)
    assert len(links) > 20 and not [link for link in links if not link.startswith("https://")]
    files = f"{urls['Repository']}/blob/v{told['Version']}/"
    paths = [link.removeprefix(files).partition("#")[0] for link in links if link.startswith(files)]
    assert paths and not [path for path in paths if not (ROOT / path).exists()]
    assert not re.search(r"<img|<a |^\[[^]]+\]:", description, re.MULTILINE)  # whose links stay as they are


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_string(archive.read(name).decode())


def test_the_wheel_works_where_nothing_else_is(wheel, tmp_path):
    """pybridge itself comes from the wheel; its dependencies are this environment's, which saves a
    download.
    """
    place = tmp_path / "venv"
    venv.create(place, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    _run(
        sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--disable-pip-version-check",
        "--target", site, wheel, cwd=tmp_path,
    )  # fmt: skip
    # A plain path, not a .pth with code: an editable install of the checkout must not come along.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    package = _run(place / "bin" / "python", "-c", USE.format(place=str(place)), cwd=tmp_path)
    assert package.strip().startswith(str(place))
    command = "import pybridge.cli.app; pybridge.cli.app.app(['show', 'math:sqrt'])"
    shown = subprocess.run(
        [place / "bin" / "python", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 2 and "no arguments for math:sqrt" in " ".join(shown.stderr.split())
