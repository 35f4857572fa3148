"""Julia test files, by what they share with a changed source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from pybridge.ir.schema import OPERATIONS

from .choice import ROOT, Candidate, seconds_of

TESTS = ROOT / "julia" / "test"
_ALWAYS = ("internals", "layers", "line_length")
_WORD = re.compile(r"[A-Za-z_]\w*!?")
# What a file defines: functions, types, constants, and the primitives that it names by symbols.
_DEFINED = re.compile(
    r"^(?:@\w+ )*(?:function |(?:mutable )?struct |abstract type |const |macro )?"
    r"([A-Za-z_]\w*!?)(?=[({ =<]|$)"
    r"|@\w+\(:(\w+)",
    re.MULTILINE,
)
_NO_NAMES = frozenset({"end", "for", "if", "let", "else", "function", "module", "using", "import", "include"})


def candidates(changed: Iterable[str], known: dict[str, float]) -> Iterator[Candidate]:
    """Each test file that has a name in common with a changed source or is of the same layer."""
    changed = [path for path in changed if path.startswith("julia/") and path.endswith(".jl")]
    if not changed:
        return
    names = set().union(*(defined(path) for path in changed))
    rarity = _rarity()
    for file in test_files():
        path, word = file.relative_to(ROOT).as_posix(), file.relative_to(TESTS).with_suffix("").as_posix()
        seconds = seconds_of(path, known)
        shared = sum(1 / rarity[name] for name in names & _words(file))
        if path in changed or any(_mirrors(path, source) for source in changed) or word in _ALWAYS:
            yield Candidate(path, (0, 0), seconds, "the file's own test")
        elif shared:
            yield Candidate(path, (1, -shared), seconds, "names in common")
        elif any(_layer(path) == _layer(source) for source in changed):
            yield Candidate(path, (2, 0), seconds, "of the same layer")


def primitives(changed: Iterable[str]) -> list[str]:
    """The operations of Programs that changed rules define or name: cases of these are run from Python."""
    rules = [path for path in changed if path.startswith("julia/src/rules/")]
    symbols = {s for path in rules for s in re.findall(r":(\w+)", (ROOT / path).read_text(encoding="utf-8"))}
    return sorted(symbols & set(OPERATIONS))


@cache
def test_files() -> tuple[Path, ...]:
    return tuple(
        file
        for file in sorted(TESTS.rglob("*.jl"))
        if file.name != "runtests.jl" and ("support" not in file.parts or file.stem.endswith("_test"))
    )


def _mirrors(test: str, source: str) -> bool:
    return test.removeprefix("julia/test/") == source.removeprefix("julia/src/")


def _layer(path: str) -> tuple[str, ...]:
    parts = Path(path).parent.parts[2:]
    return parts[:2] if parts[:1] == ("codegen",) else parts[:1]


@cache
def _words(file: Path) -> frozenset[str]:
    return frozenset(_WORD.findall(file.read_text(encoding="utf-8")))


@cache
def _rarity() -> Counter[str]:
    """In how many test files each word stands."""
    return Counter(word for file in test_files() for word in _words(file))


def defined(path: str) -> set[str]:
    """The names that a source defines, as far as their lines begin with them."""
    file = ROOT / path
    if not file.exists():
        return set()
    found = _DEFINED.findall(file.read_text(encoding="utf-8"))
    return {name for pair in found for name in pair if name and name not in _NO_NAMES}
