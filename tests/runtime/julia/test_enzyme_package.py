"""`pybridge setup --enzyme`: by whom Enzyme.jl is installed, and into which environment."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from pybridge.errors import JuliaUnusable
from pybridge.runtime.julia import juliacall_choice, package_manager
from pybridge.runtime.julia.juliacall_choice import Choice
from pybridge.runtime.julia.package_manager import install_enzyme
from pybridge.runtime.julia.probe import Installation

from .processes import CHECKOUT, Python


def _julia(executable: Path, version: str, enzyme: str | None = None) -> Installation:
    folder = executable.parent
    return Installation(executable, version, folder, folder, folder, folder, folder / "env", None, enzyme)


@pytest.fixture
def steps() -> list[str]:
    return []


@pytest.fixture
def report(steps: list[str]) -> Callable[[str, float | None], None]:
    return lambda doing, fraction: steps.append(doing)


@pytest.fixture
def no_juliapkg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(juliacall_choice, "choice", lambda: "juliapkg has not installed a Julia")


def test_it_is_the_one_that_the_extension_is_for() -> None:
    project = tomllib.loads((CHECKOUT / "julia" / "Project.toml").read_text(encoding="utf-8"))
    assert project["weakdeps"]["Enzyme"] == package_manager.ENZYME_UUID
    assert project["compat"]["Enzyme"] == package_manager.ENZYME_VERSION


def test_where_it_is_there_nothing_is_done(report, steps) -> None:
    install_enzyme(_julia(Path("/nowhere/julia"), "1.10.1", enzyme="0.13.32"), report)
    assert not steps


def test_an_old_julia_is_told(report, steps) -> None:
    with pytest.raises(JuliaUnusable, match=r"needs Julia 1\.10 or newer, and /nowhere/julia is 1\.5\.3"):
        install_enzyme(_julia(Path("/nowhere/julia"), "1.5.3"), report)
    assert not steps


def test_a_julia_of_the_users_own_is_asked_itself(
    fake_julia, report, steps, no_juliapkg, tmp_path: Path
) -> None:
    julia = fake_julia(f'echo "$@" > {tmp_path}/asked; echo "Precompiling Enzyme"')
    install_enzyme(_julia(julia, "1.12.5"), report)
    asked = (tmp_path / "asked").read_text(encoding="utf-8")
    assert package_manager.ENZYME_UUID in asked and 'version="0.13"' in asked
    assert "Pkg: Precompiling Enzyme" in steps


def test_that_it_fails_is_told_without_a_stack_trace(fake_julia, report, no_juliapkg) -> None:
    julia = fake_julia("echo 'ERROR: no registry'; echo Stacktrace:; echo ' [1] add'; exit 1")
    with pytest.raises(JuliaUnusable) as caught:
        install_enzyme(_julia(julia, "1.12.5"), report)
    assert str(caught.value) == "Pkg failed: ERROR: no registry"


def test_in_the_environment_of_juliapkg_that_is_asked(
    fake_julia, report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By a juliapkg that only writes down what it is asked: the next `resolve` removes what that was not."""
    (tmp_path / "juliapkg.py").write_text(
        "def add(name, uuid, version): print('asked for', name, uuid, version)\n"
        "def resolve(): print('done')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    julia = _julia(fake_julia("exit 1"), "1.12.5")
    monkeypatch.setattr(juliacall_choice, "choice", lambda: Choice(julia.executable, julia.project))
    steps: list[str] = []
    install_enzyme(julia, lambda doing, fraction: steps.append(doing))
    assert steps[1:] == [f"juliapkg: asked for Enzyme {package_manager.ENZYME_UUID} 0.13", "juliapkg: done"]


def test_setup_installs_it_if_asked(python: Python) -> None:
    python.run("""
        from pybridge.runtime.julia import installing, package_manager
        asked = []
        package_manager.install_enzyme = lambda julia, report: asked.append(julia)
        installing.setup(compiled=False)
        assert not asked
        outcome = installing.setup(compiled=False, enzyme=True)
        assert asked == [outcome.julia]
    """).fine()
