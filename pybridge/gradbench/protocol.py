"""GradBench's protocol: one JSON object a line, a response for each message.

It is specified in the file CONTRIBUTING.md of https://github.com/gradbench/gradbench. A message names its
kind: "start" and "analysis" are acknowledged, "define" asks whether there is a module, and "evaluate" for a
function of it on an input.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable
from typing import Any, Protocol, TextIO

from ..errors import ArgumentError, PyBridgeError
from .inputs import Input

Response = dict[str, Any]
Timings = list[dict[str, Any]]


class Answers(Protocol):
    """What the responses come from."""

    def describe(self) -> Response:
        """For the response to "start"."""

    def define(self, module: str) -> Timings:
        """Prepares a module; raises PyBridgeError where there is none of that name."""

    def evaluate(self, module: str, function: str, value: Input) -> tuple[Any, Timings]:
        """The output of a function, as JSON, and what took how long."""


def serve(answers: Answers, lines: Iterable[str], out: TextIO) -> None:
    """Answers each line until there are no more, or nobody reads the responses any longer."""
    try:
        for line in lines:
            if line.strip():
                out.write(answer(answers, line) + "\n")
                out.flush()
    except BrokenPipeError:
        pass


def answer(answers: Answers, line: str) -> str:
    """The response to a message, a line; what goes wrong is in it, whatever that is."""
    response: Response = {"id": None}
    try:
        message = _parse(line)
        response["id"] = message.get("id")
        return _line(response | _respond(answers, message))
    except PyBridgeError as error:
        failure = f"{type(error).__name__}: {error}"
    except Exception:  # the next message is to be answered too
        failure = traceback.format_exc()
    return _line(response | {"success": False, "error": failure})


def _respond(answers: Answers, message: dict[str, Any]) -> Response:
    match message.get("kind"):
        case "start":
            return answers.describe()
        case "define":
            return {"success": True, "timings": answers.define(_text(message, "module"))}
        case "evaluate":
            module, function = _text(message, "module"), _text(message, "function")
            if "input" not in message:
                raise ArgumentError("the message has no field 'input'")
            output, timings = answers.evaluate(module, function, Input(message["input"]))
            return {"success": True, "output": output, "timings": timings}
        case _:
            return {}  # the protocol asks for an acknowledgement of every other kind, known or not


def _parse(line: str) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError as error:
        raise ArgumentError(f"the message is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise ArgumentError(f"a message is an object, and this is a {type(message).__name__}")
    return message


def _text(message: dict[str, Any], field: str) -> str:
    value = message.get(field)
    if not isinstance(value, str):
        raise ArgumentError(f"the message has no text as its field {field!r}")
    return value


def _line(response: Response) -> str:
    try:
        return json.dumps(response, allow_nan=False)
    except ValueError:
        raise ArgumentError("the output has a NaN or an infinity, for which JSON has no number") from None
