"""A process that has imported JAX and pybridge, and forks another one for each script that it is sent.

`forking.py DESCRIPTOR`: a socket, from which come four files at a time: the script as JSON, its stdout, its
stderr, and a pipe for the new process's id and, in the end, its exit status. Neither XLA nor Julia has been
started here. `processes.py` has the other side.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import types
import warnings

FILES = 4


def _import() -> None:
    """What most scripts use; lazy attributes of pybridge are loaded by the look at them."""
    import jax
    import jax.experimental
    import jax.export

    import pybridge as pb
    from pybridge.runtime import julia, kernel_files, native

    for name in pb.__all__:
        getattr(pb, name)
    assert jax.numpy and native and kernel_files and not julia.status().started
    assert not {"juliacall", "torch", "casadi"} & set(sys.modules)


def _next_script(server: socket.socket) -> list[int] | None:
    """In the process for a script: its files. None in this one, when no more scripts are to come."""
    while True:
        word, files, *_ = socket.recv_fds(server, 1, FILES)
        # So their processor time is counted as this one's, and none stays as a zombie.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not word:
            return None
        if os.fork() == 0:
            server.close()
            child = os.fork()
            if child == 0:
                os.close(files.pop())
                return files
            _wait(child, files)
        for file in files:
            os.close(file)


def _wait(child: int, files: list[int]) -> None:
    *others, status = files
    for file in others:
        os.close(file)
    os.write(status, f"{child}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(status, f"{code}\n".encode())
    os._exit(0)


def _become(files: list[int]) -> str:
    """Takes over a script's files, folder, arguments and environment. Returns its code."""
    asked, out, err = files
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    with os.fdopen(asked) as text:
        script = json.load(text)
    os.close(out)
    os.close(err)
    os.chdir(script["folder"])
    os.environ.clear()
    os.environ.update(script["environment"])
    sys.argv = ["-c", *script["arguments"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return script["code"]


def main(descriptor: int) -> None:
    sys.path[0] = ""  # as for `python -c`
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the process that asks
    _import()
    gc.collect()
    gc.freeze()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks with threads: NumPy's are ready for it
        files = _next_script(socket.socket(fileno=descriptor))
    if files is not None:
        code = _become(files)
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        # The interpreter ends as it would after any script: with all of its hooks, and by its exceptions.
        exec(compile(code, "<string>", "exec"), module.__dict__)


if __name__ == "__main__":
    main(int(sys.argv[1]))
