"""`make test-quick` selects tests that there are."""

from __future__ import annotations

import subprocess

from _pytest.mark.expression import Expression

from pybridge.ir.schema import OPERATIONS
from tests.quick import __main__ as quick


def test_cases_of_every_operation_can_be_selected():
    for name in OPERATIONS:
        selects = Expression.compile(quick.cases_of([name]))
        assert selects.evaluate(lambda part, name=name: part in f"test_in_float64[{name}/x64]")
        assert not selects.evaluate(lambda part: part in "test_in_float64[another/x64]")


def test_a_changed_rule_has_the_cases_of_its_operations_and_its_own_test():
    found = {job.name: job for job in quick.jobs(["julia/src/rules/unary.jl"])}
    assert "[not or [" in " ".join(found["cases"].command)
    assert "rules/elementwise" in found["Julia"].command
    assert found["Julia"].left_out


def test_what_differs_from_the_last_commit_is_listed(monkeypatch, tmp_path):
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a", *words], cwd=tmp_path, check=True)

    git("init", "--quiet")
    for name in ("kept", "changed"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    git("add", ".")
    git("commit", "--quiet", "--message=first")
    (tmp_path / "changed").write_text("anew", encoding="utf-8")
    (tmp_path / "new file").touch()
    monkeypatch.setattr(quick, "ROOT", tmp_path)
    assert quick.changed_files() == ["changed", "new file"]
