"""`mixed`: a function of float64 with what can be in float32 in float32, for a wished error."""

from ._mixed import mixed
from ._report import Kept, Mixed, Precision

__all__ = ["Kept", "Mixed", "Precision", "mixed"]
