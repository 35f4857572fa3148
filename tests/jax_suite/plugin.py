"""The plugin of pytest: bridges what a test module of JAX differentiates, and counts the Programs that ran.

A test that calls no bridged function tells nothing about pybridge, so it fails.
"""

from __future__ import annotations

import inspect
import json
import platform
import re
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import jax
import pytest

from pybridge.runtime import native
from pybridge.runtime.julia_call import julia_call_p

from . import apart, bridged


def pytest_addoption(parser) -> None:
    group = parser.getgroup("pybridge")
    group.addoption("--execute", choices=["xla", "julia", "auto"], default="auto")
    group.addoption("--plain", action="store_true", help="nothing is bridged")
    group.addoption("--results", type=Path, default=None)


def pytest_configure(config) -> None:
    suite = _Suite(config)
    config.pluginmanager.register(suite, "jax_suite")
    if not config.getoption("--plain"):
        config.pluginmanager.register(_Bridging(suite), "bridging")


class _Suite:
    def __init__(self, config):
        self.execute = config.getoption("--execute")
        self.results = config.getoption("--results")
        self.calls: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.failures: dict[str, str] = {}
        _count(self.calls)

    def pytest_runtest_logreport(self, report) -> None:
        outcome = _outcome(report)
        if outcome is None:
            return
        self.found[outcome] += 1
        self.found.update(dict(report.user_properties))
        if outcome == "skipped":
            self.skipped[_reason(report)] += 1
        if outcome == "failed":
            self.failures[report.nodeid.split("::", 1)[-1]] = _reason(report)

    def pytest_terminal_summary(self, terminalreporter, config) -> None:
        terminalreporter.section(f'execute="{self.execute}", JAX {jax.__version__}')
        terminalreporter.line(", ".join(f"{count} {name}" for name, count in self.found.items()))
        for reason, count in self.skipped.most_common():
            terminalreporter.line(f"skipped {count}: {reason}")
        if self.results is not None:
            self.results.write_text(json.dumps(self._record(), indent=1) + "\n")

    def _record(self) -> dict:
        return {
            "jax": jax.__version__,
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "execute": self.execute,
            "x64": jax.config.jax_enable_x64,
            **self.found,
            "reasons of skips": dict(self.skipped),
            "failures": self.failures,
        }


class _Bridging:
    """Bridges what the tests differentiate."""

    def __init__(self, suite: _Suite):
        self.execute, self.calls = suite.execute, suite.calls
        self.bridged: set[str] = set()

    def pytest_collection_modifyitems(self, config, items) -> None:
        items[:] = [item for item in items if _differentiates(item)]
        for item in items:
            module = item.module
            if module.__name__ not in self.bridged:
                self.bridged.add(module.__name__)
                bridged.substitute(module, self.execute, lambda what: self.calls.update([what]))
            reason = apart.reason(item.path.stem, item.name, self.execute)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.calls.clear()
        try:
            yield
        finally:
            item.user_properties.extend(self.calls.items())
        if not self.calls["derivatives"]:
            pytest.skip("with these parameters it differentiates nothing")
        if not self.calls["calls"]:
            raise AssertionError("no bridged function was called: nothing of this test went through pybridge")


def _count(calls: Counter[str]) -> None:
    """Counts binds of `julia_call`, and the native kernels that JAX's lowering asks for."""
    bind, lower = julia_call_p.bind, native.lower

    def counted_bind(*args, **params):
        calls["Programs"] += 1
        return bind(*args, **params)

    def counted_lower(*args):
        calls["kernels"] += 1
        return lower(*args)

    julia_call_p.bind, native.lower = counted_bind, counted_lower


def _differentiates(item) -> bool:
    """Whether the test's code names one of JAX's functions that differentiate."""
    source = inspect.getsource(inspect.unwrap(item.function))
    return re.search(rf"\b({'|'.join(bridged.DIFFERENTIATE)})", source) is not None


def _outcome(report) -> str | None:
    """What is counted of a test's reports: its call, or its setup if it went no further; not its subtests."""
    if hasattr(report, "context"):
        return None
    if report.when == "call" or (report.when == "setup" and not report.passed):
        return report.outcome
    return None


def _reason(report) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", report.longrepr))
