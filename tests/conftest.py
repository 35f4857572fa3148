"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import covering
import jax
import pytest
from casekit import QUICK_FLAGS
from times import recording

from pybridge import cache
from pybridge.runtime.julia.processor import processor_flags

_RUN = pytest.StashKey[Path]()
_TESTS = pytest.StashKey[int]()
# Linux gives a process 65 530 mappings, and JAX takes three for each executable, which its caches keep.
_MOST_MAPPINGS, _MAPPINGS = 20_000, Path("/proc/self/maps")
_EVERY = 20  # tests between two looks

# What XLA makes of a program is kept, for the next run too: JAX's key has the program, its version and flags,
# the folder's name what the processor can do. A compilation takes ten times as long as reading its result.
_PROCESSOR = hashlib.sha256(" ".join(sorted(processor_flags())).encode()).hexdigest()[:16]
_XLA_CACHE = {
    "jax_compilation_cache_dir": str(cache.user_folder() / "tests" / f"xla-{_PROCESSOR}"),
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
_MOST_COMPILED = 200_000  # files, of some four kilobytes


def pytest_configure(config: pytest.Config) -> None:
    """A cache of this run's own, which the processes that share the work share too, and a silent stderr."""
    recording.register(config)
    os.environ.setdefault("PYBRIDGE_PROGRESS", "off")  # how long things take depends on the machine
    _share_compiled(config)
    if covering.ONCE:  # what XLA's optimiser makes of the same programs is tested on the newest versions
        os.environ.setdefault("XLA_FLAGS", QUICK_FLAGS)
    if cache.SETTING in os.environ:  # the user's choice, or that of the process that started this one
        return
    folder = Path(tempfile.mkdtemp(prefix="pybridge-tests-"))
    os.environ[cache.SETTING] = str(folder)
    config.stash[_RUN] = folder


def _share_compiled(config: pytest.Config) -> None:
    """The processes of all runs share what XLA compiles, unless JAX was told of a folder already."""
    folder = Path(_XLA_CACHE["jax_compilation_cache_dir"])
    if jax.config.jax_compilation_cache_dir is not None:
        return
    if not hasattr(config, "workerinput") and folder.is_dir() and len(os.listdir(folder)) > _MOST_COMPILED:
        shutil.rmtree(folder, ignore_errors=True)
    for name, value in _XLA_CACHE.items():
        os.environ[name.upper()] = str(value)  # for the processes that tests start
        jax.config.update(name, value)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `once`, a test runs with few sets of parameters, unless each is about another primitive."""
    if not covering.ONCE:
        return
    instances: dict[str, list[pytest.Item]] = {}
    for item in items:
        instances.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept: set[pytest.Item] = set()
    for group in instances.values():
        whole = group[0].get_closest_marker("per_primitive")
        kept.update(group if whole else covering.some(group, 3, full=False))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(_RUN, None)
    if folder is not None:
        os.environ.pop(cache.SETTING, None)
        shutil.rmtree(folder, ignore_errors=True)


def pytest_collection_finish() -> None:
    """The collector need not look at what modules made: that takes a tenth of all."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Drops what JAX has compiled before the process has no mappings left, and so no memory."""
    tests = item.config.stash[_TESTS] = item.config.stash.get(_TESTS, 0) + 1
    if tests % _EVERY == 0 and _MAPPINGS.is_file():
        with _MAPPINGS.open("rb") as lines:
            mappings = sum(1 for _ in lines)
        if mappings > _MOST_MAPPINGS:
            jax.clear_caches()
            gc.collect()


@pytest.fixture
def x64():
    """64-bit types in JAX for one test."""
    with jax.enable_x64(True):
        yield
