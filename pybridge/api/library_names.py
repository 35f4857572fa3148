"""Names of C for the leaves of pytrees: those of the user's parameters, with the path behind them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax

# What no parameter may be called: the keywords of C and C++, names that the header itself uses, and macros
# that common headers or compilers define.
_TAKEN_WORDS = """
    alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break
    case catch char char8_t char16_t char32_t class co_await co_return co_yield compl complex concept const
    const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend fortran goto if imaginary inline int int8_t int16_t int32_t
    int64_t long mutable namespace new noexcept noreturn not not_eq nullptr operator or or_eq private
    protected public reflexpr register reinterpret_cast requires restrict return short signed sizeof size_t
    static static_assert static_cast struct switch synchronized template this thread_local throw true try
    typedef typeid typename typeof typeof_unqual uint8_t uint16_t uint32_t uint64_t union unsigned using
    virtual void volatile wchar_t while xor xor_eq
    workspace errno linux unix NULL EOF I INFINITY NAN stdin stdout stderr assert
"""
_TAKEN = frozenset(_TAKEN_WORDS.split())


def is_name(text: Any) -> bool:
    """Whether it can be the name of a function of C."""
    return isinstance(text, str) and bool(re.fullmatch(r"[A-Za-z]\w*", text, re.ASCII)) and text not in _TAKEN


class Names:
    """Names of one prototype: each is given once."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def unique(self, wish: str) -> str:
        """The wish as a name of C; with a number behind it where that is given or taken."""
        word = re.sub(r"\W+", "_", wish, flags=re.ASCII).strip("_") or "x"
        word = f"x{word}" if word[0].isdigit() else word
        name, count = word, 2
        while name in self._given or name in _TAKEN:
            name, count = f"{word}_{count}", count + 1
        self._given.add(name)
        return name


def path_name(start: str, path: Sequence[Any]) -> str:
    """`params` and the path of a leaf in it: `params_layers_0_w`."""
    return "_".join(filter(None, [start, jax.tree_util.keystr(tuple(path), simple=True, separator="_")]))
