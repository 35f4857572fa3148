"""The wheel works in an empty environment away from the checkout; Julia's sources travel in it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

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
def wheel(tmp_path_factory) -> Path:
    """Built without isolation, as the build backend is among the development packages."""
    out = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    return next(out.glob("*.whl"))


def test_julia_sources_are_in_the_wheel(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    there = {p.relative_to(ROOT / "julia").as_posix() for p in (ROOT / "julia" / "src").rglob("*.jl")}
    missing = [p for p in there if f"pybridge/_jaxprad/{p}" not in names]
    assert there and not missing
    assert "pybridge/_jaxprad/Project.toml" in names  # where pybridge/juliapkg.json says that it is
    assert "pybridge/juliapkg.json" in names and len(names) == len(set(names))
    assert not [n for n in names if n.endswith((".so", ".pyc", "Manifest.toml"))]


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
