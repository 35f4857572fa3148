"""`pybridge setup`: when it installs nothing, and what it says when it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pybridge.errors import JuliaUnusable
from pybridge.runtime.julia import debian
from pybridge.runtime.julia.apt_sources import Source

from .processes import Python

DEBIAN = debian.Machine(
    {"ID": "debian", "VERSION_CODENAME": "bookworm", "PRETTY_NAME": "Debian 12"},
    is_root=True,
    has_apt=True,
    sources=(Source("http://mirror.test/debian", "bookworm", ("main",), "/k/debian-archive-keyring.gpg"),),
)


def _refusal(machine: debian.Machine, consent: bool = True) -> str:
    def never(doing: str, fraction: float | None) -> None:
        pytest.fail(f"began {doing}")

    with pytest.raises(JuliaUnusable) as caught:
        debian.install(consent, never, machine)
    assert "PYBRIDGE_JULIA" in str(caught.value)  # what one can do by hand
    return str(caught.value)


def test_the_suite_with_julia_is_taken_from_the_machines_own_mirror() -> None:
    (source,) = DEBIAN.mirrors()
    assert source.line() == (
        "deb [signed-by=/k/debian-archive-keyring.gpg] http://mirror.test/debian bullseye main"
    )


def test_without_consent() -> None:
    assert "--yes" in _refusal(DEBIAN, consent=False)


def test_without_root() -> None:
    assert "root" in _refusal(replace(DEBIAN, is_root=False))


def test_without_debian() -> None:
    system = {"ID": "fedora", "PRETTY_NAME": "Fedora 40"}
    assert "Fedora 40 is not Debian" in _refusal(replace(DEBIAN, system=system))
    assert "is not Debian" in _refusal(replace(DEBIAN, has_apt=False))


def test_without_a_source_for_debian() -> None:
    assert "bookworm main" in _refusal(replace(DEBIAN, sources=()))


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("dlstatus:1:33.5:Retrieving file 1 of 3", ("downloading: Retrieving file 1 of 3", 0.335)),
        ("pmstatus:julia:50.0:Unpacking julia (amd64)", ("installing: Unpacking julia (amd64)", 0.5)),
        ("pmstatus:libgit2-1.1:amd64:60:Configuring", ("installing: Configuring", 0.6)),
        ("Reading package lists...", None),
    ],
)
def test_apts_status_lines(line: str, step: tuple[str, float] | None) -> None:
    assert debian.parse_status(line) == step


def test_an_apt_that_fails_is_told_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fake apt-get on PATH, which shows as well that only private folders are named to it."""
    record = tmp_path / "calls"
    fake = tmp_path / "bin" / "apt-get"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$@" >> {record}\necho "E: no such mirror"\nexit 100\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/bin")
    said: list[str] = []
    with pytest.raises(JuliaUnusable, match="no such mirror") as caught:
        debian.install(True, lambda doing, fraction: said.append(doing), DEBIAN)
    assert "http://mirror.test/debian" in str(caught.value) and said
    (call,) = record.read_text(encoding="utf-8").splitlines()
    assert "Dir::Etc::sourceparts=/dev/null" in call and "Dir::State::lists=" in call
    assert "/etc/apt" not in call and "/var/lib/apt" not in call


def test_setup_with_a_julia_says_so_and_installs_nothing(python: Python) -> None:
    said = python.run("""
        from pybridge.runtime.julia import find
        from pybridge.runtime.julia.installing import setup
        steps = []
        outcome = setup(True, lambda doing, fraction: steps.append(doing))
        assert outcome.julia == find().julia and not outcome.installed
        assert "already there" in outcome.how, outcome
        assert steps[0] == "looking for Julia" and "precompiling JaxprAD" in steps, steps
        assert not any("apt" in step or "juliapkg" in step or "Debian" in step for step in steps), steps
    """)
    said.fine()
    assert said.out == ""


def test_an_image_is_made_unless_it_is_declined(python: Python) -> None:
    python.run("""
        from pybridge.runtime.julia import image
        from pybridge.runtime.julia.installing import setup
        made = []
        image.wanted = lambda julia, package: True
        image.build = lambda julia, package, report: made.append(package.name)
        setup(compiled=False)
        assert not made
        setup()
        assert len(made) == 1
    """).fine()


def test_setup_leaves_a_broken_setting_to_the_user(python: Python, fake_julia: Callable[[str], Path]) -> None:
    fake = fake_julia("exit 3")
    python.with_(PYBRIDGE_JULIA=str(fake)).run("""
        import pybridge.errors as e
        from pybridge.runtime.julia.installing import setup
        steps = []
        try:
            setup(True, lambda doing, fraction: steps.append(doing))
        except e.JuliaUnusable as problem:
            assert "PYBRIDGE_JULIA" in str(problem) and steps == ["looking for Julia"], (problem, steps)
        else:
            raise SystemExit("set up something")
    """).fine()


def test_the_progress_display_is_on_stderr(python: Python) -> None:
    said = python.run("""
        from pybridge.runtime.julia.installing import rich_progress, setup
        with rich_progress() as report:
            setup(False, report)
    """)
    assert said.fine() == "" and "ready: Julia" in said.err
