"""The machine's own apt sources, read to learn which mirror serves Debian here and who signs it.

Both formats of sources.list(5) are understood: one-line `.list` files and deb822 `.sources` files.
Nothing is ever written to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DEBIANS_KEYRING = re.compile(r"debian-archive-[\w-]*(keyring|stable|automatic)[\w-]*\.(gpg|pgp|asc)$")


@dataclass(frozen=True)
class Source:
    """One repository: a place, a suite and what signs it."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str | None = None
    options: tuple[str, ...] = ()  # of the one-line format, without Signed-By

    def line(self) -> str:
        """In the one-line format."""
        options = [*self.options, *([f"signed-by={self.signed_by}"] if self.signed_by else [])]
        bracket = f"[{' '.join(options)}] " if options else ""
        return f"deb {bracket}{self.uri} {self.suite} {' '.join(self.components)}"


def read(folder: Path) -> list[Source]:
    """Every enabled binary source under an /etc/apt folder."""
    files = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    found: list[Source] = []
    for file in files:
        parse = {".list": parse_list, ".sources": parse_deb822}.get(file.suffix)
        if parse is not None and file.is_file():
            found += parse(file.read_text(encoding="utf-8", errors="replace"))
    return found


def parse_list(text: str) -> Iterator[Source]:
    """`deb [ option=value ... ] uri suite component ...`, one a line."""
    for line in text.splitlines():
        found = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s*([^#]*)", line)
        if found is None:
            continue
        options = dict(word.split("=", 1) for word in (found[1] or "").split() if "=" in word)
        signed_by = options.pop("signed-by", None)
        rest = tuple(f"{key}={value}" for key, value in options.items() if key == "arch")
        yield Source(found[2], found[3], tuple(found[4].split()), signed_by, rest)


def parse_deb822(text: str) -> Iterator[Source]:
    """Stanzas of `Field: value` with continuation lines, each for all its URIs times all its suites."""
    text = re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)
    for stanza in re.split(r"\n\s*\n", text):
        fields = {
            key.lower(): value.strip()
            for key, value in re.findall(r"^([\w-]+):((?:.*)(?:\n[ \t]+.*)*)", stanza, re.MULTILINE)
        }
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() == "no":
            continue
        signed_by = fields.get("signed-by")
        if signed_by and "\n" in signed_by:  # a key written into the stanza itself cannot be on one line
            continue
        options = tuple(
            f"arch={','.join(fields['architectures'].split())}" for _ in fields if _ == "architectures"
        )
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield Source(uri, suite, tuple(fields.get("components", "").split()), signed_by, options)


def debian_mirrors(sources: list[Source], codename: str) -> list[Source]:
    """The sources that serve this Debian's own main archive, the likeliest first.

    Others may call their suite by Debian's codename too; what tells them apart is who signs them.
    """
    own = [
        source
        for source in sources
        if source.suite.rstrip("/") == codename
        and "main" in source.components
        and (source.signed_by is None or _DEBIANS_KEYRING.search(source.signed_by))
    ]
    unique = list(dict.fromkeys(own))
    return sorted(unique, key=lambda source: not re.search(r"/debian/?$|mirror", source.uri))
