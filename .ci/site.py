"""MkDocs calls this for each page: links to files outside docs/ get the repository's address."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?<=\]\()(?:\.\./)+[^)#\s]+")


def on_page_markdown(markdown: str, *, page, config, files) -> str:
    folder = Path(page.file.abs_src_path).parent

    def addressed(link: re.Match[str]) -> str:
        target = (folder / link[0]).resolve()
        outside = target.exists() and not target.is_relative_to(config.docs_dir)
        return f"{_repository()}/blob/main/{target.relative_to(_ROOT).as_posix()}" if outside else link[0]

    return _LINK.sub(addressed, markdown)


@functools.cache
def _repository() -> str:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]["Repository"]
