"""Libraries for C in tests: their functions called by pointers, and programs in C that call them."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

import pybridge as pb
from pybridge.ir.numerals import DTYPES

COMPILER = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1", "-g")
_GUARD = 64
_FILL = 0xA5


def entry(made: pb.CLibrary, function: str) -> dict:
    """What the manifest says of a function."""
    return next(e for e in json.loads(made.manifest.read_text())["functions"] if e["name"] == function)


def call(
    made: pb.CLibrary, function: str, *arrays, in_workspace: bool = False, shift: int = 0
) -> list[np.ndarray]:
    """The results of a C function, which may write nowhere else.

    shift: by how many elements all memory is off an address that 64 divides.
    """
    about = entry(made, function)
    inputs = [_Area(p, shift, np.asarray(x)) for p, x in zip(about["arguments"], arrays, strict=True)]
    outputs = [_Area(p, shift) for p in about["results"]]
    areas = [*inputs, *outputs]
    symbol = list(about["symbols"])[int(in_workspace)]
    if in_workspace:
        areas.append(_Area({"dtype": "u8", "shape": [about["workspace"]]}, 0))
    address = getattr(ctypes.CDLL(str(made.library)), symbol)
    address.restype = ctypes.c_int
    status = address(*(ctypes.c_void_p(area.start) for area in areas))
    assert status == 0
    assert all(area.intact() for area in areas), "it has written outside its results"
    for area, x in zip(inputs, arrays, strict=True):
        np.testing.assert_array_equal(area.content(), np.asarray(x, area.dtype), "it has changed an argument")
    return [area.content() for area in outputs]


class _Area:
    """Memory for one array, with bytes around it that nobody may change."""

    def __init__(self, parameter: dict, shift: int, content: np.ndarray | None = None):
        self.dtype, self.shape = DTYPES[parameter["dtype"]], tuple(parameter["shape"])
        self.size = int(np.prod(self.shape)) * self.dtype.itemsize
        self.memory = np.full(self.size + 3 * _GUARD + shift * self.dtype.itemsize, _FILL, np.uint8)
        self.offset = _GUARD + -self.memory.ctypes.data % 64 + shift * self.dtype.itemsize
        if content is not None:
            assert content.shape == self.shape and content.dtype == self.dtype
            self.memory[self.offset : self.offset + self.size] = np.frombuffer(content.tobytes(), np.uint8)

    @property
    def start(self) -> int:
        return self.memory.ctypes.data + self.offset

    def content(self) -> np.ndarray:
        return np.frombuffer(self.memory[self.offset :][: self.size].tobytes(), self.dtype).reshape(
            self.shape
        )

    def intact(self) -> bool:
        around = np.delete(self.memory, np.s_[self.offset : self.offset + self.size])
        return bool((around == _FILL).all())


def build(made: pb.CLibrary, code: str, *options: str, language: str = "c") -> Path:
    """An executable of C code that includes the library's header."""
    folder = made.library.parent
    source, program = folder / f"program.{language}", folder / f"program-{len(list(folder.iterdir()))}"
    source.write_text(code)
    compiler = str(COMPILER) if language == "c" else str(shutil.which("g++"))
    flags = STRICT if language == "c" else ("-Wall", "-Wextra", "-pedantic", "-Werror")
    name = made.library.stem.removeprefix("lib")
    links = [f"-L{folder}", f"-l{name}", f"-Wl,-rpath,{folder}", "-lpthread", "-lm"]
    done = _run([compiler, *flags, *options, f"-I{folder}", str(source), "-o", str(program), *links])
    assert done.returncode == 0, done.stderr
    return program


def run(*command: str | Path, **variables: str) -> str:
    """What a program prints that ends well."""
    done = _run([str(word) for word in command], **variables)
    assert done.returncode == 0, (
        f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    return done.stdout


def _run(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=240
    )
