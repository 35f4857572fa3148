"""The code blocks of README and docs, run as they stand there (docs/contributing.md has the rules)."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import processes
from casekit import QUICK_FLAGS
from covering import FULL
from julia_tests import julia
from markdown_it import MarkdownIt

ROOT = processes.CHECKOUT
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FILE = re.compile(r"(?:# |// |/\* )([\w./]+\.(?:py|jl|c))(?: \*/)?\n")
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_END = "\x1e"
# Most pages show values, and XLA compiles those in half the time; some show how results were rounded.
_QUICK = {"XLA_FLAGS": QUICK_FLAGS}
_OF_ROUNDING = {"disagreements.md"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and what the comment above it says."""

    line: int
    language: str
    text: str
    remark: str

    @property
    def file(self) -> str | None:
        """The name of the file that the block is, which its first line tells."""
        found = _FILE.match(self.text)
        return found and found[1]

    @property
    def need(self) -> str | None:
        """What must be there for the block to run."""
        return self.remark.removeprefix("needs ") if self.remark.startswith("needs ") else None

    @property
    def idle(self) -> bool:
        """Whether the page gives a reason why the block is not run, or its output not compared."""
        return self.remark.startswith("not ")


@dataclass(frozen=True)
class Step:
    """A block that is run, and the output that the page shows."""

    block: Block
    shown: Block | None


def blocks_of(page: Path) -> list[Block]:
    """Fenced and indented ones; these, whose language is "indented", are never run."""
    blocks: list[Block] = []
    remark, line_after = "", 0
    for token in MarkdownIt().parse(page.read_text()):
        if token.map is None:
            continue
        if token.type == "html_block":
            remark, line_after = (
                token.content.strip().removeprefix("<!--").removesuffix("-->").strip(),
                token.map[1],
            )
        elif token.type in ("fence", "code_block"):
            language = token.info if token.type == "fence" else "indented"
            above = remark if line_after == token.map[0] else ""
            blocks.append(Block(token.map[0] + 1, language, token.content, above))
    return blocks


def name_of(page: Path) -> str:
    """Its path in the checkout, without docs/ and the ending: `measurements/zoo`."""
    return page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")


def has_code(page: Path) -> bool:
    return any(b.language in _RUN and not b.idle for b in blocks_of(page))


def steps_of(blocks: list[Block]) -> list[Step]:
    """What is run, with the `text` block after it. Raises where a page shows what nothing made."""
    steps: list[Step] = []
    last: Block | None = None
    for block in blocks:
        if block.language != "text":
            last = block
            if block.language in _RUN and not block.idle and not block.file:
                steps.append(Step(block, None))
        elif not block.idle:
            assert steps and last is steps[-1].block, f"line {block.line}: the output of what?"
            steps[-1] = Step(last, block)
    return steps


def run(page: Path, folder: Path, have: frozenset[str] = frozenset()) -> None:
    """Run a page's blocks in an empty folder: its files, then Python, then the shell and Julia.

    have: needs that are met. AssertionError where a block fails or prints something else.
    """
    blocks = [b for b in blocks_of(page) if b.need is None or b.need in have]
    for block in blocks:
        if block.file and not block.idle:
            (folder / block.file).write_text(block.text)
    steps = steps_of(blocks)
    variables = {} if FULL or page.name in _OF_ROUNDING else _QUICK
    for language in dict.fromkeys(["python", *(step.block.language for step in steps)]):
        chosen = [step for step in steps if step.block.language == language]
        if chosen:
            printed = _RUN[language]([step.block for step in chosen], folder, variables)
            for step, output in zip(chosen, printed, strict=True):
                _compare(page, step, output)


def _compare(page: Path, step: Step, output: str) -> None:
    if step.shown is None:
        return
    expected = re.sub(r"^ *\.\.\.$", "...", step.shown.text, flags=re.MULTILINE)
    assert doctest.OutputChecker().check_output(expected, output, _OPTIONS), (
        f"{page.name}, line {step.shown.line}, shows\n{step.shown.text}\nbut the block above prints\n{output}"
    )


def _scripts(blocks: list[Block], folder: Path, extension: str) -> list[str]:
    """Each block in a file, so that messages and equations have lines; the first is `example`."""
    names = [f"example{n or ''}.{extension}" for n in range(len(blocks))]
    for name, block in zip(names, blocks, strict=True):
        (folder / name).write_text(block.text)
    return names


def _python(blocks: list[Block], folder: Path, variables: dict[str, str]) -> list[str]:
    names = _scripts(blocks, folder, "py")
    code = f"""
        import sys
        sys.path.insert(0, "")
        for name in {names!r}:
            with open(name) as file:
                exec(compile(file.read(), name, "exec"), globals())
            print({_END!r}, end="", flush=True)
    """
    return _printed(processes.start_imported(code, folder=folder, **variables))


def _julia(blocks: list[Block], folder: Path, variables: dict[str, str]) -> list[str]:
    names = _scripts(blocks, folder, "jl")
    code = "".join(f'include(joinpath(pwd(), "{name}")); print("\\x1e");' for name in names)
    load_path = f"{ROOT / 'julia'}{os.pathsep}"
    return _outputs([*julia(compiled=True), "-e", code], folder, JULIA_LOAD_PATH=load_path, **variables)


def _shell(blocks: list[Block], folder: Path, variables: dict[str, str]) -> list[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    bash = ["bash", "-euo", "pipefail", "-c"]
    return [_outputs([*bash, b.text], folder, PATH=path, COLUMNS="110", **variables)[0] for b in blocks]


def _outputs(command: list[str], folder: Path, **variables: str) -> list[str]:
    return _printed(processes.start_command(command, folder, **variables))


def _printed(process: subprocess.Popen[str] | processes.Forked) -> list[str]:
    return processes.fine(process).removesuffix(_END).split(_END)


_RUN = {"python": _python, "sh": _shell, "julia": _julia}
