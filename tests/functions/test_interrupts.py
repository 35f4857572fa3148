"""Ctrl-C in a Julia function: the call ends, and the next one runs or says at once why it cannot."""

from __future__ import annotations

import processes
import pytest

from pybridge.runtime import julia

CODE = """
    import os, signal, threading, time
    import jax, jax.numpy as jnp
    import pybridge as pb

    x = jnp.ones(3)
    result = jax.ShapeDtypeStruct((3,), x.dtype)
    spins, looks, after = (
        pb.julia_function(name, source="code.jl", result=result) for name in ("spins", "looks", "after")
    )
    assert after(x).sum() == 6

    def interrupted(f):
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        begun = time.monotonic()
        try:
            f(x)
        except KeyboardInterrupt:
            return begun
        raise SystemExit("was not interrupted")

    interrupted(looks)
    assert after(x + 1).sum() == 9
    begun = interrupted(spins)
    for call in (after, lambda x: pb.julia_function("other", source="code.jl", result=result)(x)):
        called = time.monotonic()
        try:
            raise SystemExit(call(x))
        except pb.JuliaBusy as busy:
            assert "running the function spins, since" in str(busy), busy
            assert time.monotonic() - called < 2
    time.sleep(max(0, begun + 4.3 - time.monotonic()))
    assert after(x + 2).sum() == 12
    print("fine")
"""
JULIA = """
using JaxprAD
function spins(x)
    stop = time() + 4
    y = 0f0
    while time() < stop
        y += sin(x[1])
    end
    x .+ (y - y)
end
function looks(x)
    stop = time() + 60
    while time() < stop
        JaxprAD.check_cancelled()
        x = x .* 1
    end
    x
end
after(x) = x .+ 1
other(x) = x .+ 2
"""


@pytest.mark.skipif(
    (found := julia.find().julia) is not None and found.release >= (1, 9),
    reason="there XLA calls Julia itself, and Python sees Ctrl-C when the call has ended",
)
def test_ctrl_c_in_a_function(tmp_path, monkeypatch):
    (tmp_path / "code.jl").write_text(JULIA)
    monkeypatch.chdir(tmp_path)
    assert processes.run(CODE).strip() == "fine"
