"""Symbolic dimensions: polynomials with integer coefficients over names, `2*b + floordiv(a, 3)`.

A text of a few characters could ask for polynomials without end: (a+b+c+d+e)^60 has 600 000 monomials. So
all that arises when one is read has bounds, which are those of julia/src/ir/dims.jl.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from typing import NoReturn

from ..errors import ProgramTypeError

MAX_TEXT = 1000
"""Characters of a dimension, and of the name that a call such as `floordiv(a, 3)` is."""
MAX_NESTING = 20
MAX_DEGREE = 32
MAX_PRODUCT = 1000
"""Monomials of one factor times monomials of the other."""

Terms = dict[tuple[str, ...], int]
"""Monomials (sorted names, repeated for powers) and their coefficients, none of which is 0."""

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[^ \t\r\n]", re.ASCII)
_NAME = re.compile("[A-Za-z_]")
_NUMBER = re.compile("[0-9]")


@functools.lru_cache(maxsize=4096)
def check_dimension(text: str) -> None:
    """Raises ProgramTypeError where the text is no symbolic dimension, or one beyond the bounds."""
    if not text.strip(" \t\r"):
        raise ProgramTypeError(f"{text!r} is not a symbolic dimension: it is empty")
    if ">" in text or "\n" in text:
        raise ProgramTypeError(f"{text[:40]!r} is not a symbolic dimension")
    if len(text) > MAX_TEXT:
        raise ProgramTypeError(f"a symbolic dimension has more than {MAX_TEXT} characters")
    terms = _Reader(text).dimension()
    if not terms.keys() - {()}:
        raise ProgramTypeError(f"<{text}> is the number {terms.get((), 0)}, not a symbolic dimension")


class _Reader:
    """Recursive descent over the tokens; each method reads what its name says."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = [*_TOKEN.findall(text), ""]
        self.at = 0
        self.depth = 0

    def dimension(self) -> Terms:
        terms = self.sum()
        if self.tokens[self.at]:
            self.fail()
        return terms

    def fail(self) -> NoReturn:
        found = self.tokens[self.at] or "its end"
        raise ProgramTypeError(f"{self.text[:40]!r} is not a symbolic dimension: unexpected {found}")

    def accept(self, *tokens: str) -> str:
        token = self.tokens[self.at]
        if token not in tokens:
            return ""
        self.at += 1
        return token

    def sum(self) -> Terms:
        self.depth += 1
        if self.depth > MAX_NESTING + 1:
            raise ProgramTypeError(f"a symbolic dimension is nested more than {MAX_NESTING} deep")
        total = _sum({}, *((self.product(), -1) if self.accept("-") else (self.product(), 1)))
        while sign := self.accept("+", "-"):
            total = _sum(total, self.product(), 1 if sign == "+" else -1)
        self.depth -= 1
        return total

    def product(self) -> Terms:
        total = self.factor()
        while self.accept("*"):
            total = _product(total, self.factor())
        return total

    def factor(self) -> Terms:
        base = self.atom()
        return _power(base, self.integer()) if self.accept("^") else base

    def integer(self) -> int:
        token = self.tokens[self.at]
        if not _NUMBER.match(token):
            self.fail()
        self.at += 1
        # The length first: int() refuses thousands of digits in its own way.
        return _checked(int(token) if len(token.lstrip("0")) < 20 else 2**63)

    def atom(self) -> Terms:
        if self.accept("("):
            inner = self.sum()
            if not self.accept(")"):
                self.fail()
            return inner
        token = self.tokens[self.at]
        if _NUMBER.match(token):
            value = self.integer()
            return {(): value} if value else {}
        if not _NAME.match(token):
            self.fail()
        self.at += 1
        return {(self.call(token) if self.accept("(") else token,): 1}

    def call(self, function: str) -> str:
        arguments = [self.sum()]
        while self.accept(","):
            arguments.append(self.sum())
        if not self.accept(")"):
            self.fail()
        name = f"{function}({', '.join(map(_text, arguments))})"
        if len(name) > MAX_TEXT:
            raise ProgramTypeError(f"a symbolic dimension has a name of more than {MAX_TEXT} characters")
        return name


def _checked(coefficient: int) -> int:
    if not -(2**63) <= coefficient < 2**63:
        raise ProgramTypeError("a symbolic dimension has a coefficient that does not fit 64 bits")
    return coefficient


def _add(terms: Terms, names: tuple[str, ...], coefficient: int) -> None:
    value = _checked(terms.pop(names, 0) + _checked(coefficient))
    if value:
        terms[names] = value


def _sum(a: Terms, b: Terms, scale: int) -> Terms:
    terms = dict(a)
    for names, coefficient in b.items():
        _add(terms, names, scale * coefficient)
    return terms


def _product(a: Terms, b: Terms) -> Terms:
    if len(a) * len(b) > MAX_PRODUCT:
        raise ProgramTypeError("a symbolic dimension has too many terms")
    terms: Terms = {}
    for m, c in a.items():
        for n, d in b.items():
            if len(m) + len(n) > MAX_DEGREE:
                raise ProgramTypeError(f"a symbolic dimension has a degree of more than {MAX_DEGREE}")
            _add(terms, tuple(sorted(m + n)), c * d)
    return terms


def _power(base: Terms, exponent: int) -> Terms:
    if exponent and base in ({}, {(): 1}, {(): -1}):
        return base if exponent % 2 else _product(base, base)
    result: Terms = {(): 1}
    for _ in range(exponent):  # ends long before it is large: at the degree, or with a coefficient
        result = _product(result, base)
    return result


def _text(terms: Terms) -> str:
    text = ""
    for i, (names, coefficient) in enumerate(sorted(terms.items(), key=lambda t: (-len(t[0]), t[0]))):
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} " if i else sign.strip("+")
        powers = Counter(names)
        factors = [name if power == 1 else f"{name}^{power}" for name, power in powers.items()]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        text += "*".join(factors)
    return text
