"""The derivative engines, one file each; `ENGINES` has them in the order in which they are shown."""

from . import enzyme_jax, jax_own, transpose
from .engine import Engine, Options
from .enzyme import engine as enzyme

ENGINES: dict[str, Engine] = {
    engine.name: engine for engine in (transpose.ENGINE, enzyme.ENGINE, jax_own.ENGINE, enzyme_jax.ENGINE)
}

__all__ = ["ENGINES", "Engine", "Options"]
