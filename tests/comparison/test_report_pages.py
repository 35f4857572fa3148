"""Reports as pages and as Markdown: whole, of one file, and read by a browser."""

from __future__ import annotations

import re

import browser
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from markdown_it import MarkdownIt

import pybridge as pb

PAGE = {"light": (255, 255, 255), "dark": (13, 17, 23)}
BLAME = {"light": (207, 34, 46), "dark": (248, 81, 73)}


def step(c, y):
    return jnp.sin(c * y) + y, 2 * c


def loss(p, x):
    c, ys = jax.lax.scan(step, p["w"][0], x)
    return jnp.log(jnp.sum(ys**2)) / c


def guarded_too_late(x):
    roots = jnp.where(x > 0, jnp.sqrt(x), 0.0)
    return jnp.sum(roots)


def cancelling(x):
    near = (1e5 + x) - 1e5
    return jnp.sum(near / x)


X = np.linspace(0.1, 1, 12).astype(np.float32)
COMPARED = pb.compare(loss, {"w": X[:2]}, X, engines=["transpose"], order=2, repeats=2)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    COMPARED.to_html(folder / "comparison.html")
    pb.blame(guarded_too_late, np.array([0.0, 4.0], np.float32)).to_html(folder / "nan.html")
    pb.blame(cancelling, np.array([1.1, 2.0], np.float32)).to_html(folder / "rounding.html")
    with jax.enable_x64(True):
        pb.mixed(cancelling, error=1e-3)(np.array([1.1, 2.0])).report.to_html(folder / "mixed.html")
    return folder


def test_pages_refer_to_nothing_outside(pages):
    for page in pages.glob("*.html"):
        text = page.read_text()
        assert not re.search(r"<(script|link|img|iframe)|@import|src=", text), page.name
        assert not re.search(r"(?:url\(|href=)(?![\"']?#)", text), page.name


def test_a_comparison_has_all_parts(pages):
    text = (pages / "comparison.html").read_text()
    for part in ("agree", "VJP memory", "Errors and times", "<svg", "Environment", "jax", "first gradient"):
        assert part in text
    assert "return jnp.log(jnp.sum(ys**2)) / c" in text, "the source line"
    assert "test_report_pages.py" in text and "= scan " in text and "f32[12]" in text
    assert "&lt;u,Jv&gt;" in text, "text is escaped"


def test_what_cannot_be_shown_is_said(tmp_path):
    def talkative(x):
        jax.debug.print("{}", x[0])
        return jnp.sin(x)

    pb.compare(talkative, X, engines=["transpose"], repeats=0).to_html(tmp_path / "c.html")
    assert "there is no one Program of the function" in (tmp_path / "c.html").read_text()


def test_blame_marks_lines(pages):
    broken, rounding = (pages / "nan.html").read_text(), (pages / "rounding.html").read_text()
    assert re.search(r"rgba\(var\(--blame\), 0\.90\).*✗.*jnp\.sqrt\(x\)", broken)
    assert "Way out" in broken and "Its infinity is from" in broken
    assert re.search(r"rgba\(var\(--blame\), 0\.6\d?\).*100 %.*near = \(1e5", rounding)


@browser.needs_browser
@pytest.mark.parametrize("name", ["comparison", "nan", "rounding", "mixed"])
def test_a_browser_shows_it_light_and_dark(pages, tmp_path, name):
    page = pages / f"{name}.html"
    assert "Environment" in browser.text_of(page, tmp_path / "profile")
    for scheme in ("light", "dark"):
        picture = browser.picture_of(page, tmp_path / "profile", scheme)
        assert tuple(picture[0, 0]) == PAGE[scheme]
        written = np.any(picture != PAGE[scheme], axis=2)
        assert 0.01 < written.mean() < 0.5, "the page is empty, or covered"
        if name == "nan":
            near = np.abs(picture - BLAME[scheme]).max(axis=2) < 40
            assert near.sum() > 5000, "the line that is to blame is not in colour"


def test_markdown_is_a_table_and_a_list():
    text = COMPARED.to_markdown()
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    kinds = [token.type for token in tokens]
    assert kinds.count("table_open") == 1 and kinds.count("bullet_list_open") == 1
    assert kinds.count("tr_open") == 1 + len(COMPARED.rows)
    assert kinds.count("th_open") == kinds.count("td_open") / len(COMPARED.rows)
    assert f"{COMPARED['jax'].jvp.absolute:.1e}" in text and "agrees" in text
