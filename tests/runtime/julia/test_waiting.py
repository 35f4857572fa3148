"""A wait for Julia of more than two seconds is explained on stderr, and never spoils the output."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from .processes import Python

LONG = """
    from pybridge.runtime.julia import request
    request("echo")
    print(request("loop", arguments=["{seconds}"], doing="compiling [b]f[/b]"))
"""
# Where it is not the two seconds that are tested, no test waits for them.
IMPATIENT = """
    from pybridge.runtime.julia import waiting
    waiting._SILENCE, waiting._REFRESH = 0.5, 0.1
"""


@pytest.fixture
def talking(python: Python) -> Python:
    return python.without("PYBRIDGE_PROGRESS")


def test_a_long_request_is_explained_once(talking: Python) -> None:
    ended = talking.run(LONG.format(seconds=2.6))
    assert ended.fine() == "ended by itself\n"
    assert ended.err.splitlines().count("pybridge: compiling [b]f[/b]") == 1


def test_a_short_request_needs_no_word(talking: Python) -> None:
    ended = talking.run(LONG.format(seconds=0.5))
    ended.fine()
    assert "compiling" not in ended.err


@pytest.mark.parametrize(
    ("thread", "said"), [("daemon=False", 1), ("daemon=True", 0)], ids=["thread", "daemon thread"]
)
def test_threads_that_python_ends_at_exit_say_nothing(talking: Python, thread: str, said: int) -> None:
    ended = talking.run(
        f"""{IMPATIENT}
    import threading
    from pybridge.runtime.julia import request
    request("echo")
    work = lambda: request("loop", arguments=["0.9"], doing="compiling f")
    other = threading.Thread(target=work, {thread})
    other.start()
    other.join()
    """
    )
    ended.fine()
    assert ended.err.count("pybridge: compiling f") == said


def test_who_waits_for_another_threads_request_is_told_so(talking: Python) -> None:
    ended = talking.run(
        f"""
    import threading, time
    from pybridge.runtime.julia import request
    request("echo")
    {IMPATIENT}
    def ask(seconds, doing, **options):
        thread = threading.Thread(target=lambda: request("loop", arguments=[seconds], doing=doing, **options))
        thread.start()
        time.sleep(0.2)
        return thread
    threads = ask("1.4", "running the function slow", quiet=True), ask("0.1", "compiling g")
    request("echo", doing="compiling h")
    """
    )
    ended.fine()
    said = "pybridge: waiting for Julia, which is running the function slow for another thread"
    assert ended.err.splitlines() == [said, said]


def test_words_can_be_turned_off_and_need_a_stderr(talking: Python) -> None:
    ended = talking.with_(PYBRIDGE_PROGRESS="off").run(IMPATIENT + LONG.format(seconds=0.9))
    ended.fine()
    assert "compiling" not in ended.err
    closed = talking.run(f"{IMPATIENT}\n    import sys\n    sys.stderr = None" + LONG.format(seconds=0.9))
    assert closed.fine() == "ended by itself\n"


@pytest.mark.parametrize(
    ("setting", "when"),
    [
        ("True", "in every process until `pybridge setup` has run"),
        ("False", "when that is for the first time"),
    ],
)
def test_the_first_start_says_what_it_loads(talking: Python, tmp_path, setting: str, when: str) -> None:
    """An old Julia without a system image compiles the package in each process."""
    source = tmp_path / "Slow"
    (source / "src").mkdir(parents=True)
    (source / "Project.toml").write_text('name = "Slow"\nuuid = "7b4b9d3e-5c0f-4d51-9f6c-0d5a3b1f8a11"\n')
    (source / "src" / "Slow.jl").write_text(
        "module Slow\n"
        "const CANCEL = Ref{Int32}(0)\n"
        "cancel_address() = UInt64(UInt(pointer_from_objref(CANCEL)))\n"
        'serve(message::String)::String = "ok\\n" * message\n'
        "__init__() = sleep(1.2)\n"
        "end\n"
    )
    ended = talking.with_(PYBRIDGE_JAXPRAD=str(source), JULIA_DEPOT_PATH=f"{tmp_path / 'depot'}:").run(
        f"""{IMPATIENT}
    from pybridge.runtime.julia import image, request
    image.wanted = lambda julia, package: {setting}
    request("echo")
    """
    )
    ended.fine()
    assert f"pybridge: loading Slow into Julia, which compiles it {when}\n" in ended.err


def test_in_a_terminal_the_display_goes_when_the_wait_is_over(talking: Python) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", _dedented(LONG.format(seconds=3))],
        env={**talking.environment, "TERM": "xterm", "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                said += os.read(ours, 4096)
            except OSError:  # Linux's way to say that the other side is closed
                break
        assert process.stdout is not None
        assert process.stdout.read() == "ended by itself\n"
    os.close(ours)
    text = said.decode()
    assert process.returncode == 0, text
    assert "pybridge: compiling [b]f[/b] (2 s)" in text
    assert text.rstrip("\r\n").endswith("\x1b[2K"), repr(text[-60:])  # the line is cleared


def _dedented(code: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in code.splitlines())
