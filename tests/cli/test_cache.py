"""`pybridge cache`, and what `pybridge doctor` says of it."""

from __future__ import annotations

import os

import pytest
from typer.testing import CliRunner

from pybridge import cache
from pybridge.api.doctor import doctor
from pybridge.cli.app import app
from pybridge.runtime import julia
from pybridge.runtime.julia import image, juliacall_choice


@pytest.fixture
def store(tmp_path, monkeypatch):
    julia.find()  # what it learns is known to this process then, and kept in no other test's store
    monkeypatch.setattr(juliacall_choice, "choice", lambda: "not asked, for the same reason")
    monkeypatch.setenv(cache.SETTING, str(tmp_path / "cache"))
    monkeypatch.setattr(image, "_folder", lambda: tmp_path / "images")
    found = cache.default()
    for k in range(20):
        found.write(str(k), bytes(100_000))
    return found


def said(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["cache", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_place_and_size_are_shown(store):
    assert f"{store.place}: 20 entries, 1.9 MB" in said()
    assert store.usage().entries == 20


def test_prune_drops_down_to_a_size(store):
    assert "dropped" in said("--prune", "1")
    assert 0 < store.usage().size <= 1 << 20


def test_clear_drops_everything(store):
    assert "dropped 20 entries" in said("--clear")
    assert store.usage().entries == 0


def test_images_of_other_versions_go(store, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "JaxprAD-1.5.3-0123456789abcdef.so").write_bytes(bytes(1000))
    assert "dropped 1 system images" in said("--prune", "1000")
    assert not list(folder.iterdir())


def test_builds_of_images_that_were_killed_go(store, tmp_path):
    killed, running = (tmp_path / "images" / f"building-{name}" for name in ("killed", "running"))
    for folder in (killed, running):
        folder.mkdir(parents=True)
        (folder / "image.o").write_bytes(bytes(1000))
    os.utime(killed, (0, 0))
    assert image.drop_outdated().size == 1000
    assert running.is_dir() and not killed.exists()


def test_turned_off(monkeypatch):
    monkeypatch.setenv(cache.SETTING, "off")
    assert f"turned off by {cache.SETTING}" in said()
    assert "turned off" in doctor()["cache"].detail


def test_doctor_shows_the_cache_and_the_linker(store):
    report = doctor()
    assert str(store.place) in report["cache"].detail
    assert report["kernel files"].state in ("ok", "missing")
