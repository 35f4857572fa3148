"""How each host of Julia is started in this process."""

from __future__ import annotations

from collections.abc import Callable

from . import embed, juliacall_host
from .discovery import Host
from .hosted import Hosted
from .probe import Installation

PREPARE: dict[Host, Callable[[Installation], Callable[[], Hosted]]] = {
    "embedded": embed.prepare,
    "juliacall": juliacall_host.prepare,
    "attached": juliacall_host.prepare_to_attach,
}
"""Each looks at what can go wrong on the calling thread, and returns what the control thread runs."""
