"""A run of the fuzzer: Programs one after another, every engine on each, failures shrunk and kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .children import Children, Ended
from .contenders import BASELINE, contenders
from .findings import Finding
from .judging import Failure, judge
from .making import Sample, sample
from .reference import Expected
from .shrinking import shrunk
from .stages import Outcome

_QUESTIONS = {"hang": 12, "crash": 40}
"""How often a smaller sample is tried; 100 times where that costs less."""


@dataclass
class Campaign:
    """programs: how many were tried. skipped: how many of them JAX could not run in double precision.

    doubts: how often an engine differs from JAX where JAX's derivative is not that of the value.
    findings: by their keys, with the file of each. duplicates: how often each was found again.
    """

    seed: int
    programs: int = 0
    skipped: int = 0
    doubts: int = 0
    seconds: float = 0.0
    findings: dict[str, tuple[Finding, Path]] = field(default_factory=dict)
    duplicates: dict[str, int] = field(default_factory=dict)

    def summary(self) -> str:
        again = sum(self.duplicates.values())
        return (
            f"{self.programs} Programs in {self.seconds:.0f} s, {len(self.findings)} findings"
            f" ({again} duplicates), {self.skipped} without a reference,"
            f" {self.doubts} in which JAX is in doubt; seed {self.seed}"
        )


@dataclass(frozen=True)
class Settings:
    """first: the number of the first Program. timeout: seconds for a value or a derivative of it."""

    engines: tuple[str, ...]
    seconds: float
    seed: int
    folder: Path
    first: int = 0
    most: int | None = None
    timeout: float = 60.0


def fuzz(
    settings: Settings,
    progress: Callable[[str], None] = lambda _: None,
    make: Callable[[int, int], Sample] = sample,
) -> Campaign:
    """Tries Programs until the time is over. Writes a file for each finding, and `fuzz.log`, in the folder.

    make: the sample of a seed and a number.
    Raises UnknownOption and EngineUnavailable before anything runs.
    """
    chosen = contenders(settings.engines)
    settings.folder.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(settings.seed)
    with (
        (settings.folder / "fuzz.log").open("a") as log,
        Children([BASELINE, *(c for c in chosen if c != BASELINE)], settings.timeout) as children,
    ):
        run = _Run(
            settings, campaign, children, chosen, progress, lambda line: print(line, file=log, flush=True)
        )
        run.say(f"engines {', '.join(chosen)}, seed {settings.seed}, from Program {settings.first}")
        try:
            run.until_the_end(make)
        finally:
            run.say(campaign.summary())
    return campaign


class _Run:
    def __init__(
        self,
        settings: Settings,
        campaign: Campaign,
        children: Children,
        chosen: Sequence[str],
        progress: Callable[[str], None],
        log: Callable[[str], None],
    ):
        self.settings, self.campaign, self.children, self.chosen = settings, campaign, children, chosen
        self.progress, self.log = progress, log
        self.start = time.monotonic()

    def say(self, text: str) -> None:
        self.log(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}")
        self.progress(text)

    def until_the_end(self, make: Callable[[int, int], Sample]) -> None:
        number, said = self.settings.first, 0.0
        while self._going(number):
            self.progress(f"Program {number}, {len(self.campaign.findings)} findings")
            self._one(number, make(self.settings.seed, number))
            number += 1
            self.campaign.programs += 1
            self.campaign.seconds = time.monotonic() - self.start
            if self.campaign.seconds > said + 60:
                said = self.campaign.seconds
                self.log(self.campaign.summary())

    def _going(self, number: int) -> bool:
        most = self.settings.most
        enough = most is not None and number >= self.settings.first + most
        return not enough and time.monotonic() - self.start < self.settings.seconds

    def _one(self, number: int, sample: Sample) -> None:
        wanted = self._expected(sample)
        if wanted is None or "value" not in wanted.runs:
            self.campaign.skipped += 1
            why = "" if wanted is None else wanted.failures.get("value", "")
            self.log(f"no reference for Program {number}: {why}")
            return
        own = self.children.contenders[BASELINE].outcome(sample)
        for contender in self.chosen:
            failure = self._failure(contender, sample, wanted, own)
            if failure is not None and failure.kind == "doubt":
                self.campaign.doubts += 1
                self.log(f"Program {number}, {contender}: {failure.detail}\n{sample.program}")
            elif failure is not None:
                self._keep(contender, number, failure, sample)

    def _expected(self, sample: Sample) -> Expected | None:
        try:
            return self.children.reference.expected(sample)
        except Ended as end:
            self.log(f"the reference: {end}\n{sample.program.to_text()}")
            return None

    def _failure(self, contender: str, sample: Sample, wanted: Expected, own: Outcome) -> Failure | None:
        if contender == BASELINE:
            return judge(sample, wanted, own, None)
        return judge(sample, wanted, self.children.contenders[contender].outcome(sample), own)

    def _keep(self, contender: str, number: int, failure: Failure, sample: Sample) -> None:
        found = Finding(contender, self.settings.seed, number, failure, sample)
        if failure.kind != "raises" or not self._known(found):
            found = self._shrunk(found)
            if not self._known(found):
                path = found.write(self.settings.folder)
                self.campaign.findings[found.key] = found, path
                self.say(f"{path.name}: {found}")

    def _known(self, found: Finding) -> bool:
        known = found.key in self.campaign.findings
        if known:
            self.campaign.duplicates[found.key] = self.campaign.duplicates.get(found.key, 0) + 1
        return known

    def _shrunk(self, found: Finding) -> Finding:
        self.progress(f"shrinking Program {found.number}: {found.contender}, {found.failure.kind}")
        last = found.failure

        def fails(candidate: Sample) -> bool:
            """In the same way; a crash costs a new process, and a hang the whole patience."""
            nonlocal last
            wanted = self._expected(candidate)
            if wanted is None or "value" not in wanted.runs:
                return False
            own = self.children.contenders[BASELINE].outcome(candidate)
            again = self._failure(found.contender, candidate, wanted, own)
            if again is None or again.kind != found.failure.kind:
                return False
            last = again
            return True

        budget = _QUESTIONS.get(found.failure.kind, 100)
        small = shrunk(found.sample, fails, budget)
        return replace(found, failure=last, sample=small)
