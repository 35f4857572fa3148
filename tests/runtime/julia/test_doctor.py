"""`pb.doctor()` on a healthy machine and on broken ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .processes import Python

DOCTOR = "from pybridge.api.doctor import doctor; report = doctor(); print(report.json())"
NAMES = ["Julia", "start", "JaxprAD", "PythonCall", "Enzyme.jl", "jax", "juliacall", "enzyme-ad"]
NAMES += [f"engine {name}" for name in ("transpose", "enzyme", "jax", "enzyme-jax")]
NAMES += ["cache", "kernel files"]
PLACES = ["PYBRIDGE_JULIA", "started by juliacall", "juliacall's choice", "PATH"]


def _examined(python: Python) -> tuple[bool, dict[str, dict[str, str]]]:
    said = python.run(DOCTOR)
    report = json.loads(said.fine())
    assert said.err == ""
    rows = {row["name"]: row for row in report["rows"]}
    assert list(rows) == [*(f"search: {place}" for place in PLACES), *NAMES]
    for row in rows.values():
        assert row["detail"] and (
            row["remedy"] or row["state"] in ("ok", "info") or "see there" in row["detail"]
        )
    return report["healthy"], rows


def test_a_healthy_machine(python: Python) -> None:
    healthy, rows = _examined(python)
    assert healthy
    assert rows["Julia"]["state"] == rows["JaxprAD"]["state"] == rows["start"]["state"] == "ok"
    assert "Echo" in rows["JaxprAD"]["detail"]
    assert rows["engine transpose"]["state"] == rows["engine jax"]["state"] == "ok"


def test_no_julia(python: Python) -> None:
    healthy, rows = _examined(python.with_no_choice.with_(PATH="/nonexistent"))
    assert not healthy
    assert rows["Julia"]["state"] == "missing" and rows["Julia"]["remedy"].startswith("pybridge setup")
    assert rows["engine transpose"]["state"] == "missing" and rows["engine jax"]["state"] == "ok"


def test_a_broken_julia(python: Python, fake_julia: Callable[[str], Path]) -> None:
    fake = fake_julia("kill -SEGV $$")
    healthy, rows = _examined(python.with_(PYBRIDGE_JULIA=str(fake)))
    assert not healthy
    row = rows["search: PYBRIDGE_JULIA"]
    assert row["state"] == "broken" and str(fake) in row["detail"] and "PYBRIDGE_JULIA" in row["remedy"]


def test_a_package_that_ends_the_process(python: Python, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "Project.toml").write_text(
        'name = "Deadly"\nuuid = "0b0e6b5c-5c0f-4c57-9d3e-8a4b4a1f3c12"\n', encoding="utf-8"
    )
    (tmp_path / "src" / "Deadly.jl").write_text(
        "module Deadly\n__init__() = ccall(:abort, Cvoid, ())\nend\n", encoding="utf-8"
    )
    healthy, rows = _examined(python.with_(PYBRIDGE_JAXPRAD=str(tmp_path)))
    assert not healthy and rows["JaxprAD"]["state"] == "broken"


def test_a_package_that_does_not_load(python: Python, tmp_path: Path) -> None:
    healthy, rows = _examined(python.with_(PYBRIDGE_JAXPRAD=str(tmp_path)))
    assert not healthy and rows["JaxprAD"]["state"] == "broken"
    assert str(tmp_path) in rows["JaxprAD"]["detail"]


def test_a_doctor_that_stumbles_still_reports(python: Python) -> None:
    said = python.run("""
        from pybridge.api.doctor import Row, _safely
        def stumble():
            yield Row("first", "ok", "seen")
            raise RuntimeError("stumbled")
        rows = _safely("search", stumble)
        print([(row.name, row.state) for row in rows])
    """)
    assert said.fine() == "[('first', 'ok'), ('search', 'broken')]\n"


@pytest.mark.parametrize("form", ["str(report)", "render(report)"])
def test_it_prints(form: str, python: Python) -> None:
    said = python.with_no_choice.with_(PATH="/nonexistent", COLUMNS="200").run(f"""
        import io, rich.console
        from pybridge.api.doctor import doctor
        def render(report):
            console = rich.console.Console(file=io.StringIO(), width=200)
            console.print(report)
            return console.file.getvalue()
        report = doctor()
        print({form})
    """)
    text = said.fine()
    for name in [*NAMES, *PLACES, "pybridge setup"]:
        assert name in text


def test_a_julia_that_is_newer_than_any_that_was_tested(python: Python) -> None:
    said = python.run("""
        import warnings
        from pybridge.runtime.julia import probe, request
        probe.NEWEST = (1, 4)
        from pybridge.api.doctor import doctor
        row = doctor()["Julia"]
        assert row.state == "info" and "newer than 1.4" in row.detail and row.remedy
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert [request("echo", "text") for _ in range(2)] == ["text", "text"]
        (warning,) = caught
        assert warning.category is RuntimeWarning and "newer than 1.4" in str(warning.message)
        print("fine")
    """)
    assert said.fine() == "fine\n"
