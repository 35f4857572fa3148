"""Arrays of any dtype in one file, read back without unpickling anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..ir.numerals import DTYPES, dtype_name


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """The file appears complete or not at all."""
    types = {name: [dtype_name(a.dtype), *a.shape] for name, a in arrays.items()}
    data = {name: np.frombuffer(np.ascontiguousarray(a).tobytes(), np.uint8) for name, a in arrays.items()}
    unfinished = path.with_name(path.name + ".part")
    with unfinished.open("wb") as file:
        np.savez(file, allow_pickle=False, **data, **{"": np.array(json.dumps(types))})
    unfinished.rename(path)


def load(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        types = json.loads(str(file[""]))
        return {
            name: np.frombuffer(file[name].tobytes(), DTYPES[dtype]).reshape(shape)
            for name, (dtype, *shape) in types.items()
        }
