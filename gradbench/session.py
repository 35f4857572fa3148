"""Connects GradBench's evals with a tool, as its own command `gradbench run` does, and tables the outcome.

    python gradbench/session.py CHECKOUT [EVAL ...] [--tool COMMAND] [--arguments WORDS]

CHECKOUT is one of https://github.com/gradbench/gradbench in which `make -C cpp` and `make -C tools/manual`
have run: most evals hold a tool's outputs against those of its tool `manual`. This Python needs what the
evals import: numpy, scipy, pydantic and dataclasses-json. Status 1 unless each output of each eval was valid.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

EVALS = ("hello", "llsq", "lse", "ode", "gmm", "lstm", "det", "kmeans", "ba", "ht", "particle", "saddle")


@dataclass(frozen=True)
class Evaluation:
    """One function on one input: what the eval says of it, and the mean of the timings of each name."""

    function: str
    workload: str
    valid: bool
    error: str
    runs: int
    seconds: dict[str, float]


@dataclass
class Outcome:
    """A session's evaluations in their order, and how long all of it took."""

    module: str
    evaluations: list[Evaluation] = field(default_factory=list)
    failure: str = ""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return bool(self.evaluations) and not self.failure and all(e.valid for e in self.evaluations)


def run_session(eval_command: list[str], tool_command: list[str], module: str, **where: Any) -> Outcome:
    """Passes each message of the eval to the tool and each response back, until the eval ends."""
    outcome, start = Outcome(module), time.perf_counter()
    with _process(eval_command, **where) as asks, _process(tool_command) as answers:
        pending: dict[int, tuple[dict, dict]] = {}
        for line in _stream(asks.stdout):
            message = json.loads(line)
            reply = _ask(answers, line)
            if not reply:
                outcome.failure = f"the tool ended on the message {message['id']}"
                break
            _note(outcome, pending, message, json.loads(reply))
            _stream(asks.stdin).write(reply)
            _stream(asks.stdin).flush()
        with contextlib.suppress(BrokenPipeError):  # of a message that the tool did not come to read
            _stream(answers.stdin).close()
        if answers.wait(timeout=60) != 0:
            outcome.failure = f"the tool ended with status {answers.returncode}"
    if asks.returncode != 0:
        outcome.failure = outcome.failure or f"the eval ended with status {asks.returncode}"
    outcome.seconds = time.perf_counter() - start
    return outcome


def _ask(answers: subprocess.Popen, line: str) -> str:
    """The tool's response, empty where it has ended."""
    with contextlib.suppress(BrokenPipeError):
        _stream(answers.stdin).write(line)
        _stream(answers.stdin).flush()
    return _stream(answers.stdout).readline()


def _note(outcome: Outcome, pending: dict[int, tuple[dict, dict]], message: dict, reply: dict) -> None:
    kind = message["kind"]
    if kind == "define" and not reply["success"]:
        outcome.failure = reply.get("error", "undefined")
    elif kind == "evaluate" and reply["success"]:
        kept = {key: value for key, value in reply.items() if key != "output"}
        pending[message["id"]] = message | {"input": None}, kept
    elif kind == "evaluate":
        outcome.evaluations.append(_evaluation(message, reply, False, reply.get("error", "")))
    elif kind == "analysis":
        asked, answered = pending.pop(message["of"])
        evaluation = _evaluation(asked, answered, message["valid"], message.get("error", ""))
        outcome.evaluations.append(evaluation)
        print(f"{outcome.module}::{evaluation.function} {evaluation.workload}", file=sys.stderr, flush=True)


def _evaluation(message: dict, reply: dict, valid: bool, error: str) -> Evaluation:
    times: dict[str, list[float]] = {}
    for timing in reply.get("timings") or []:
        times.setdefault(timing["name"], []).append(timing["nanoseconds"] / 1e9)
    means = {name: sum(of) / len(of) for name, of in times.items()}
    workload = message.get("description") or ""
    return Evaluation(message["function"], workload, valid, error, len(times.get("evaluate", [])), means)


@contextlib.contextmanager
def _process(command: list[str], **where: Any) -> Iterator[subprocess.Popen]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, **where) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def _commands(checkout: Path, module: str, arguments: str) -> tuple[list[str], dict[str, Any]]:
    script = checkout / "python" / "gradbench" / "gradbench" / "evals" / module / "run.py"
    environment = os.environ | {"PYTHONPATH": str(checkout / "python" / "gradbench")}
    return [sys.executable, str(script), *shlex.split(arguments)], {"cwd": checkout, "env": environment}


def table(outcomes: list[Outcome]) -> str:
    lines = ["| function | workload | valid | runs | compile | evaluate |", "|---|---|---|--:|--:|--:|"]
    for outcome in outcomes:
        for e in outcome.evaluations:
            times = " | ".join(_time(e.seconds.get(name)) for name in ("compile", "evaluate"))
            said = "yes" if e.valid else f"no: {e.error.strip().splitlines()[-1] if e.error.strip() else ''}"
            lines.append(f"| {outcome.module}::{e.function} | {e.workload} | {said} | {e.runs} | {times} |")
    for outcome in outcomes:
        valid = sum(e.valid for e in outcome.evaluations)
        verdict = "passed" if outcome.passed else f"failed {outcome.failure}"
        lines.append(f"\n{outcome.module}: {valid} of {len(outcome.evaluations)} valid, {verdict}")
    return "\n".join(lines)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    unit, size = next((u for u in (("s", 1.0), ("ms", 1e-3)) if seconds >= u[1]), ("µs", 1e-6))
    return f"{seconds / size:.3g} {unit}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("evals", nargs="*", default=EVALS, metavar="EVAL")
    parser.add_argument("--tool", default="pybridge gradbench", help="the tool's command")
    parser.add_argument("--arguments", default="", help="for the eval, such as '--min-runs 3'")
    options = parser.parse_args()
    outcomes = []
    for module in options.evals:
        command, where = _commands(options.checkout.resolve(), module, options.arguments)
        outcomes.append(run_session(command, shlex.split(options.tool), module, **where))
    print(table(outcomes))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main())
