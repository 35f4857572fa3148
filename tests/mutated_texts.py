"""Texts of Programs, one of each primitive, with random mistakes: what both parsers, the type checker and the
evaluator make of them. Run as a program, `mutated_texts.py SEED COUNT FILE`, since a crash would end the
process of a test: the text at hand is in FILE."""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cases import CASES

import pybridge as pb
from pybridge.ir import parser
from pybridge.ir.numerals import DTYPES
from pybridge.ir.program import Program
from pybridge.runtime import julia
from pybridge.runtime.evaluation import evaluate

LONGEST = 10.0
"""Seconds of processor time that one text may take."""
LARGEST = 1000
"""Programs with larger numbers in their text are not evaluated: loops of so many trips are right."""

_TOKEN = re.compile(r'"[^"\n]*"|<[^>\n]*>|%?\w+(?:\.\w+)?|\s+|.', re.DOTALL)
_NUMBERS = [str(n) for n in (0, 1, -1, 2, 3, 7, 64, 65, -(2**31), 2**31 - 1, 2**32, 10**12, 2**63 - 1)]
_OTHERS = [
    *["18446744073709551615", "18446744073709551616", "9" * 23, "0.5", "-0.0", "1e999", "1.0e-400", "inf"],
    *["-inf", "nan", "true", "false", "none", "%0", "%1", "%999999999", "%9999999999", "f32", "f64", "bf16"],
    *["c64", "i64", "u64", "bool", "f32[]", "i32[0]", "f64[4294967296,4294967296]", "f32[<b>]", "<b>"],
    *["<b^2>", "<b^99>", "<2>", "<-1>", "<>", "<b*(b+1)>", "<f(b)>", "[]", "[0]", "[[0]]", "[0,0]", "[-1]"],
    *["[true]", "[1.5]", "[none]", '""', '"a"', r'"\u0000"', r'"\ud800"', "clip", "()", "(){return}"],
    *'(){}[]:,=#"<\\',
    *["return", "program", "pybridge", "\0", "\x7f", "\x85", "\u2028", "é", "😀"],
]
_POOL = [*_NUMBERS, *_OTHERS]


def sources() -> list[str]:
    """The text of a Program of each primitive."""
    texts = {}
    for case in CASES:
        if case.op not in texts:
            with case.context():
                texts[case.op] = str(pb.trace(case.f)(*case.inputs()))
    return list(texts.values())


def changed_characters(text: str, rng: random.Random) -> str:
    at, cut = rng.randrange(len(text)), rng.choice([0, 1, 1, 2, 5])
    new = "".join(rng.choices('%:{}[]()=,#"<>\\ \n\r\t0123456789.-e_fnitru\0\x0bé', k=rng.randrange(3)))
    return text[:at] + new + text[at + cut :]


def changed_tokens(text: str, rng: random.Random) -> str:
    tokens = _TOKEN.findall(text)
    solid = [i for i, token in enumerate(tokens) if not token.isspace()]
    at, other = rng.choice(solid), rng.choice(solid)
    match rng.randrange(5):
        case 0:
            tokens[at] = ""
        case 1:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case 2:
            tokens[at] = tokens[other]
        case 3:
            tokens[at] = f"{tokens[at]} {rng.choice(_POOL)}"
        case _:
            tokens[at] = rng.choice(_POOL)
    return "".join(tokens)


def changed_numbers(text: str, rng: random.Random) -> str:
    numbers = list(re.finditer(r"(?<![%\w.])-?\d+(?![\w.])", text))
    if not numbers:
        return text
    number = rng.choice(numbers)
    return text[: number.start()] + rng.choice(_NUMBERS) + text[number.end() :]


def changed_lines(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(3):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[other])
        case _:
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


CHANGES: list[Callable[[str, random.Random], str]] = [
    changed_characters,
    changed_tokens,
    changed_tokens,
    *[changed_numbers] * 4,
    changed_lines,
]


def mutated(texts: list[str], rng: random.Random) -> str:
    text = rng.choice(texts)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        text = rng.choice(CHANGES)(text, rng) or text
    return text


def judged(text: str) -> str:
    """What became of the text, in a word. Raises AssertionError where that is wrong."""
    try:
        program = parser.parse(text)
    except pb.PyBridgeError as e:
        program, refused = None, e
    try:
        printed = julia.request("normalize", text)
    except pb.JuliaError as e:
        refusals = () if program else ("ProgramSyntaxError", "ProgramVersionError")
        assert e.kind in ("ProgramTypeError", *refusals), f"Julia: {e.kind}: {e}"
        return "ill-typed" if program else "refused"
    assert program is not None, f"Julia reads what Python refuses: {refused}"
    assert parser.parse(printed) == program, "Julia reads another Program"
    return evaluated(program, text) if is_small(program, text) else "well-typed"


def is_small(program: Program, text: str) -> bool:
    static = all(isinstance(n, int) for t in program.input_types for n in t.shape)
    small = all(int(n) <= LARGEST for n in re.findall(r"\d+", text))
    return static and small and " while" not in text and "ref=" not in text


def evaluated(program: Program, text: str) -> str:
    rng = np.random.default_rng(0)
    inputs = [np.asarray(rng.integers(0, 3, t.shape), DTYPES[t.dtype]) for t in program.input_types]
    try:
        evaluate(program, *inputs)
    except (pb.ProgramTypeError, pb.UnsupportedPrimitive, pb.ArgumentError):
        return "not evaluated"
    except pb.JuliaError as e:
        assert e.kind == "OutOfMemoryError", f"evaluated: {e.kind}: {e}\n{e.stacktrace[:2000]}"
        return "too large"
    return "evaluated"


def main(seed: int, count: int, file: Path) -> None:
    rng, texts, counts, wrong = random.Random(seed), sources(), {}, 0
    for _ in range(count):
        text = mutated(texts, rng)
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        start = time.process_time()
        try:
            outcome = judged(text)
            taken = time.process_time() - start
            assert taken < LONGEST, f"took {taken:.1f} s"
        except Exception as e:
            outcome = "WRONG"
            wrong += 1
            if wrong < 20:
                print(f"{type(e).__name__}: {e}\n{text}\n{'-' * 40}", flush=True)
        counts[outcome] = counts.get(outcome, 0) + 1
    print(counts)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
