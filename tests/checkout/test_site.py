"""The site of the documentation in a browser: no page is wider than the screen, and navigation is small."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import browser
import pages
import pytest

_SCREENS = {"desktop": (1280, 800), "phone": (390, 844)}
_NAVIGATION = "header, .md-tabs"
_SHARE = 1 / 5  # of the first screen, for navigation at most

# Shows each page in a frame of each size: styles for narrow screens follow the frame's size.
_FRAMES = """<!DOCTYPE html><title>measuring</title><pre id="measured"></pre><script>
function measured(path, width, height) {
  return new Promise((resolve) => {
    const frame = document.createElement("iframe");
    Object.assign(frame, {src: path, width, height});
    frame.style.border = "none";
    frame.onload = () => setTimeout(() => {
      const shown = frame.contentDocument, seen = shown.documentElement;
      const ends = [...shown.querySelectorAll(%(navigation)s)].map((n) => n.getBoundingClientRect().bottom);
      resolve([seen.scrollWidth, frame.contentWindow.innerWidth, Math.max(0, ...ends), height]);
      frame.remove();
    }, 50);
    document.body.append(frame);
  });
}
async function all() {
  const found = {};
  for (const path of %(paths)s)
    for (const [screen, [width, height]] of Object.entries(%(screens)s))
      found[`${path} ${screen}`] = await measured(path, width, height);
  document.getElementById("measured").textContent = JSON.stringify(found);
}
all();
</script>"""


def _built(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What `make docs` does, with warnings as errors, into `folder`."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder), *options]
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        command, cwd=pages.ROOT, env=settings, capture_output=True, text=True, timeout=120, check=False
    )


def _measured(site: Path, profile: Path, paths: list[str]) -> dict[str, tuple[int, int, float, int]]:
    """For each page and screen: widths of both, where navigation ends, and the screen's height."""
    frames = site / "measured.html"
    values = {"navigation": _NAVIGATION, "paths": paths, "screens": _SCREENS}
    frames.write_text(_FRAMES % {name: json.dumps(value) for name, value in values.items()})
    options = ("--allow-file-access-from-files", "--virtual-time-budget=120000")
    text = browser.text_of(frames, profile, *options)
    found = re.search(r'<pre id="measured">(.*?)</pre>', text, re.DOTALL)
    assert found and found[1], "the browser measured nothing"
    return {name: tuple(value) for name, value in json.loads(html.unescape(found[1])).items()}


def _too_wide(measured: dict) -> list[str]:
    return [f"{name}: {width} > {screen}" for name, (width, screen, *_) in measured.items() if width > screen]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = _built(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_links_and_navigation_are_whole(site):
    """The build with --strict found no link or anchor that leads nowhere, and each page in the navigation."""
    assert (site / "index.html").exists()


@browser.needs_browser
def test_pages_fit_their_screens(site, tmp_path):
    paths = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    shown = _measured(site, tmp_path, [path for path in paths if path not in ("404.html", "measured.html")])
    assert _too_wide(shown) == []
    high = {name: end for name, (*_, end, height) in shown.items() if not 0 < end < height * _SHARE}
    assert high == {}


@browser.needs_browser
def test_a_page_that_is_too_wide_is_found(site, tmp_path):
    text = (site / "index.html").read_text(encoding="utf-8")
    wide = '<article class="md-content__inner md-typeset"><div style="width: 700px">wide</div>'
    changed = text.replace('<article class="md-content__inner md-typeset">', wide)
    assert changed != text
    (site / "wide.html").write_text(changed, encoding="utf-8")
    try:
        found = _too_wide(_measured(site, tmp_path, ["wide.html"]))
        assert [line.partition(":")[0] for line in found] == ["wide.html phone"]
    finally:
        (site / "wide.html").unlink()


def test_a_page_outside_the_navigation_fails_the_build(tmp_path):
    settings = (pages.ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in ("docs", ".ci/site.py"):
        settings = settings.replace(f" {path}\n", f" {pages.ROOT / path}\n")
    without = settings.replace("      - glossary.md\n", "")
    assert without != settings
    (tmp_path / "mkdocs.yml").write_text(without, encoding="utf-8")
    done = _built(tmp_path / "site", "--config-file", str(tmp_path / "mkdocs.yml"))
    assert done.returncode != 0 and "- glossary.md" in done.stderr
