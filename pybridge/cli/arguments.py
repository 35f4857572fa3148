"""Functions and example arguments named on a command line.

A function is `module:function` or `path/to/file.py:function`. Its arguments are, in this order of preference,

- given on the command line, each as a type (`f32[32,64]` for seeded normal random numbers, `f32[64]:0.5..2`
  for uniform ones between bounds, `i32[10]:0..5`), as a number (`1.5`, `3`, `-2`), or as a file (`@x.npy`);
  a type may have symbolic sizes (`f32[n,3]`) where nothing is computed;
- the function's attribute `example_args`, a tuple or a function without arguments that returns one;
- what the module's function `example_args(name)` returns for the function's name.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import ProgramTypeError, UnknownOption
from ..ir.numerals import DTYPES, INTEGERS
from ..ir.types import SymDim, TensorType

_TYPE = re.compile(r"(?P<dtype>[a-z]+\d*)\[(?P<shape>[\w,\s+*-]*)\](?::(?P<low>[^.]\S*?)\.\.(?P<high>\S+))?")

_WIDE = [np.dtype(name) for name in ("float64", "complex128", "int64", "uint64")]


def load_function(name: str) -> tuple[Callable, ModuleType]:
    """The function that `name` means, and its module. Raises UnknownOption where there is none."""
    place, colon, attribute = name.rpartition(":")
    if not colon or not place or not attribute:
        raise UnknownOption(f"{name!r} names no function; write module:function or path/to/file.py:function")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UnknownOption(f"{place} has no {attribute!r}")
        found = getattr(found, part)
    if not callable(found):
        raise UnknownOption(f"{attribute} of {place} is a {type(found).__name__}, no function")
    return found, module


@contextlib.contextmanager
def example_arguments(
    name: str, specs: Sequence[str], seed: int, symbolic: bool = False
) -> Iterator[tuple[Callable, tuple]]:
    """The function and arguments for it, by the rules above; with symbolic sizes if `symbolic`.

    Within the context JAX has 64-bit types if a word asks for one of them, whatever the file says, and for
    the file itself, so that what it makes when it is loaded has them too. Otherwise the file says.
    """
    args = tuple(argument(spec, np.random.default_rng([seed, i])) for i, spec in enumerate(specs))
    if any(isinstance(x, TensorType) for x in args):
        args = _with_symbolic_sizes(args, specs, symbolic)
    with _wide_types() if any(map(_is_wide, args)) else contextlib.nullcontext():
        f, module = load_function(name)
        yield f, args if specs else _offered(name, f, module)


def _is_wide(x: Any) -> bool:
    """Whether it is an array that JAX would make narrower; numbers of Python have no width."""
    return hasattr(x, "dtype") and x.dtype in _WIDE


def _with_symbolic_sizes(args: tuple, specs: Sequence[str], symbolic: bool) -> tuple:
    """Types as jax.export has them, a name being the same size in all."""
    from ..frontend.dimensions import export_arguments

    spec = next(spec for spec, x in zip(specs, args, strict=True) if isinstance(x, TensorType))
    if not symbolic:
        raise UnknownOption(f"{spec!r} has a symbolic size, of which no array is made: write a number for it")
    try:
        made = iter(export_arguments([x for x in args if isinstance(x, TensorType)]))
    except ValueError as reason:
        raise UnknownOption(f"{spec!r} has a size that is no expression: {reason}") from None
    return tuple(next(made) if isinstance(x, TensorType) else x for x in args)


def _wide_types() -> contextlib.AbstractContextManager:
    import jax

    return jax.enable_x64(True)


def _offered(name: str, f: Callable, module: ModuleType) -> tuple:
    """The arguments that come with the function."""
    given = getattr(f, "example_args", None)
    if given is not None:
        return tuple(given() if callable(given) else given)
    offer = getattr(module, "example_args", None)
    if callable(offer):
        return tuple(offer(name.rpartition(":")[2]))
    raise UnknownOption(
        f"no arguments for {name}: give types such as f32[32,64], or give the function an attribute "
        "`example_args` or its module a function `example_args(name)`"
    )


def argument(spec: str, rng: np.random.Generator) -> Any:
    """The argument that one word of the command line means, or its type where that has symbolic sizes.

    Raises UnknownOption for a word that means none.
    """
    if spec.startswith("@"):
        return _from_file(Path(spec[1:]))
    if match := _TYPE.fullmatch(spec):
        return _random(spec, match, rng)
    for number in (int, float, complex):
        try:
            return number(spec)
        except ValueError:
            continue
    raise UnknownOption(
        f"{spec!r} is no argument: write a type such as f32[32,64] or f32[64]:0.5..2, a number, or @file.npy"
    )


def _random(spec: str, match: re.Match[str], rng: np.random.Generator) -> np.ndarray | TensorType:
    name = match["dtype"]
    if name not in DTYPES:
        raise UnknownOption(f"{spec!r}: there is no dtype {name!r}; there are {', '.join(DTYPES)}")
    dtype = DTYPES[name]
    sizes = [n for n in match["shape"].replace(" ", "").split(",") if n]
    if not all(map(str.isdigit, sizes)):
        try:
            return TensorType(name, tuple(int(n) if n.isdigit() else SymDim(n) for n in sizes))
        except ProgramTypeError as reason:
            raise UnknownOption(f"{spec!r}: {reason}") from None
    shape = tuple(map(int, sizes))
    try:
        low, high = (float(match[part]) if match[part] else None for part in ("low", "high"))
    except ValueError:
        raise UnknownOption(f"{spec!r}: bounds are numbers, as in f32[64]:0.5..2") from None
    if name == "bool":
        return rng.random(shape) < 0.5
    if name in INTEGERS:
        return rng.integers(int(low or 0), int(10 if high is None else high), shape).astype(dtype)

    def draw() -> np.ndarray:
        if low is None or high is None:  # a range has both
            return rng.standard_normal(shape)
        return rng.uniform(low, high, shape)

    return np.asarray(draw() + 1j * draw() if dtype.kind == "c" else draw()).astype(dtype)


def _from_file(path: Path) -> np.ndarray:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as reason:
        raise UnknownOption(f"{path} cannot be read as an array: {reason}") from None


def _load_module(name: str) -> ModuleType:
    sys.path[:0] = [] if "" in sys.path else [""]  # as `python -m` does
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as reason:
        if reason.name and not name.startswith(reason.name):
            raise  # the module is there, but misses one of its own
        raise UnknownOption(
            f"there is no module {name!r} here; a file is named by its path, ending in .py"
        ) from None


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UnknownOption(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    sys.path[:0] = [str(path.parent.resolve())]  # as running the file would
    spec.loader.exec_module(module)
    return module
