"""Importing pybridge does no work."""

from __future__ import annotations

from .processes import Python

IMPORT = """
    import sys
    events = []
    sys.addaudithook(lambda event, args: events.append(event) if event.startswith("socket.") else None)
    import pybridge, pybridge.runtime.julia, pybridge.api.doctor
    print("libjulia" in open("/proc/self/maps").read(), events)
"""


def test_import_maps_no_libjulia_opens_no_socket_and_says_nothing(python: Python) -> None:
    said = python.importing_all.run(IMPORT)
    assert said.fine() == "False []\n"
    assert said.err == ""


def test_the_same_looks_do_see_a_started_julia_and_a_socket(python: Python) -> None:
    more = IMPORT.replace(
        "print(", "import socket; socket.socket().close(); pybridge.runtime.julia.start()\n    print(", 1
    )
    assert python.importing_all.run(more).fine() == "True ['socket.__new__']\n"


def test_finding_julia_starts_nothing_and_opens_no_socket(python: Python) -> None:
    code = IMPORT.replace("print(", "assert pybridge.runtime.julia.find().julia is not None\n    print(", 1)
    said = python.importing_all.run(code)
    assert said.fine() == "False []\n"
    assert said.err == ""
