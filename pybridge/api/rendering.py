"""What rich shows, as plain text and as HTML."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

WIDTH = 118


def plain(shown: Any) -> str:
    text = io.StringIO()
    Console(file=text, width=WIDTH, color_system=None, force_jupyter=False).print(shown)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def _recorded(shown: Any) -> Console:
    """A console that was given it, and can export it. In a notebook rich would display it as well."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_terminal=True, force_jupyter=False)
    console.print(shown)
    return console


def spans(shown: Any) -> str:
    """HTML to stand in a `pre`."""
    return _recorded(shown).export_html(inline_styles=True, code_format="{code}")


def notebook(shown: Any) -> str:
    """HTML to be shown in a notebook."""
    style = "white-space:pre;overflow-x:auto;font-family:monospace"
    return f'<pre style="{style}"><code>{spans(shown)}</code></pre>'
