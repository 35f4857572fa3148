"""Which elements of a Program's results depend on which elements of its arguments."""

from ._abstract import Abstract, Matrix
from ._interpreter import detection_of, followed, interpret, read
from ._state import Detection

__all__ = ["Abstract", "Detection", "Matrix", "detection_of", "followed", "interpret", "read"]
