"""Runs an exported function from its file, in a process that has neither pybridge nor Julia.

    python examples/reload.py FUNCTION.stablehlo INPUTS.npz OUTPUTS.npz

Imports of pybridge and juliacall are made to fail, to prove that none is needed.
"""

import sys

sys.modules["pybridge"] = sys.modules["juliacall"] = None

import jax.export  # noqa: E402
import numpy as np  # noqa: E402


def main(function, inputs, outputs):
    with open(function, "rb") as file:
        exported = jax.export.deserialize(bytearray(file.read()))
    with np.load(inputs) as arrays:
        results = jax.tree.leaves(exported.call(*(arrays[name] for name in sorted(arrays))))
    np.savez(outputs, *map(np.asarray, results))
    with open("/proc/self/maps") as maps:
        assert "libjulia" not in maps.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
