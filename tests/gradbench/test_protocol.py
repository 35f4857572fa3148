"""The protocol: what is answered to which line, in one process and through the command."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pybridge.errors import ArgumentError, UnknownOption
from pybridge.gradbench import Tool, answer, serve
from pybridge.gradbench.inputs import Input

ROOT = Path(__file__).parents[2]


class Doubling:
    """A tool of one function, which goes wrong on some inputs."""

    def describe(self):
        return {"tool": "doubling"}

    def define(self, module):
        if module != "twice":
            raise UnknownOption(f"no {module}")
        return []

    def evaluate(self, module, function, value):
        self.define(module)
        if value.value == "break":
            raise RuntimeError("broken")
        return 2 * value.number(), [{"name": "evaluate", "nanoseconds": 1}]


def response(**message) -> dict:
    return json.loads(answer(Doubling(), json.dumps(message)))


def evaluated(value: object) -> dict:
    return response(id=7, kind="evaluate", module="twice", function="double", input=value)


def test_messages_have_their_responses():
    assert response(id=0, kind="start", eval="x") == {"id": 0, "tool": "doubling"}
    assert response(id=1, kind="define", module="twice") == {"id": 1, "success": True, "timings": []}
    assert response(id=2, kind="analysis", of=1, valid=False, error="no") == {"id": 2}
    assert response(id=3, kind="of tomorrow") == {"id": 3}
    timings = [{"name": "evaluate", "nanoseconds": 1}]
    assert evaluated(4) == {"id": 7, "success": True, "output": 8.0, "timings": timings}


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"kind": "define", "module": "thrice"}, "UnknownOption: no thrice"),
        ({"kind": "define"}, "no text as its field 'module'"),
        ({"kind": "define", "module": 3}, "no text as its field 'module'"),
        ({"kind": "evaluate", "module": "thrice", "function": "f", "input": 1}, "UnknownOption: no thrice"),
        ({"kind": "evaluate", "module": "twice", "input": 1}, "no text as its field 'function'"),
        ({"kind": "evaluate", "module": "twice", "function": "f"}, "no field 'input'"),
        ({"kind": "evaluate", "module": "twice", "function": "f", "input": "break"}, "RuntimeError: broken"),
        (
            {"kind": "evaluate", "module": "twice", "function": "f", "input": 1e308},
            "has a NaN or an infinity",
        ),
    ],
)
def test_what_goes_wrong_is_a_response(message, error):
    sent = response(id=5, **message)
    assert sent["id"] == 5 and sent["success"] is False and error in sent["error"]


@pytest.mark.parametrize("line", ["nonsense", "[1, 2]", "{", '"text"', "nan nan", "[" * 100_000])
def test_a_line_that_is_no_message_is_answered(line):
    sent = json.loads(answer(Doubling(), line))
    assert sent["id"] is None and sent["success"] is False and sent["error"]


def test_it_ends_with_the_messages_or_with_the_reader():
    out = io.StringIO()
    serve(Doubling(), ['{"id": 0, "kind": "start"}\n', "\n", '{"id": 1, "kind": "analysis"}\n'], out)
    assert [json.loads(line)["id"] for line in out.getvalue().splitlines()] == [0, 1]

    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    serve(Doubling(), ['{"id": 0, "kind": "start"}'] * 2, Gone())


def test_fields_that_do_not_fit_are_named():
    value = Input({"n": 2.5, "x": [[1, 2], [3]], "i": [0, 7], "e": [], "deep": {"s": [True]}})
    with pytest.raises(ArgumentError, match="input has no field 'm'"):
        value.at("m")
    with pytest.raises(ArgumentError, match=r"input.n is to be an integer of at least 1, and is 2.5"):
        value.at("n").integer(at_least=1)
    with pytest.raises(ArgumentError, match=r"input.x is to be an array of float64, \[any, 2\]"):
        value.at("x").floats(None, 2)
    with pytest.raises(ArgumentError, match=r"input.i has an index that is not from 0 to 6"):
        value.at("i").indices(7, None)
    with pytest.raises(ArgumentError, match=r"input.i has the shape \[2\]"):
        value.at("i").floats(3)
    with pytest.raises(ArgumentError, match=r"input.deep.s is to be an array of float64"):
        value.at("deep").at("s").floats(None)
    assert value.at("i").floats(None).tolist() == [0, 7] and value.at("e").floats(None, 2).shape == (0, 2)


def test_runs_and_seconds_are_at_least_those_asked_for():
    tool = Tool()
    field = {"x": [1.0, 2.0]}
    for runs, seconds in ((5, 0), (1, 0.05), (0, 0)):
        wanted = {"min_runs": runs, "min_seconds": seconds}
        _, timings = tool.evaluate("lse", "primal", Input(field | wanted))
        assert timings[0]["name"] == "compile"
        evaluations = [t["nanoseconds"] for t in timings[1:] if t["name"] == "evaluate"]
        assert len(evaluations) == len(timings) - 1 >= max(runs, 1)
        assert sum(evaluations) >= 1e9 * seconds
        assert len(evaluations) == max(runs, 1) or sum(evaluations[:-1]) < 1e9 * seconds


SESSION = [
    {"id": 0, "kind": "start", "eval": "hello"},
    {"id": 1, "kind": "define", "module": "hello"},
    {"id": 2, "kind": "evaluate", "module": "hello", "function": "square", "input": 3.0},
    {"id": 3, "kind": "analysis", "of": 2, "valid": True},
    {"id": 4, "kind": "evaluate", "module": "hello", "function": "double", "input": "three"},
    {"id": 5, "kind": "evaluate", "module": "hello", "function": "double", "input": 9.0},
    {"id": 6, "kind": "define", "module": "goodbye"},
    {"id": 7, "kind": "evaluate", "module": "llsq", "function": "primal", "input": {"x": [1.0], "n": "2"}},
]


def test_a_session_through_the_command():
    lines = [json.dumps(message) for message in SESSION]
    done = _command("\n".join([*lines[:4], "no JSON", *lines[4:]]) + "\n")
    assert done.returncode == 0, done.stderr
    sent = {r["id"]: r for r in map(json.loads, done.stdout.splitlines())}
    assert list(sent) == [0, 1, 2, 3, None, 4, 5, 6, 7]
    assert sent[0]["tool"] == "pybridge" and sent[0]["config"]["engine"] == "transpose"
    assert [sent[k].get("output") for k in (2, 5)] == [9.0, 18.0] and sent[3] == {"id": 3}
    assert [t["name"] for t in sent[5]["timings"]] == ["compile", "evaluate"]
    assert [k for k, r in sent.items() if r.get("success") is False] == [None, 4, 6, 7]
    assert "there is no module 'goodbye'" in sent[6]["error"] and "input.min" not in sent[7]["error"]


def test_a_wrong_engine_is_refused_before_any_message():
    with pytest.raises(UnknownOption, match="steam"):
        Tool("steam")
    with pytest.raises(UnknownOption, match="by hand"):
        Tool(execute="by hand")


def _command(text: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pybridge", "gradbench"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, input=text, capture_output=True, text=True, env=environment, timeout=200)
