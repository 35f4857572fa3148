"""The text that crosses to Julia and back: one line of command or status, then the body.

The Julia side is `JaxprAD.serve(message::String)::String`, which never throws.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import JuliaError

_TRACE = "\n-----\n"


def encode(command: str, arguments: Sequence[str], body: str) -> str:
    words = [command, *arguments]
    for word in words:
        if not word or word.split() != [word]:
            raise ValueError(f"{word!r} cannot stand in a request's first line: it must be one word")
    return " ".join(words) + "\n" + body


def decode(answer: str) -> str:
    """The body of an `ok` answer; an `error` answer becomes a JuliaError."""
    status, _, rest = answer.partition("\n")
    if status == "ok":
        return rest
    if status == "error":
        kind, _, rest = rest.partition("\n")
        message, _, trace = rest.partition(_TRACE)
        raise JuliaError(message.strip("\n") or kind, kind=kind, stacktrace=trace)
    raise JuliaError(f"Julia answered neither ok nor error but {status[:80]!r}", kind="ProtocolError")
