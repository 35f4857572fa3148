"""The templates of pages."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jinja2


def page(template: str, title: str, **parts: Any) -> str:
    """The HTML of a page. parts: what its template shows, as text that is escaped."""
    return _environment().get_template(template).render(title=title, **parts)


def terminal_page(title: str, colored: str, machine: Mapping[str, str]) -> str:
    """What a terminal shows, as HTML already, under its title."""
    return page("terminal.html", title, colored=colored, machine=machine)


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
