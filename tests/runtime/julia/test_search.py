"""Where Julia is looked for, and what is said about one that is no good."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pybridge.errors import JuliaUnusable
from pybridge.runtime.julia.probe import probe

from .processes import Python

ASK = """
    import pybridge.errors as e
    from pybridge.runtime.julia import request, status
    try:
        request("echo")
    except e.PyBridgeError as problem:
        print(type(problem).__name__, problem)
    assert not status().started
"""

_VERSION = '[ "$1" = --version ] && echo "julia version 1.9.0"'
FAKES = {
    "too old": ('echo "julia version 1.0.5"', "1.0.5", "1.5 or newer"),
    "crashes": (
        '[ "$1" = --version ] && echo "julia version 1.9.0" && exit 0; kill -SEGV $$',
        "1.9.0",
        "signal 11",
    ),
    "crashes at once": ("exit 3", "unknown", "exit status 3"),
    "is something else": ('echo "hello"', "unknown", "hello"),
    "says too little": (f"{_VERSION}; exit 0", "1.9.0", "libjulia"),
}


@pytest.mark.parametrize("kind", FAKES)
@pytest.mark.parametrize("place", ["PYBRIDGE_JULIA", "PATH"])
def test_an_unusable_julia_is_one_error_with_path_version_and_remedy(
    kind: str, place: str, python: Python, fake_julia: Callable[[str], Path]
) -> None:
    script, version, reason = FAKES[kind]
    fake = fake_julia(script)
    if place == "PATH":
        said = python.with_no_choice.with_(PATH=f"{fake.parent}:/bin").run(ASK)
    else:
        said = python.with_(PYBRIDGE_JULIA=str(fake)).run(ASK)
    text = said.fine()
    assert text.startswith("JuliaUnusable") and text.count("\n") == 1
    assert str(fake) in text and version in text and reason in text
    assert "PYBRIDGE_JULIA" in text and "pybridge setup" in text


def test_a_julia_that_hangs_is_given_up(fake_julia: Callable[[str], Path]) -> None:
    fake = fake_julia("exec sleep 60")
    begun = time.monotonic()
    with pytest.raises(JuliaUnusable, match=r"did not answer within 0\.5 s.*pybridge setup") as caught:
        probe(fake, timeout=0.5)
    assert time.monotonic() - begun < 10
    assert str(fake) in str(caught.value)


def test_no_julia_at_all(python: Python) -> None:
    text = python.with_no_choice.with_(PATH="/nonexistent").run(ASK).fine()
    assert text.startswith("JuliaNotFound") and "pybridge setup" in text
    for place in ("PYBRIDGE_JULIA", "started by juliacall", "juliacall's choice", "PATH"):
        assert f"{place}: " in text


def test_the_session_goes_on_after_no_julia(python: Python) -> None:
    python.run("""
        import os, pybridge.errors as e
        from pybridge.runtime.julia import request
        setting = os.environ.get("PYBRIDGE_JULIA")
        os.environ["PYBRIDGE_JULIA"] = "/nonexistent/julia"
        try:
            request("echo")
        except e.JuliaUnusable as problem:
            assert "/nonexistent/julia" in str(problem)
        else:
            raise SystemExit("took a Julia that does not exist")
        os.environ.pop("PYBRIDGE_JULIA")
        if setting:
            os.environ["PYBRIDGE_JULIA"] = setting
        assert request("echo", "works now") == "works now"
    """).fine()


def test_an_explicit_setting_is_never_passed_over(python: Python, fake_julia: Callable[[str], Path]) -> None:
    fake = fake_julia('echo "julia version 1.0.5"')
    said = python.with_(PYBRIDGE_JULIA=str(fake)).run("""
        from pybridge.runtime.julia import find
        for step in find().steps:
            print(step.outcome)
    """)
    assert said.fine().splitlines() == ["unusable", "not needed", "not needed", "not needed"]


def test_the_order_and_the_reasons(python: Python) -> None:
    said = python.with_no_choice.run("""
        from pybridge.runtime.julia import find
        for step in find().steps:
            assert step.reason and (step.julia is None) == (step.outcome != "chosen")
            print(step.place)
    """)
    assert said.fine().splitlines() == [
        "PYBRIDGE_JULIA",
        "started by juliacall",
        "juliacall's choice",
        "PATH",
    ]


def test_a_second_libjulia_is_refused_naming_both(python: Python, tmp_path: Path) -> None:
    """Another file called libjulia is mapped first; what it holds does not matter."""
    import _ctypes

    other = tmp_path / "libjulia.so.1"
    other.write_bytes(Path(_ctypes.__file__).read_bytes())
    said = python.run(
        """
        import ctypes, sys
        ctypes.CDLL(sys.argv[1])
        import pybridge.errors as e
        from pybridge.runtime.julia import find, request
        try:
            request("echo")
        except e.JuliaUnusable as problem:
            text = str(problem)
            assert sys.argv[1] in text and str(find().julia.libjulia) in text, text
            print("refused")
        """,
        str(other),
    )
    assert said.fine() == "refused\n"


def test_a_setting_may_be_a_name_on_path(python: Python) -> None:
    python.run("""
        import os
        from pybridge.runtime.julia import find
        chosen = find().julia
        os.environ["PATH"] = f"{chosen.executable.parent}:{os.environ['PATH']}"
        os.environ["PYBRIDGE_JULIA"] = chosen.executable.name
        assert find().steps[0].outcome == "chosen" and find().julia.libjulia == chosen.libjulia
    """).fine()
