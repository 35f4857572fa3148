"""libjulia through ctypes: the few C functions we call, under the names that differ between versions.

Everything here runs on the control thread. The library is opened as CDLL, so that every call lets the
GIL go: a Julia that held it while waiting for a collection would freeze with Python.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import JuliaError, JuliaUnusable
from . import isolation, loading

# 1.5 to 1.8, 1.9 to 1.11, 1.12 and later
_INITS = ("jl_init_with_image__threading", "jl_init_with_image", "jl_init_with_image_file")

_Value = ctypes.c_void_p  # a jl_value_t*; never kept across two calls unless Julia roots it elsewhere
_SIGNATURES: dict[str, tuple[list[type], type | None]] = {
    "jl_parse_opts": ([ctypes.c_void_p, ctypes.c_void_p], None),
    "jl_is_initialized": ([], ctypes.c_int),
    "jl_eval_string": ([ctypes.c_char_p], _Value),
    "jl_exception_occurred": ([], _Value),
    "jl_exception_clear": ([], None),
    "jl_typeof_str": ([_Value], ctypes.c_char_p),
    "jl_pchar_to_string": ([ctypes.c_char_p, ctypes.c_size_t], _Value),
    "jl_string_ptr": ([_Value], ctypes.c_void_p),
    "jl_call0": ([_Value], _Value),
    "jl_call1": ([_Value, _Value], _Value),
    "jl_unbox_uint64": ([_Value], ctypes.c_uint64),
    "jl_atexit_hook": ([ctypes.c_int], None),
}


class LibJulia:
    """One opened libjulia. `initialise` it, or `adopt` the calling thread if it already runs.

    running: something else than pybridge has opened and started it.
    """

    def __init__(self, path: Path, *, running: bool = False):
        loading.keep_libgccs_unwinder()
        try:
            self._library = loading.opened(path, os.RTLD_GLOBAL) if running else isolation.apart(path)
        except OSError as reason:
            raise JuliaUnusable(f"{path} cannot be loaded into this process: {reason}") from reason
        self.path = path
        for name, (arguments, result) in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.argtypes, function.restype = arguments, result

    def initialise(self, bindir: Path, image: Path, options: list[str]) -> None:
        """Start Julia, with the calling thread as its first."""
        if self._library.jl_is_initialized():
            raise JuliaUnusable(
                f"{self.path} was already started in this process by something other than pybridge"
            )
        init = next((getattr(self._library, name) for name in _INITS if hasattr(self._library, name)), None)
        if init is None:
            raise JuliaUnusable(f"{self.path} has none of the start functions {', '.join(_INITS)}")
        isolation.bind_image(image)
        self._parse(options)
        init.argtypes, init.restype = [ctypes.c_char_p, ctypes.c_char_p], None
        init(bytes(bindir), bytes(image))
        self.join()

    def adopt(self) -> None:
        """Make the calling thread one of a Julia that another thread started (Julia 1.9 and later)."""
        self._library.jl_adopt_thread.restype = ctypes.c_void_p
        self._library.jl_adopt_thread()

    def _parse(self, options: list[str]) -> None:
        words = [b"julia", *(option.encode() for option in options)]
        count = ctypes.c_int(len(words))
        array = ctypes.cast((ctypes.c_char_p * (len(words) + 1))(*words, None), ctypes.c_void_p)
        # getopt's place in the words is the process's: after another's parsing it would pass over these.
        place = ctypes.c_int.in_dll(loading.PROCESS, "optind")
        before, place.value = place.value, 1
        self._library.jl_parse_opts(ctypes.byref(count), ctypes.byref(array))
        place.value = before

    def join(self) -> None:
        """Use a Julia that runs already, on a thread that is one of its own."""
        # these live in libjulia-internal on newer versions: Julia itself knows where
        self._enter_safe = ctypes.CFUNCTYPE(ctypes.c_int8)(self.uint64("UInt64(cglobal(:jl_gc_safe_enter))"))
        self._leave_safe = ctypes.CFUNCTYPE(None, ctypes.c_int8)(
            self.uint64("UInt64(cglobal(:jl_gc_safe_leave))")
        )
        self._yield = self.evaluate("yield")  # rooted: Base owns it
        self.resume_threads = self._resumption()

    def _resumption(self) -> Callable[[], None]:
        """What lets Julia's other threads go on once it has ended.

        From 1.12 on it suspends them all, those of XLA's pool among them that have called into Julia: where
        these end they would wait for ever, and with them the end of the process.
        """
        address = self.uint64(
            '@static VERSION >= v"1.12" ? UInt64(cglobal(:jl_safepoint_resume_all_threads)) : UInt64(0)'
        )
        if not address:
            return lambda: None
        task = self.uint64("UInt64(pointer_from_objref(current_task()))")
        return functools.partial(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address), task)

    def on_first_thread(self) -> bool:
        """Whether the calling thread is the one that Julia started on (Julia 1.9 and later)."""
        library = self._library
        library.jl_get_pgcstack.restype = ctypes.c_void_p
        library.jl_threadid.restype = ctypes.c_int16
        return bool(library.jl_get_pgcstack()) and library.jl_threadid() == 0

    def share_event_loop(self) -> None:
        """Let every thread that waits in Julia run its event loop, not only the first one.

        juliacall's callers hold the GIL while they wait; the first thread would need it to come to their aid.
        """
        self.evaluate("ccall(:jl_enter_threaded_region, Cvoid, ())")

    @contextmanager
    def parked(self) -> Iterator[None]:
        """While the thread is outside Julia: collections do not wait for it."""
        state = self._enter_safe()
        try:
            yield
        finally:
            self._leave_safe(state)

    def evaluate(self, code: str) -> int:
        value = self._library.jl_eval_string(code.encode())
        self._check(f"evaluating {code[:60]!r}")
        return value

    def uint64(self, code: str) -> int:
        return self._library.jl_unbox_uint64(self.evaluate(code))

    def text(self, code: str) -> str:
        return self._copied(self.evaluate(code))

    def call(self, function: int, argument: str) -> str:
        """`function(argument)`, a String from a String. The function must be rooted by Julia."""
        data = argument.encode()
        value = self._library.jl_call1(function, self._library.jl_pchar_to_string(data, len(data)))
        self._check("a call")
        return self._copied(value)

    def tick(self) -> None:
        """Let Julia's own tasks and timers have a turn."""
        self._library.jl_call0(self._yield)
        self._library.jl_exception_clear()

    def finish(self) -> None:
        """End Julia: its hooks and finalizers run. Nothing of it may be called afterwards."""
        self._library.jl_atexit_hook(0)
        self.resume_threads()

    def run_hooks(self) -> None:
        """Run the hooks of Julia's `atexit` on this thread, so that the end of Julia has none to run.

        Hooks may wait for tasks, as that of Julia's profiler does, which only Julia's own threads run. Others
        call Python: the GIL is held, as it is where juliacall ends Julia.
        """
        evaluate = ctypes.PYFUNCTYPE(_Value, ctypes.c_char_p)(("jl_eval_string", self._library))
        evaluate(b"Base._atexit(Cint(0))")
        self._library.jl_exception_clear()

    def _copied(self, text: int) -> str:
        # a Julia String is its length, one machine word, followed by its bytes; no safepoint lies
        # between the call that made it and this copy, so nothing can collect it
        length = ctypes.c_size_t.from_address(text).value
        return ctypes.string_at(self._library.jl_string_ptr(text), length).decode("utf-8", "replace")

    def _check(self, doing: str) -> None:
        if exception := self._library.jl_exception_occurred():
            kind = self._library.jl_typeof_str(exception).decode()
            self._library.jl_exception_clear()
            raise JuliaError(f"{kind} while {doing}", kind=kind)
