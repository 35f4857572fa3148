"""What `explain=True` prints."""

from __future__ import annotations

import logging
import sys

_LOG = logging.getLogger(__name__)


def report(line: str, explain: bool) -> None:
    """Logs how something runs; prints it on stderr, too, if the user has asked for that."""
    _LOG.debug("%s", line)
    if explain:
        print(f"pybridge: {line}", file=sys.stderr, flush=True)
