"""`pybridge fuzz`: engines on random Programs, in processes that may die, against JAX in double precision."""

from .campaign import Campaign, Settings, fuzz
from .reproducing import array, reproduce

__all__ = ["Campaign", "Settings", "array", "fuzz", "reproduce"]
