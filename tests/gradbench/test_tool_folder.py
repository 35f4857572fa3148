"""What GradBench asks of a tool's folder, and of the messages between an eval and a tool."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from pybridge.gradbench import NAMES

FOLDER = Path(__file__).parents[2] / "gradbench"


def test_the_folder_has_what_gradbench_asks_for():
    tool = FOLDER / "tools" / "pybridge"
    assert (tool / "evals.txt").read_text().split() == sorted(NAMES)
    *_, entry, label = (tool / "Dockerfile").read_text().splitlines()
    assert json.loads(entry.removeprefix("ENTRYPOINT ")) == ["pybridge", "gradbench"]
    assert label == "LABEL org.opencontainers.image.source=https://github.com/gradbench/gradbench"
    assert "Commentary" in (tool / "README.md").read_text()


EVAL = """
import json, sys

def send(**message):
    print(json.dumps(message), flush=True)
    return json.loads(sys.stdin.readline())

send(id=0, kind="start", eval="half")
if send(id=1, kind="define", module="half")["success"]:
    for k, x in enumerate((4.0, 5.0, "six")):
        answer = send(id=2 + 2 * k, kind="evaluate", module="half", function="f", input=x, description=str(x))
        if answer["success"]:
            valid = answer["output"] == x / 2
            send(id=3 + 2 * k, kind="analysis", of=2 + 2 * k, valid=valid, error=None if valid else "no half")
"""
TOOL = """
import json, sys

for line in sys.stdin:
    message = json.loads(line)
    answer = {{"id": message["id"]}}
    if message["kind"] == "define":
        answer["success"] = {defines}
    if message["kind"] == "evaluate":
        answer["success"] = not isinstance(message["input"], str)
        answer["output"] = message["input"] // 2 if answer["success"] else None
        answer["timings"] = [{{"name": "evaluate", "nanoseconds": n}} for n in (1000, 3000)]
    print(json.dumps(answer), flush=True)
    if {dies}:
        break
"""


@pytest.fixture(scope="module")
def session():
    spec = importlib.util.spec_from_file_location("gradbench_session", FOLDER / "session.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look up their module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def run(session, defines: bool = True, dies: bool = False):
    tool = TOOL.format(defines=defines, dies=dies)
    return session.run_session([sys.executable, "-c", EVAL], [sys.executable, "-c", tool], "half")


def test_a_session_tells_what_is_valid(session):
    outcome = run(session)
    assert [(e.workload, e.valid, e.runs) for e in outcome.evaluations] == [
        ("4.0", True, 2),
        ("5.0", False, 2),
        ("six", False, 2),
    ]
    assert not outcome.passed and outcome.evaluations[0].seconds == {"evaluate": pytest.approx(2e-6)}
    text = session.table([outcome])
    assert "| half::f | 5.0 | no: no half | 2 | - | 2 µs |" in text and "1 of 3 valid, failed" in text


@pytest.mark.parametrize(
    ("defines", "dies", "failure"), [(False, False, "undefined"), (True, True, "ended on")]
)
def test_a_session_that_does_not_come_to_its_end_has_failed(session, defines, dies, failure):
    outcome = run(session, defines, dies)
    assert not outcome.passed and failure in outcome.failure
