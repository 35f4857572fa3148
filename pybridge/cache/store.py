"""A folder of entries, each a file under the digest of all that its content depends on.

Any number of processes may use one folder at once: an entry is written next to its final path and renamed,
whole or not at all, and what is read is checked first. A file that was cut off, changed, put under another
key or written by another user counts as missing. The cache never fails: what cannot be kept is made anew.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SETTING = "PYBRIDGE_CACHE"
LIMIT_SETTING = "PYBRIDGE_CACHE_MEGABYTES"
OFF = ("off", "0", "no", "none")

_LOG = logging.getLogger(__name__)
_FORMAT = "1"  # of the folder; entries of another are not looked at
_MARK = b"pybridge"
_LIMIT = 1024  # megabytes
_KEPT_SHARE = 0.8  # of the limit, after entries were dropped
_ABANDONED = 3600.0  # seconds after which a file that was never renamed is nobody's
_WRITES_BETWEEN_LOOKS = 64  # at the folder's size


def user_folder() -> Path:
    """Where pybridge keeps what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pybridge"


def folder() -> Path | None:
    """The folder of entries, as PYBRIDGE_CACHE says; None where that turns the cache off."""
    chosen = os.environ.get(SETTING)
    if chosen and chosen.lower() in OFF:
        return None
    return (Path(chosen) if chosen else user_folder() / "entries") / f"format-{_FORMAT}"


def default() -> Store | None:
    """The store of this process; None where the cache is off or its folder is not the user's alone."""
    place = folder()
    return _opened(place) if place is not None else None


@functools.cache
def _opened(place: Path) -> Store | None:
    store = Store(place, _limit() << 20)
    reason = store.distrusted()
    if reason is not None:
        _LOG.warning("pybridge keeps nothing in %s: %s", place, reason)
        return None
    return store


def _limit() -> int:
    try:
        return max(1, int(os.environ.get(LIMIT_SETTING, _LIMIT)))
    except ValueError:
        return _LIMIT


@dataclass(frozen=True)
class Usage:
    """Of a store: how many entries, and their bytes."""

    entries: int
    size: int

    @property
    def megabytes(self) -> str:
        return f"{self.size / (1 << 20):.1f} MB"


@dataclass
class Store:
    """Entries in a folder, `limit` bytes of them at most; those not used for longest go first."""

    place: Path
    limit: int = _LIMIT << 20
    _writes: int = 0

    def distrusted(self) -> str | None:
        """Why nothing may be taken from the folder or put there, if so. Makes it if there is none."""
        try:
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.place.stat()
        except OSError as problem:
            return str(problem.strerror or problem)
        if found.st_uid != os.geteuid():
            return "it belongs to another user"
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return "others can write there"
        return None

    def read(self, key: str) -> bytes | None:
        """The content under the key, if it is there and whole."""
        path = self.path(key)
        try:
            content = _checked(path, key)
        except OSError:
            return None
        if content is None:
            _LOG.warning("a damaged file in pybridge's cache was removed: %s", path)
            _remove(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # last used now
        return content

    def path(self, key: str) -> Path:
        """The file of an entry: its content, and after that a checksum. It is `read` that checks it."""
        name = hashlib.sha256(key.encode()).hexdigest()
        return self.place / name[:2] / name[2:]

    def write(self, key: str, content: bytes) -> bool:
        """Keep the content under the key; False where it could not be written."""
        path = self.path(key)
        temporary = None
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)  # for this user alone
            with open(handle, "wb") as file:
                file.write(content)
                file.write(_trailer(key, content))
            os.replace(temporary, path)
        except OSError as problem:
            _LOG.debug("pybridge's cache could not be written: %s", problem)
            if temporary is not None:
                _remove(Path(temporary))
            return False
        if self._writes % _WRITES_BETWEEN_LOOKS == 0:
            self.prune()
        self._writes += 1
        return True

    def usage(self) -> Usage:
        sizes = [status.st_size for _, status in self._files()]
        return Usage(len(sizes), sum(sizes))

    def prune(self, limit: int | None = None) -> Usage:
        """Drop what was not used for longest until at most `limit` bytes are left; what was dropped."""
        limit = self.limit if limit is None else limit
        files = sorted(self._files(), key=lambda found: found[1].st_mtime)
        total = sum(status.st_size for _, status in files)
        dropped = size = 0
        goal = total if total <= limit else int(limit * _KEPT_SHARE)
        for path, status in files:
            abandoned = path.name.startswith(".new-") and time.time() - status.st_mtime > _ABANDONED
            if total - size > goal or abandoned:
                _remove(path)
                dropped += 1
                size += status.st_size
        return Usage(dropped, size)

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.place.glob("*/*"):
            with contextlib.suppress(OSError):  # another process dropped it
                yield path, path.lstat()


def _checked(path: Path, key: str) -> bytes | None:
    """The content of a file; None where it is not what this user wrote under this key."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode):
            return None
        whole = file.read()
    size = len(_trailer(key, b""))
    content = whole[:-size]
    return content if len(whole) >= size and whole[-size:] == _trailer(key, content) else None


def _trailer(key: str, content: bytes) -> bytes:
    digest = hashlib.sha256(key.encode())
    digest.update(b"\0")
    digest.update(content)
    return _MARK + digest.digest()


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
