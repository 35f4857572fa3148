"""Python test files, by how far they are from a changed module along the imports."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import grimp

from .choice import ROOT, Candidate, seconds_of

_FAR = 99.0


def candidates(changed: Iterable[str], known: dict[str, float]) -> Iterator[Candidate]:
    """Each test file that reaches a changed file. changed: paths from the checkout's root."""
    changed = set(changed)
    distances = _distances({name for path in changed if (name := module_of(path))})
    for file in test_files():
        path = file.relative_to(ROOT).as_posix()
        seconds = seconds_of(path, known)
        if path in changed or changed & {p.relative_to(ROOT).as_posix() for p in _helpers(file)}:
            yield Candidate(path, (0, 0), seconds, "it or what it shares changed")
            continue
        if folder := next((f for f in map(_top_folder, changed) if f and _tests_folder(file, f)), None):
            yield Candidate(path, (1, 0), seconds, f"tests {folder}/")
            continue
        near = min((distances.get(name, _FAR) for name in _imports(file)), default=_FAR)
        if near < _FAR:
            namesake = any(file.stem == f"test_{Path(p).stem}" for p in changed)
            mirrored = any(_mirrors(file, p) for p in changed)
            rank = 0 if namesake else 1 if mirrored else 2
            yield Candidate(path, (rank, near), seconds, f"{near:.0f} imports away")


def test_files() -> list[Path]:
    return sorted((ROOT / "tests").rglob("test_*.py"))


def module_of(path: str) -> str | None:
    """The module's name, for a file of the package."""
    parts = Path(path).with_suffix("").parts
    if parts[0] != "pybridge" or not path.endswith(".py"):
        return None
    return ".".join(parts).removesuffix(".__init__")


def _top_folder(path: str) -> str | None:
    """Folders next to the package, such as `zoo`, whose tests are named after them."""
    first, *rest = Path(path).parts
    return first if rest and first not in ("pybridge", "tests", "julia") else None


def _tests_folder(file: Path, folder: str) -> bool:
    names = {"docs": ("test_pages", "test_site"), "examples": ("test_examples",)}
    return file.stem in names.get(folder, (f"test_{folder}",))


def _mirrors(file: Path, changed: str) -> bool:
    """Whether the test file lies as the changed module does: tests/runtime for pybridge/runtime."""
    module, tests = Path(changed).parent.parts[1:], file.parent.relative_to(ROOT / "tests").parts
    return bool(module) and tests[: len(module)] == module


def _distances(changed: set[str]) -> dict[str, float]:
    """The number of imports from each module of the package to the nearest changed one."""
    graph = grimp.build_graph("pybridge", cache_dir=None)
    distances = dict.fromkeys(changed & graph.modules, 0.0)
    front = set(distances)
    while front:
        nearest = min(distances[name] for name in front)
        step = {name for name in front if distances[name] == nearest}
        front -= step
        for name in step:
            for importer in graph.find_modules_that_directly_import(name):
                if importer not in distances and importer != "pybridge":  # whose imports are lazy
                    distances[importer] = nearest + 1
                    front.add(importer)
    return distances


@cache
def _public_names() -> dict[str, str]:
    """The module behind each public name: `pb.bridge` is pybridge.api.bridge's."""
    tree = _tree(ROOT / "pybridge" / "__init__.py")
    return {
        alias.asname or alias.name: f"pybridge.{node.module}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _imports(file: Path) -> frozenset[str]:
    """The package's modules that the file, or a module of tests that it imports, uses."""
    found: set[str] = set()
    for source in (file, *_helpers(file)):
        for node in ast.walk(_tree(source)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pb":
                found |= {_public_names()[node.attr]} if node.attr in _public_names() else set()
    return frozenset(found)


@cache
def _helpers(file: Path) -> tuple[Path, ...]:
    """The modules of tests that a test file imports, and what these import."""
    found: dict[Path, None] = {}
    waiting = [file]
    while waiting:
        source = waiting.pop()
        for node in ast.walk(_tree(source)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in names:
                for folder in (source.parent, ROOT / "tests"):
                    helper = folder / f"{name}.py"
                    if helper.exists() and helper not in found and helper != file:
                        found[helper] = None
                        waiting.append(helper)
                        break
    return tuple(found)
