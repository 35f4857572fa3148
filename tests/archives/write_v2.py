"""What wrote the files in `v2` that begin with `jax`: they are of the second version, and stay as they are.

They are the functions of `write_v1` and derivatives of them, with the names of arguments and results. Run as
a program, `write_v2.py FOLDER`, it writes such files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import write_v1 as v1

import pybridge as pb


def programs() -> dict[str, Callable[[], Any]]:
    args, kwargs = v1.model_arguments()
    window, x = v1.Window(np.float64(-0.5), np.float64(0.5)), np.linspace(-1, 1, 4)
    return {
        "jax-model": lambda: pb.trace(v1.model)(*args, **kwargs),
        "jax-model-jvp": lambda: pb.trace(v1.model)(*args, **kwargs).jvp(active=["x", "scale"]).optimize(),
        "jax-hvp": lambda: pb.trace(v1.loss)(v1.loss_reference()["x"]).vjp().jvp(active="x").optimize(),
        "jax-windowed-vjp": lambda: pb.trace(v1.windowed)(window, x).vjp(active="w.low", value=True),
    }


if __name__ == "__main__":
    v1.register()
    with jax.enable_x64(True):
        for name, made in programs().items():
            pb.save(Path(sys.argv[1]) / f"{name}.pybridge", made())
