from __future__ import annotations

import os
import textwrap

import pytest
import wrong_engines
from unoptimised import unoptimised  # noqa: F401

from pybridge.engines import ENGINES


@pytest.fixture
def engines(monkeypatch):
    """The engines that are wrong on purpose, among the others for one test."""
    for engine in (
        wrong_engines.TRIPLED_SINE,
        wrong_engines.SKEWED_EXPONENTIAL,
        wrong_engines.WRONG_BACKWARDS,
        wrong_engines.NOT_BACKWARDS,
        wrong_engines.IN_COMPANY,
        wrong_engines.SHIFTED,
        wrong_engines.RAISING,
        wrong_engines.ABSENT,
    ):
        monkeypatch.setitem(ENGINES, engine.name, engine)


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Puts a package in the place of enzyme-ad, in child processes too; `body` is what its one function
    does.
    """

    def install(body: str) -> None:
        package = tmp_path / "enzyme_ad"
        (package / "jax").mkdir(parents=True)
        (package / "__init__.py").write_text("")
        lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
        source = f"import os, time\n\ndef enzyme_jax_ir():\n{lines}\n"
        (package / "jax" / "__init__.py").write_text(source)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
        monkeypatch.syspath_prepend(str(tmp_path))

    return install
