"""Every code block of README and docs runs, and prints what the page shows."""

from __future__ import annotations

import c_libraries
import pages
import pytest

from pybridge.runtime import julia, linker

_WITH_CODE = [page for page in pages.PAGES if pages.has_code(page)]


def _what_is_there() -> frozenset[str]:
    found = julia.find().julia
    there = {
        "Enzyme.jl": found is not None and found.enzyme is not None,
        "a linker": linker.linker() is not None,
        "a C compiler": c_libraries.COMPILER is not None and linker.linker() is not None,
    }
    return frozenset(name for name, is_there in there.items() if is_there)


@pytest.mark.parametrize("page", _WITH_CODE, ids=pages.name_of)
def test_code_runs(page, tmp_path):
    there = _what_is_there()
    pages.run(page, tmp_path, there)
    missing = [f"line {b.line} {b.remark}" for b in pages.blocks_of(page) if b.need and b.need not in there]
    if missing:
        pytest.skip(f"all else ran, but {', '.join(missing)}")


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)
def test_code_has_a_language(page):
    """What has none is a grammar, a diagram or the like. Indented code would not be run."""
    assert {block.language for block in pages.blocks_of(page)} <= {"python", "julia", "sh", "c", "text", ""}


def test_a_page_that_shows_something_else_fails(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\nprints\n\n```text\n3\n```\n")
    with pytest.raises(AssertionError, match="line 7, shows"):
        pages.run(page, tmp_path)


def test_a_block_that_raises_fails(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\ny = x / 0\n```\n")
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        pages.run(page, tmp_path)
