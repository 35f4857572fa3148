"""What is exported for other devices runs from files alone, and what differs there is seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from covering import FULL

from accelerators import entries, page, run

ROOT = Path(__file__).resolve().parents[2]
# A row to be timed, values of which more than one is right, and what is refused.
NAMES = ("sin/f64", "cos/f64", "schur/f64", "durbin-small")
NAMES += ("eigh*", "schur*", "gmm*") if FULL else ("eigh/f64", "eigh_batch/c128")
SMALL = {"sin/f64", "cos/f64", "durbin-small"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder of some entries, and what run.py finds on this CPU, without pybridge."""
    target = tmp_path_factory.mktemp("accelerators") / "exported"
    words = ["-m", "accelerators", "write", str(target), *NAMES]
    made = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert made.returncode == 0, made.stderr
    return target, _run(target)


def _run(target: Path) -> tuple[int, dict]:
    results = target.parent / "results.json"
    words = [sys.executable, str(ROOT / "accelerators/run.py"), str(target), str(results)]
    done = subprocess.run(
        words, env={**os.environ, "PATH": "/nowhere"}, capture_output=True, text=True, timeout=280
    )
    assert results.exists(), done.stderr
    return done.returncode, json.loads(results.read_text())


def test_all_agree_on_this_cpu_and_rows_are_timed(written):
    _, (status, found) = written
    assert status == 0 and all(entry["verdict"] == run.AGREES for entry in found["entries"]), found
    names = {entry["name"] for entry in found["entries"]}
    assert "sin/f64" in names and "durbin-small" in names
    rows = [entry for entry in found["entries"] if entry["kind"] == run.ROW]
    assert rows and all(min(row["seconds"].values()) > 0 for row in rows)
    assert any(refused["name"].startswith("schur") for refused in found["refused"])


def test_what_differs_is_a_failure_of_its_entry_alone(written):
    target, _ = written
    text = json.loads((target / "entries.json").read_text())
    listed = [entry for entry in text["entries"] if entry["name"] in SMALL]
    (target / "entries.json").write_text(json.dumps(text | {"entries": listed}))
    files = {entry["name"]: target / entry["files"][run.OURS] for entry in listed}
    files["sin/f64"].write_bytes(files["cos/f64"].read_bytes())
    files["durbin-small"].write_bytes(b"nothing")
    status, found = _run(target)
    wrong = {entry["name"]: entry for entry in found["entries"] if entry["verdict"] != run.AGREES}
    assert status == 1 and set(wrong) == {"sin/f64", "durbin-small"}
    assert wrong["sin/f64"]["errors"][run.OURS] > 0.1 and wrong["durbin-small"]["failures"]
    text = page.text(found)
    assert "**sin/f64** is off by" in text and "**durbin-small** fails" in text


def test_the_page_has_what_was_found(written, tmp_path):
    _, (_, found) = written
    target, results = tmp_path / "page.md", tmp_path / "found.json"
    target.write_text("Before.\n<!-- accelerators -->\nold\n<!-- end of accelerators -->\nAfter.\n")
    results.write_text(json.dumps(found))
    page.write(target, results)
    text = target.read_text()
    assert text.startswith("Before.\n<!-- accelerators -->\n") and text.endswith(
        "<!-- end of accelerators -->\nAfter.\n"
    )
    assert "old" not in text and "| durbin-small | " in text and "cases agree" in text


def test_names_choose():
    assert [entry.name for entry in entries.cases(lambda name: name == "sin/f64")] == ["sin/f64"]
