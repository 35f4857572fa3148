"""Reading the text of Programs (docs/program.md): one regular expression, then recursive descent.

Linear in the length of the text; nothing is ever evaluated.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Container, Mapping
from typing import NoReturn

import numpy as np

from ..errors import ProgramSyntaxError, ProgramTypeError, ProgramVersionError
from .data import read_data
from .numerals import COMPLEX, DTYPES, FLOATS, integer_range, read_float
from .printer import RESERVED, VERSION
from .program import Equation, Program, checked_string
from .schema import ADDED, OPERATIONS
from .types import Atom, Literal, SymDim, TensorType, Value, Var

MAX_NESTING = 100
"""Bodies and lists nest at most this deep in a text; Python's stack is the reason for a limit."""

# One token with the white space before it. A comment is the first alternative where it is behind a token on
# its line, and else the one before the last: so a source is told from a remark. The last alternative is a
# character that begins no token. What is not closed is a token to the end of its line, so that no text is
# looked through twice. There are no groups: a million pairs would keep Python's collector busy.
_TOKEN = re.compile(
    r"""
    [ \t\r]* \#[^\n]*
  | [ \t\r\n]*
    (?: %[0-9]+
    | [A-Za-z_][A-Za-z0-9_]*
    | [(){}\[\]:,=]
    | -?[0-9]+ (?: \.[0-9]+ (?:[eE][+-]?[0-9]+)? | [eE][+-]?[0-9]+ )? | -inf\b
    | <[^>\n]*>?
    | "(?:[^"\\\n]|\\.)*"?
    | \n[ \t\r]*\#[^\n]*
    | [^ \t\r\n\#]
    )
    """,
    re.VERBOSE | re.ASCII,
)
_SPACE = " \t\r\n"

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_KINDS = {
    **dict.fromkeys("0123456789-", "NUMBER"),
    **dict.fromkeys(_LETTERS + _LETTERS.upper() + "_", "NAME"),
    **dict.fromkeys("(){}[]:,=", "PUNCT"),
    **{"%": "VAR", "<": "DIMEXPR", '"': "STRING", "#": "COMMENT"},
}
"""What a token's first character says of it."""

_CLOSED = {"DIMEXPR": ">", "STRING": '"'}

_KIND = {"VAR": "a variable", "INT": "an integer", "NAME": "a name", "END": "the end of the text"}


def parse(text: str, constants: Mapping[str, np.ndarray] | None = None) -> Program:
    """The one Program in `text`; `constants` holds the arrays that it refers to.

    Raises ProgramSyntaxError (with line and column) for what is not the text of exactly one Program,
    ProgramVersionError for text of a newer version, ProgramTypeError for types beyond the bounds. Whether the
    equations have these types is for `runtime.reading.parse` to ask, which people call.
    """
    programs = parse_all(text, constants)
    if len(programs) != 1:
        raise ProgramSyntaxError(f"expected one program, found {len(programs)}; parse_all reads several")
    return programs[0]


def parse_all(text: str, constants: Mapping[str, np.ndarray] | None = None) -> list[Program]:
    """All Programs of `text`, one or more; raises as `parse` does."""
    if not isinstance(text, str):
        raise ProgramSyntaxError(f"a Program's text is a str, not {type(text).__name__}")
    return _Parser(text, constants or {}).text_()


def without_data(text: str) -> str:
    """The Programs' part of a text that can be read, without the data of large constants."""
    parser = _Parser(text, {})
    return text[: parser.start(parser.data_token())]


class _Parser:
    def __init__(self, text: str, constants: Mapping[str, np.ndarray]):
        self.text = text.rstrip(_SPACE)
        self.constants = dict(constants)
        self.kinds: list[str] = []
        self.tokens: list[str] = []
        self.comments: dict[int, str] = {}  # by the token that they follow on its line
        self.at = 0
        self.depth = 0
        self.types: dict[tuple[str, ...], TensorType] = {}
        try:
            text.encode()
        except UnicodeEncodeError as e:
            self.fail_at(e.start, "half of a surrogate pair is no character")
        self.tokenize()

    def tokenize(self) -> None:
        kinds, tokens = self.kinds, self.tokens
        for found in _TOKEN.findall(self.text):
            token = found.strip(_SPACE)
            kind = _KINDS.get(token[0])
            if kind == "COMMENT":
                if "\n" not in found:
                    self.comments[len(tokens) - 1] = token[1:].strip()
                continue
            if kind == "NUMBER" and token != "-":
                kind = "INT" if token.lstrip("-").isdigit() else "FLOAT"
            elif (
                kind is None
                or (len(token) == 1 and kind not in ("NAME", "PUNCT"))
                or not token.endswith(_CLOSED.get(kind, ""))
            ):
                self.fail_at(self.start(len(tokens)), f"unexpected character {token[0]!r}")
            kinds.append(kind)
            tokens.append(token)
        kinds.append("END")
        tokens.append("")

    def start(self, number: int) -> int:
        """Where in the text the token of that number begins. Only errors ask."""
        found = ((m.end(), m[0].lstrip(_SPACE)) for m in _TOKEN.finditer(self.text))
        starts = (end - len(token) for end, token in found if not token.startswith("#"))
        return next(itertools.islice(starts, number, None), len(self.text))

    # Errors and single tokens

    def fail_at(self, position: int, message: str, error=ProgramSyntaxError) -> NoReturn:
        line = self.text.count("\n", 0, position) + 1
        column = position - self.text.rfind("\n", 0, position)
        raise error(f"line {line}, column {column}: {message}")

    def fail(self, expected: str) -> NoReturn:
        found = _KIND["END"] if self.kinds[self.at] == "END" else repr(self.tokens[self.at])
        self.fail_at(self.start(self.at), f"expected {expected}, found {found}")

    def fail_before(self, message: str, error=ProgramSyntaxError) -> NoReturn:
        """About the token just read."""
        self.fail_at(self.start(self.at - 1), message, error)

    def accept(self, token: str) -> bool:
        if self.tokens[self.at] == token and self.kinds[self.at] == "PUNCT":
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if self.tokens[self.at] != token or self.kinds[self.at] != "PUNCT":
            self.fail(f"{token!r}")
        self.at += 1

    def take(self, kind: str, expected: str = "") -> str:
        if self.kinds[self.at] != kind:
            self.fail(expected or _KIND[kind])
        self.at += 1
        return self.tokens[self.at - 1]

    def keyword(self, word: str) -> None:
        if self.kinds[self.at] != "NAME" or self.tokens[self.at] != word:
            self.fail(f"{word!r}")
        self.at += 1

    def name(self, expected: str) -> str:
        name = self.take("NAME", expected)
        if name in RESERVED:
            self.fail_before(f"{name} is reserved and cannot be {expected}")
        return name

    def integer(self) -> int:
        token = self.take("INT")
        if len(token) > 20 or not -(2**63) <= int(token) < 2**64:
            self.fail_before(f"the integer {token[:24]} does not fit 64 bits")
        return int(token)

    # Grammar

    def text_(self) -> list[Program]:
        self.keyword("pybridge")
        version = self.integer()
        if version > VERSION:
            self.fail_before(
                f"the text is of version {version}, this pybridge reads up to {VERSION}: upgrade pybridge",
                ProgramVersionError,
            )
        if version < 1:
            self.fail_before(f"there is no version {version}")
        self.data()
        programs = []
        while True:
            self.keyword("program")
            programs.append(self.body(self.name("a program's name")))
            if self.kinds[self.at] == "END":
                return programs

    def data_token(self) -> int:
        """The first token of the data behind the Programs; in these, no string follows a name."""
        names = (i for i, token in enumerate(self.tokens) if token == "data")
        return next((i for i in names if self.kinds[i + 1] == "STRING"), len(self.tokens) - 1)

    def data(self) -> None:
        """Reads the data behind the Programs, which they refer to, and forgets their tokens."""
        given: dict[str, np.ndarray] = {}
        here, self.at = self.at, self.data_token()
        end = self.at
        while self.kinds[self.at] != "END":
            start = self.at
            self.keyword("data")
            ref = self.string(self.take("STRING", "a hash"))
            type_ = self.type()
            text = self.take("STRING", "data in base64")[1:-1]
            try:
                given[ref] = read_data(ref, type_, text, given)
            except ProgramTypeError as e:
                self.fail_at(self.start(start), str(e))
        self.constants.update(given)
        self.kinds[end:], self.tokens[end:], self.at = ["END"], [""], here

    def body(self, name: str = "") -> Program:
        self.nest()
        scope: dict[int, Var] = {}
        self.expect("(")
        inputs = () if self.tokens[self.at] == ")" else self.binders(scope)
        self.expect(")")
        self.expect("{")
        equations = []
        while self.kinds[self.at] == "VAR":
            equations.append(self.equation(scope))
        if self.tokens[self.at] != "return":
            self.fail("an equation or 'return'")
        self.at += 1
        outputs = self.atoms(scope)
        self.expect("}")
        self.depth -= 1
        return Program(name, inputs, tuple(equations), outputs, self.constants)

    def nest(self) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"at most {MAX_NESTING} levels of nesting")

    def binders(self, scope: dict[int, Var], outer: Container[int] = ()) -> tuple[Var, ...]:
        """Adds to `scope`; what is in `outer` is bound already."""
        bound = []
        while True:
            token = self.take("VAR")
            if len(token) > 10:
                self.fail_before(f"the variable number {token[:12]} is too large")
            number = int(token[1:])
            if number in scope or number in outer:
                self.fail_before(f"{token} is bound twice")
            self.expect(":")
            scope[number] = var = Var(number, self.type())
            bound.append(var)
            if not self.accept(","):
                return tuple(bound)

    def type(self) -> TensorType:
        # Types repeat a great deal, so each is built once for its sequence of tokens.
        start = self.at
        dtype = self.dtype()
        self.expect("[")
        while not self.accept("]"):
            if self.kinds[self.at] == "END":
                self.fail("']'")
            self.at += 1
        key = tuple(self.tokens[start : self.at])
        if key not in self.types:
            self.at = start + 2
            shape = self.shape()
            try:
                self.types[key] = TensorType(dtype, shape)
            except ProgramTypeError as e:
                self.fail_at(self.start(start), str(e), ProgramTypeError)
        return self.types[key]

    def shape(self) -> tuple[int | SymDim, ...]:
        dims: list[int | SymDim] = []
        if self.accept("]"):
            return ()
        while True:
            if self.kinds[self.at] == "DIMEXPR":
                dims.append(self.symbolic())
            elif self.kinds[self.at] == "INT" and not self.tokens[self.at].startswith("-"):
                dims.append(self.integer())
            else:
                self.fail("a dimension")
            if not self.accept(","):
                self.expect("]")
                return tuple(dims)

    def symbolic(self) -> SymDim:
        text = self.take("DIMEXPR")[1:-1]
        try:
            return SymDim(text)
        except ProgramTypeError as e:
            self.fail_before(str(e))

    def dtype(self) -> str:
        if self.tokens[self.at] not in DTYPES:
            self.fail(f"a dtype ({', '.join(DTYPES)})")
        self.at += 1
        return self.tokens[self.at - 1]

    def equation(self, scope: dict[int, Var]) -> Equation:
        # The operands are read in the scope without the results: a variable is used after it is bound.
        results: dict[int, Var] = {}
        outputs = self.binders(results, scope)
        self.expect("=")
        op = self.name("a primitive's name")
        operation = OPERATIONS.get(op)
        if operation is None:
            self.fail_before(f"there is no primitive {op}")
        inputs = self.atoms(scope)
        attrs = self.attributes(op, operation.attributes) if self.accept("{") else {}
        attrs = ADDED.get(op, {}) | attrs
        if missing := operation.missing(attrs):
            self.fail(f"the attribute {missing[0]} of {op}")
        scope.update(results)
        return Equation(op, inputs, outputs, attrs, self.comments.get(self.at - 1, ""))

    def atoms(self, scope: dict[int, Var]) -> tuple[Atom, ...]:
        found: list[Atom] = []
        while True:
            kind, token = self.kinds[self.at], self.tokens[self.at]
            if kind == "VAR":
                # A variable followed by ":" begins the next equation.
                if self.tokens[self.at + 1] == ":":
                    return tuple(found)
                self.at += 1
                var = scope.get(int(token[1:])) if len(token) <= 10 else None
                if var is None:
                    self.fail_before(f"{token[:12]} is used before it is bound")
                found.append(var)
            elif kind in ("INT", "FLOAT") or token == "(" or (kind == "NAME" and token in RESERVED):
                found.append(self.literal())
            else:
                return tuple(found)

    def literal(self) -> Literal:
        start = self.at
        value: str | tuple[str, str]
        if self.accept("("):
            real = self.decimal()
            self.expect(",")
            value = real, self.decimal()
            self.expect(")")
        else:
            self.at += 1
            value = self.tokens[start]
        self.expect(":")
        dtype = self.dtype()
        try:
            return Literal(self.number(value, dtype), dtype)
        except (ValueError, OverflowError):
            shown = f"({','.join(value)})" if isinstance(value, tuple) else value
            self.fail_at(self.start(start), f"{shown[:40]} is not a number of dtype {dtype}")

    def decimal(self) -> str:
        if self.kinds[self.at] != "FLOAT" and self.tokens[self.at] not in ("inf", "nan"):
            self.fail("a float")
        self.at += 1
        return self.tokens[self.at - 1]

    @staticmethod
    def number(value: str | tuple[str, str], dtype: str) -> bool | int | float | complex:
        """Raises ValueError or OverflowError where the text does not fit the dtype."""
        if isinstance(value, tuple) != (dtype in COMPLEX):
            raise ValueError
        if isinstance(value, tuple):
            return complex(*(read_float(part, dtype == "c64") for part in value))
        if dtype == "bool":
            return ("false", "true").index(value) == 1
        if dtype in FLOATS:
            if not ("." in value or "e" in value.lower() or value.lstrip("-") in ("inf", "nan")):
                raise ValueError  # an integer where a float should stand
            return read_float(value, dtype != "f64")
        low, high = integer_range(dtype)
        # The length first: int() refuses thousands of digits in its own way.
        if len(value) > 20 or not low <= int(value) <= high:
            raise ValueError
        return int(value)

    def attributes(self, op: str, known: tuple[str, ...]) -> dict[str, Value]:
        attrs: dict[str, Value] = {}
        while True:
            name = self.name("an attribute's name")
            if name not in known:
                self.fail_before(f"{op} has no attribute {name}")
            if name in attrs:
                self.fail_before(f"the attribute {name} is given twice")
            self.expect("=")
            attrs[name] = self.value()
            if not self.accept(","):
                self.expect("}")
                return attrs

    def value(self) -> Value:
        kind, token = self.kinds[self.at], self.tokens[self.at]
        if kind == "INT":
            return self.integer()
        if token == "(":
            return self.body()
        if token == "[":
            self.at += 1
            return self.list()
        if kind == "DIMEXPR":
            return self.symbolic()
        if kind not in ("FLOAT", "NAME", "STRING"):
            self.fail("a value")
        self.at += 1
        if kind == "STRING":
            return self.string(token)
        if kind == "FLOAT" or token in ("inf", "nan"):
            try:
                return read_float(token)
            except OverflowError as e:
                self.fail_before(str(e))
        return {"true": True, "false": False, "none": None}.get(token, token)

    def list(self) -> tuple[Value, ...]:
        self.nest()
        values: list[Value] = []
        if not self.accept("]"):
            values.append(self.value())
            while self.accept(","):
                values.append(self.value())
            self.expect("]")
        self.depth -= 1
        return tuple(values)

    def string(self, token: str) -> str:
        try:
            return checked_string(json.loads(token))
        except (ValueError, ProgramTypeError):
            self.fail_before(f"{token[:40]} is not a JSON string")
