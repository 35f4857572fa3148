"""Where a Julia function comes from: a file, code, a package, Julia's Main, or an object of juliacall's."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import ArgumentError, JuliaError
from ..runtime import julia

_PACKAGE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_JAXPRAD = "5f1d5c54-7a4e-4f43-9a2e-6b1f8c0d9a37"


@dataclass(frozen=True)
class Source:
    """kind and word as Julia reads them; `code` is what it evaluates, in a module for each content.

    of_process: the code refers to what is in this process's Julia alone.
    """

    kind: Literal["file", "code", "package", "main", "object"]
    word: str = ""
    code: str = ""
    of_process: bool = False

    @property
    def digest(self) -> str:
        """The content, so that the same one is evaluated once and another one again."""
        return hashlib.sha256(f"{self.kind}\n{self.word}\n{self.code}".encode()).hexdigest()

    @property
    def lasting(self) -> bool:
        """Whether the origin means the same function in the next process, as far as its text tells."""
        return self.kind in ("file", "code", "package") and not self.of_process


def read_source(source: str | os.PathLike[str] | None) -> Source:
    """A path, or a text that ends in `.jl`, is a file; a text that is a name a package; any other code."""
    if source is None:
        return Source("main")
    if isinstance(source, os.PathLike) or (isinstance(source, str) and _is_path(source)):
        return _file(Path(source))
    if not isinstance(source, str):
        raise ArgumentError(
            f"source= takes a file, code or the name of a package, not {type(source).__name__}"
        )
    if _PACKAGE.fullmatch(source.strip()):
        return Source("package", source.strip())
    return Source("code", code=source)


def _is_path(source: str) -> bool:
    return source.endswith(".jl") and "\n" not in source


def _file(path: Path) -> Source:
    try:
        return Source("file", str(path.resolve()), path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as reason:
        raise JuliaError(f"the Julia source {path} cannot be read: {reason}", kind="SystemError") from reason


def object_source(value: Any) -> tuple[str, Source]:
    """The name and the origin of a Julia function that juliacall holds."""
    juliacall = sys.modules.get("juliacall")
    if juliacall is None or not isinstance(value, juliacall.AnyValue):
        raise ArgumentError(
            f"julia_function takes the name of a Julia function or a Julia object, not {type(value).__name__}"
        )
    julia.start()  # joins the Julia that the object lives in
    number = _keeper(juliacall)(value)
    return str(value), Source("object", str(int(number)))


def _keeper(juliacall: Any) -> Any:
    host = juliacall.newmodule("PyBridge")
    return host.seval(f'Base.root_module(Base.PkgId(Base.UUID("{_JAXPRAD}"), "JaxprAD")).Functions.keep')
