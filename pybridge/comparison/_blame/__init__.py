"""`blame`: what is numerically wrong with a function and its derivatives, by equation and source line."""

from ._blame import blame
from ._report import Blame, NonFinite, Rounding

__all__ = ["Blame", "NonFinite", "Rounding", "blame"]
