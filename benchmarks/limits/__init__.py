"""What a row's result costs where it is written by hand: loops in plain Julia, without AD and allocation.

A file is one row's derivative as an expert writes it in an afternoon: forwards, keeping what is needed, and
backwards. It computes what the row's program does, trip by trip: an expression may be simplified, but no work
moves from one trip to another, and no product of matrices is bracketed differently.
"""

from .measuring import measure

__all__ = ["measure"]
