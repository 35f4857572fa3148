"""Answers of Julia's that depend on the request alone, kept between processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .. import cache, errors
from .keys import key

# The requests that read and write Programs, and nothing else.
_KEPT = frozenset({"normalize", "check", "jvp", "linearize", "transpose", "vjp", "with_gradient", "optimize"})
# Those whose results belong to this process, while what is wrong with a Program is so in any.
_REFUSING = frozenset({"compile", "object"})
# Errors about the Program, which the same request meets again.
_LASTING = frozenset({"ProgramTypeError", "NotDifferentiable", "UnsupportedPrimitive", "KernelRefused"})


def answer(command: str, words: Sequence[str], program: str, request: Callable[[], str]) -> str:
    """What `request` returns or raises, asked of Julia only if no process of this user has asked before."""
    store = cache.default() if command in _KEPT | _REFUSING else None
    if store is None:
        return request()
    kept = command in _KEPT
    place = key("answer", command, *words, program) if kept else key("refusal", program)
    known = store.read(place)
    if known is not None:
        return _decoded(known.decode())
    try:
        made = request()
    except errors.JuliaError as e:
        if e.kind in _LASTING:
            store.write(place, f"error\n{e.kind}\n{e}".encode())
        raise
    if kept:
        store.write(place, f"ok\n{made}".encode())
    return made


def answer_where_lasting(
    command: str, body: str, request: Callable[[], str], lasting: Callable[[str], bool]
) -> str:
    """What `request` returns, kept for other processes if by `lasting` it depends on `body` alone."""
    store = cache.default()
    if store is None:
        return request()
    place = key("answer", command, body)
    known = store.read(place)
    if known is not None:
        return known.decode()
    made = request()
    if lasting(made):
        store.write(place, made.encode())
    return made


def _decoded(text: str) -> str:
    outcome, _, rest = text.partition("\n")
    if outcome == "ok":
        return rest
    kind, _, message = rest.partition("\n")
    raise errors.JuliaError(message, kind=kind)
