"""Pages in a headless browser: what it makes of their HTML, and how they look."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, _NAMES)), None)

needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on this machine")

_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
]
_SCHEMES = {"dark": 0, "light": 1}


def text_of(page: Path, profile: Path, *options: str) -> str:
    """The document as the browser has read it."""
    return _run(page, profile, "--dump-dom", *options)


def picture_of(page: Path, profile: Path, scheme: str) -> np.ndarray:
    """RGB from 0 to 255, of shape (height, width, 3); `scheme` is what the user prefers, dark or light."""
    from matplotlib.image import imread

    file = page.with_suffix(f".{scheme}.png")
    wish = f"--blink-settings=preferredColorScheme={_SCHEMES[scheme]}"
    _run(page, profile, "--window-size=1300,2400", wish, f"--screenshot={file}")
    return np.round(imread(file)[:, :, :3] * 255).astype(int)


def _run(page: Path, profile: Path, *options: str) -> str:
    command = [BROWSER, *_OPTIONS, f"--user-data-dir={profile}", *options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout
