"""Reading a machine's apt sources, in both formats, and choosing Debian's own among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybridge.runtime.julia.apt_sources import Source, debian_mirrors, parse_deb822, parse_list, read

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
ONE_LINE = f"""
# deb http://commented.test/debian bookworm main
deb http://mirror.test/debian bookworm main contrib # trailing remark
deb [arch=amd64 signed-by={KEYRING}] http://mirror.test/debian/ bookworm-updates main
deb-src http://mirror.test/debian bookworm main
deb [ trusted=yes ] cdrom:[Debian]/ bookworm main
"""
DEB822 = f"""
# a remark before everything
Types: deb deb-src
URIs: http://mirror.test/debian http://other.test/debian
# a remark within
Suites: bookworm
 bookworm-updates
Components: main
Signed-By: {KEYRING}

Types: deb
URIs: http://disabled.test/debian
Suites: bookworm
Components: main
Enabled: no

types: deb
uris: http://vendor.test/apt
suites: bookworm
components: main
signed-by: /usr/share/keyrings/vendor.gpg

Types: deb-src
URIs: http://sources.test/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://inline.test/debian
Suites: bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
"""


def test_one_line_format() -> None:
    first, second, _ = parse_list(ONE_LINE)
    assert first == Source("http://mirror.test/debian", "bookworm", ("main", "contrib"))
    assert second == Source(
        "http://mirror.test/debian/", "bookworm-updates", ("main",), KEYRING, ("arch=amd64",)
    )


def test_deb822_format() -> None:
    found = list(parse_deb822(DEB822))
    assert [(source.uri, source.suite) for source in found] == [
        ("http://mirror.test/debian", "bookworm"),
        ("http://mirror.test/debian", "bookworm-updates"),
        ("http://other.test/debian", "bookworm"),
        ("http://other.test/debian", "bookworm-updates"),
        ("http://vendor.test/apt", "bookworm"),
    ]
    assert found[0].signed_by == KEYRING and found[0].components == ("main",)


def test_debians_own_are_told_from_others() -> None:
    found = [*parse_deb822(DEB822), Source("http://local.test/packages", "bookworm", ("main",))]
    assert [source.uri for source in debian_mirrors(found, "bookworm")] == [
        "http://mirror.test/debian",
        "http://other.test/debian",
        "http://local.test/packages",
    ]
    assert debian_mirrors(found, "trixie") == []


@pytest.mark.parametrize(
    "source",
    [
        Source("http://mirror.test/debian", "bookworm", ("main",), KEYRING),
        Source("http://mirror.test/debian", "bookworm", ("main", "contrib"), None, ("arch=arm64",)),
        Source("mirror+file:/etc/apt/mirrors/debian.list", "bookworm", ("main",)),
    ],
)
def test_a_line_reads_back(source: Source) -> None:
    assert list(parse_list(source.line())) == [source]


def test_a_whole_folder_is_read_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text("deb http://a.test/debian bookworm main\n", encoding="utf-8")
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (parts / "b.list").write_text("deb http://b.test/debian bookworm main\n", encoding="utf-8")
    (parts / "c.sources").write_text(
        "Types: deb\nURIs: http://c.test/debian\nSuites: bookworm\nComponents: main\n", encoding="utf-8"
    )
    (parts / "d.list.save").write_text("deb http://d.test/debian bookworm main\n", encoding="utf-8")
    (parts / "e.sources").write_bytes(b"Types: deb\nURIs: \xff\n")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert [source.uri[7] for source in read(tmp_path)] == ["a", "b", "c"]
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_a_machine_without_sources(tmp_path: Path) -> None:
    assert read(tmp_path / "nothing") == []
