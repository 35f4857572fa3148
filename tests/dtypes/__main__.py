"""The command: asks a worker for one family after the other, and starts another where one ended."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .expected import reason

ROOT = Path(__file__).resolve().parents[2]
# Those of Programs, then those of variants.FOREIGN.
DTYPES = "bool,i8,i16,i32,i64,u8,u16,u32,u64,f16,bf16,f32,f64,c64,c128,int4,uint4,f8e4,f8e5"
WORKER = (sys.executable, "-m", "dtypes.worker")


KINDS = ("crash", "hang", "wrong", "error", "refusal", "accepted")
"""Findings, the worst first: a process that ended or did not, another result, an exception that is not named,
a refusal of what JAX computes, a result where JAX refuses."""


class Worker:
    """A process that answers requests; `ended` says how it ended where it did instead."""

    def __init__(self, command: Sequence[str] = WORKER) -> None:
        folders = (ROOT, ROOT / "tests", ROOT / "tests" / "derivatives")
        path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            command,
            env=os.environ | {"PYTHONPATH": path, "PYBRIDGE_PROGRESS": "off"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.ended = ""

    def ask(self, request: dict[str, Any], seconds: float) -> Any:
        """The answer; None where the process ended or took longer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        ready = select.select([stdout], [], [], seconds)[0]
        line = stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.ended = "hang" if not ready else "crash"
        self.close()
        return None

    @property
    def status(self) -> str:
        code = self._process.returncode
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"

    def close(self) -> None:
        if self.ended == "hang":
            self._process.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Sweep:
    """Requests to one worker after another; counts what they answer."""

    def __init__(self, executes: list[str], seconds: float, command: Sequence[str] = WORKER) -> None:
        self.executes, self.seconds, self._command = executes, seconds, command
        self.worker = Worker(command)
        self.counts: Counter[str] = Counter()

    def names(self, patterns: list[str], basic: bool) -> list[str]:
        requests = [{"pattern": pattern, "basic": basic} for pattern in patterns or [""]]
        answers = [self.worker.ask(request, self.seconds) or [] for request in requests]
        return list(dict.fromkeys(name for names in answers for name in names))

    def run(self, family: str, dtypes: list[str]) -> list[dict[str, str]]:
        """The findings of a family. Where the process ends, each dtype runs alone, and the one is named."""
        request = {"family": family, "dtypes": dtypes, "executes": self.executes}
        answer = self.worker.ask(request, self.seconds)
        if answer is not None:
            self.counts["as JAX"] += answer["ok"]
            unexpected = [finding for finding in answer["findings"] if reason(**_names(finding)) is None]
            self.counts["different on purpose"] += len(answer["findings"]) - len(unexpected)
            self.counts.update(finding["kind"] for finding in unexpected)
            return unexpected
        ended, status = self.worker.ended, self.worker.status
        self.worker = Worker(self._command)
        if len(dtypes) > 1:
            return [finding for dtype in dtypes for finding in self.run(family, [dtype])]
        found = {"variant": f"{family}/{dtypes[0]}", "part": "", "execute": "", "kind": ended, "text": status}
        expected = reason(**_names(found)) is not None
        self.counts["different on purpose" if expected else ended] += 1
        return [] if expected else [found]


def _names(finding: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in finding.items() if name != "text"}


def main(
    patterns: Annotated[
        list[str] | None, typer.Argument(help="Parts of names of families; all, if none.")
    ] = None,
    dtypes: Annotated[str, typer.Option(help="Separated by commas.")] = DTYPES,
    executes: Annotated[str, typer.Option("--execute", help="Separated by commas.")] = "julia,xla,auto,eager",
    basic: Annotated[bool, typer.Option("--basic", help="The first family of each operation.")] = False,
    start: Annotated[str, typer.Option("--from", help="The family to go on from.")] = "",
    seconds: Annotated[float, typer.Option(help="Allowed to a family.")] = 600.0,
) -> None:
    sweep = Sweep(executes.split(","), seconds)
    names = sweep.names(patterns or [], basic)
    for name in names[names.index(start) if start else 0 :]:
        begin = time.monotonic()
        found = sweep.run(name, dtypes.split(","))
        print(f"{name:40} {time.monotonic() - begin:5.1f} s {len(found) or ''}", flush=True)
        for f in found:
            print(f"    {f['kind']}: {f['variant']} {f['part']} {f['execute']}: {f['text']}", flush=True)
    sweep.worker.close()
    print(", ".join(f"{count} {kind}" for kind, count in sorted(sweep.counts.items())))
    raise typer.Exit(any(sweep.counts[kind] for kind in KINDS))


if __name__ == "__main__":
    typer.run(main)
