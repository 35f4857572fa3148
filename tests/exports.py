"""Exported functions in processes of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap


def custom_calls(exported) -> set[str]:
    return set(re.findall(r"custom_call @([\w.]+)", exported.mlir_module()))


def elsewhere(path, code: str, *args) -> dict:
    """What code prints, as JSON, in a process that can have neither pybridge nor Julia.

    `exported` is what the file holds there.
    """
    prelude = """
        import importlib.abc, json, os, sys
        class Refuse(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name.split(".")[0] in ("pybridge", "juliacall", "juliapkg"):
                    raise ImportError(name)
        sys.meta_path.insert(0, Refuse())
        import jax, jax.numpy as jnp, numpy as np
        from jax import export
        exported = export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
    """
    check = """
        assert not any(name.startswith("pybridge") for name in sys.modules)
        assert "libjulia" not in open("/proc/self/maps").read() if os.path.exists("/proc/self/maps") else True
    """
    script = "\n".join(map(textwrap.dedent, (prelude, code, check)))
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH",) and "JULIA" not in k}
    env["PATH"] = "/nowhere"
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), *args],
        env=env,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
