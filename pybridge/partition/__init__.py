"""Functions of which a part is no Program: segments that are Programs, and between them what JAX binds.

A Program is pure and for one device. Of a jaxpr with collectives (`psum`, `all_gather` ...) the equations
between them become Programs, as few as the collectives' dependencies allow, and JAX binds the collectives:
it has their JVP, transpose and batching rules. So every transformation of the whole is JAX's transformation
of a sequence, whose other members are bridged. The same is done with primitives that other packages define,
and with prints, callbacks and checks, which keep their order.
"""

from .deferred_errors import Guard
from .segments import Partition, partitioned

__all__ = ["Guard", "Partition", "partitioned"]
